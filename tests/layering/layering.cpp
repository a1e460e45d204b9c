// SPDX-License-Identifier: Apache-2.0
#include "tests/layering/layering.h"

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace kvatlas::layering {
namespace {

constexpr std::array kProductFolders = {"kernels", "core", "sessions", "ui", "app"};

// Design section 1: folder -> what it may include besides itself. "kernels/shapes.h" is one file, the others folders.
const std::map<std::string, std::set<std::string>>& allowedEdges() {
    static const std::map<std::string, std::set<std::string>> edges = {
        {"kernels", {}},
        {"core/base", {}},
        {"core/trace", {"core/base"}},
        {"core/model", {"core/base", "kernels/shapes.h"}},
        {"core/cache", {"core/base", "core/trace", "kernels/shapes.h"}},
        {"core/engine",
         {"core/base", "core/trace", "core/source", "core/workload", "core/strategy", "core/cache", "core/model",
          "kernels"}},
        {"core/source", {"core/base", "core/trace"}},
        {"core/state", {"core/base", "core/trace"}},
        {"core/query", {"core/base", "core/trace", "core/state"}},
        {"core/strategy", {"core/base", "kernels/shapes.h"}},
        {"core/workload", {"core/base"}},
        {"core/eval", {"core/base", "core/trace", "core/model", "core/engine", "core/strategy"}},
        {"sessions", {"core/base", "core/trace", "core/source", "core/state", "core/query"}},
        {"ui",
         {"core/base", "core/trace", "core/source", "core/state", "core/query", "core/strategy", "core/workload"}},
        {"app", {"kernels", "core", "sessions", "ui"}},
    };
    return edges;
}

// A library that one folder wraps for everybody: header prefix -> the folders that may include it.
const std::map<std::string, std::set<std::string>>& libraryOwners() {
    static const std::map<std::string, std::set<std::string>> owners = {
        {"sqlite3.h", {"sessions"}}, {"hwy/", {"kernels"}},
        {"pcre2.h", {"core/model"}}, {"utf8proc.h", {"core/model"}},
        {"qcustomplot.h", {"ui"}},   {"CLI/", {"app"}},
        {"xxhash.h", {"core/base"}}, {"zstd.h", {"core/trace", "sessions"}},
    };
    return owners;
}

bool startsWith(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

bool inFolder(std::string_view path, std::string_view folder) {
    return path == folder || (startsWith(path, folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

bool hasSuffix(std::string_view path, std::initializer_list<std::string_view> suffixes) {
    return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) {
        return path.size() > suffix.size() && path.substr(path.size() - suffix.size()) == suffix;
    });
}

bool isSource(std::string_view path) {
    return hasSuffix(path, {".h", ".cpp", ".cu", ".cuh", ".def", ".inc"});
}

bool isProduct(std::string_view path) {
    return std::any_of(kProductFolders.begin(), kProductFolders.end(),
                       [&](const char* folder) { return inFolder(path, folder); });
}

// The row of the table that a product file belongs to: "core/trace", "kernels", ...; empty when there is none.
std::string rowOf(const std::string& path) {
    for (const auto& [folder, _] : allowedEdges())
        if (inFolder(path, folder))
            return folder;
    return {};
}

bool usesQt(std::string_view path) {
    return inFolder(path, "ui") || inFolder(path, "app/window");
}

bool isQtHeader(std::string_view header) {
    const auto name = header.substr(header.rfind('/') + 1); // npos + 1 == 0
    return startsWith(header, "Qt") || (name.size() > 1 && name[0] == 'Q' && name[1] >= 'A' && name[1] <= 'Z');
}

struct Include {
    int line;
    bool quoted;
    std::string header;
};

std::vector<Include> includesOf(const std::string& text) {
    static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
    std::vector<Include> includes;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number)
        if (std::smatch match; std::regex_search(line, match, pattern))
            includes.push_back({number, match[1] == "\"", match[2]});
    return includes;
}

std::string ruleOfQuoted(const Tree& tree, const std::string& path, const std::string& row, const std::string& header) {
    if (hasSuffix(header, {".moc"}))
        return {};
    if (!tree.contains(header))
        return "\"" + header + "\" is no file of this tree when read from the root";
    if (!isProduct(header))
        return row + " must not include \"" + header + "\", which is no part of the product";
    if (inFolder(header, row))
        return {};
    const auto& allowed = allowedEdges().at(row);
    const bool ok = std::any_of(allowed.begin(), allowed.end(),
                                [&](const std::string& target) { return inFolder(header, target); });
    return ok ? std::string{} : row + " must not include " + rowOf(header) + " (\"" + header + "\", from " + path + ")";
}

std::string ruleOfLibrary(const std::string& path, const std::string& header) {
    if (isQtHeader(header) && !usesQt(path))
        return "<" + header + ">: no Qt outside ui/ and app/window/";
    for (const auto& [prefix, owners] : libraryOwners()) {
        if (!startsWith(header, prefix))
            continue;
        if (std::none_of(owners.begin(), owners.end(), [&](const std::string& owner) { return inFolder(path, owner); }))
            return "<" + header + "> is wrapped by " + *owners.begin() + "/; use that";
    }
    return {};
}

} // namespace

std::vector<Violation> checkIncludes(const Tree& tree) {
    std::vector<Violation> found;
    for (const auto& [path, text] : tree) {
        if (!isProduct(path) || !isSource(path))
            continue;
        const auto row = rowOf(path);
        if (row.empty()) {
            found.push_back({path, 0, "its folder is not in the table of the house"});
            continue;
        }
        for (const auto& include : includesOf(text)) {
            auto rule = include.quoted ? ruleOfQuoted(tree, path, row, include.header) : std::string{};
            if (rule.empty())
                rule = ruleOfLibrary(path, include.header);
            if (!rule.empty())
                found.push_back({path, include.line, rule});
        }
    }
    return found;
}

std::vector<Violation> checkNames(const Tree& tree) {
    // name-inl.h is Highway's name for a file that is compiled once per SIMD target.
    static const std::regex snake(R"([a-z0-9]+(_[a-z0-9]+)*(-inl)?(\.[a-z0-9]+)+)");
    static const std::regex vague(R"((^|[/_.-])(utils?|helpers?|common|managers?|misc)($|[/_.-]))");
    std::vector<Violation> found;
    for (const auto& [path, _] : tree) {
        if (inFolder(path, ".github"))
            found.push_back({path, 0, "the project has no .github folder"});
        if (!isSource(path))
            continue;
        if (!std::regex_match(path.substr(path.rfind('/') + 1), snake))
            found.push_back({path, 0, "file names are snake_case, after their main type"});
        if (std::smatch match; std::regex_search(path, match, vague))
            found.push_back({path, 0, "\"" + match[2].str() + "\" says nothing: name what it holds"});
    }
    return found;
}

std::vector<Violation> checkGuards(const Tree& tree) {
    std::vector<Violation> found;
    for (const auto& [path, text] : tree) {
        if (!hasSuffix(path, {".h", ".cuh"}) || hasSuffix(path, {"-inl.h"}))
            continue;
        if (text.find("\n#pragma once\n") == std::string::npos)
            found.push_back({path, 0, "has no #pragma once (a file that is read once per SIMD target ends in -inl.h)"});
    }
    return found;
}

std::vector<Violation> checkLicences(const Tree& tree) {
    std::vector<Violation> found;
    for (const auto& [path, text] : tree) {
        std::istringstream lines(text);
        std::string line;
        std::getline(lines, line);
        const bool script = startsWith(line, "#!");
        if (script)
            std::getline(lines, line);
        const bool build = hasSuffix(path, {"CMakeLists.txt", ".cmake"});
        if (!script && !build && !isSource(path))
            continue;
        const std::string expected = std::string(isSource(path) ? "//" : "#") + " SPDX-License-Identifier: Apache-2.0";
        if (line != expected)
            found.push_back({path, script ? 2 : 1, "the line must be: " + expected});
    }
    return found;
}

std::vector<Violation> checkMachinePaths(const Tree& tree) {
    // In two parts, so that this file passes.
    const std::array<std::string, 3> paths = {std::string("/wo") + "rk/", std::string("/ro") + "ot/",
                                              std::string("/ho") + "me/"};
    std::vector<Violation> found;
    for (const auto& [file, text] : tree)
        for (const auto& path : paths)
            if (const auto at = text.find(path); at != std::string::npos) {
                const auto begin = text.begin();
                const auto line = 1 + std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n');
                found.push_back({file, static_cast<int>(line), "names a path of one machine: " + path});
            }
    return found;
}

std::vector<Violation> checkReadmes(const Tree& tree) {
    constexpr int kMostLines = 40;
    std::set<std::string> folders;
    for (const auto& [path, _] : tree)
        if (isProduct(path) && isSource(path))
            folders.insert(path.substr(0, path.rfind('/')));
    std::vector<Violation> found;
    for (const auto& folder : folders) {
        const auto readme = tree.find(folder + "/README.md");
        if (readme == tree.end()) {
            found.push_back({folder, 0, "has no README.md"});
            continue;
        }
        const auto lines = std::count(readme->second.begin(), readme->second.end(), '\n');
        if (lines > kMostLines)
            found.push_back({readme->first, kMostLines + 1, "a folder's README has at most 40 lines"});
    }
    return found;
}

std::string describe(const std::vector<Violation>& violations) {
    std::string text;
    for (const auto& violation : violations)
        text += violation.file + ":" + std::to_string(violation.line) + ": " + violation.rule + "\n";
    return text;
}

} // namespace kvatlas::layering

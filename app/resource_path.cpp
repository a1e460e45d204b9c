// SPDX-License-Identifier: Apache-2.0
#include "app/resource_path.h"

#include "core/base/strict_json.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <system_error>
#include <vector>

namespace kvatlas::app {

namespace {

namespace fs = std::filesystem;

bool holdsResources(const fs::path& folder) {
    std::error_code error;
    return fs::is_directory(folder / "strategies", error) && fs::is_directory(folder / "scenarios", error);
}

fs::path programFolder() {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::vector<fs::path> candidates() {
    std::vector<fs::path> places;
    if (const char* given = std::getenv("KVATLAS_RESOURCES"); given != nullptr && *given != '\0')
        places.emplace_back(given);
    const fs::path program = programFolder();
    places.push_back(program / "resources");
    places.push_back(program.parent_path() / "share" / "kvatlas");
    places.push_back((program / KVATLAS_SOURCE_RESOURCES).lexically_normal());
    return places;
}

} // namespace

Result<fs::path> resourceFolder() {
    std::string looked;
    for (const auto& place : candidates()) {
        if (holdsResources(place))
            return place;
        looked += (looked.empty() ? "" : ", ") + place.string();
    }
    return makeError(
        ErrorKind::Failed,
        "The program's data (strategies, scenarios) is not in any of {}: set KVATLAS_RESOURCES to its folder.", looked);
}

Result<fs::path> scenarioFile(std::string_view fileOrName) {
    fs::path given(fileOrName);
    std::error_code error;
    if (fs::exists(given, error))
        return given;
    if (given.has_parent_path() || given.extension() == ".json")
        return makeError(ErrorKind::Refused, "There is no scenario file {}; check the path.", given.string());
    const auto folder = resourceFolder();
    if (!folder)
        return tl::unexpected(folder.error());
    fs::path shipped = *folder / "scenarios" / (given.string() + ".json");
    if (fs::is_regular_file(shipped, error))
        return shipped;
    std::vector<std::string> names;
    for (fs::directory_iterator it(*folder / "scenarios", error), end; !error && it != end; it.increment(error))
        if (it->path().extension() == ".json")
            names.push_back(it->path().stem().string());
    std::sort(names.begin(), names.end());
    const std::vector<std::string_view> words(names.begin(), names.end());
    std::string hint = didYouMean(fileOrName, words);
    if (hint.empty())
        hint = fmt::format("give a file, or one of {}.", fmt::join(names, ", "));
    return makeError(ErrorKind::Usage, "There is no scenario \"{}\": {}", fileOrName, hint);
}

} // namespace kvatlas::app

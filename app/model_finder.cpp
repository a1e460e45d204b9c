// SPDX-License-Identifier: Apache-2.0
#include "app/model_finder.h"

#include "app/user_folders.h"
#include "core/model/config.h"
#include "core/model/gguf.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <system_error>

namespace kvatlas::app {

namespace {

namespace fs = std::filesystem;

// Enough for any collection of models; a home folder with a million files must not make the picker wait.
constexpr std::size_t kMaxEntriesPerPlace = 20'000;
constexpr std::size_t kMaxModels = 500;
constexpr std::size_t kMaxPassedOver = 500;

fs::path orElse(const fs::path& first, const fs::path& second) {
    return first.empty() ? second : first;
}

bool hasMagic(const fs::path& file) {
    std::array<char, 4> magic{};
    std::ifstream stream(file, std::ios::binary);
    return stream.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) == "GGUF";
}

class Search {
public:
    ModelSearch run(const std::vector<SearchFolder>& folders) {
        for (const auto& folder : folders)
            lookInto(folder);
        return std::move(m_found);
    }

private:
    void lookInto(const SearchFolder& folder) {
        SearchedPlace place{folder.place, folder.folder, false, true, 0};
        std::error_code error;
        place.exists = fs::is_directory(folder.folder, error);
        const std::size_t before = m_found.models.size();
        if (place.exists) {
            for (const auto& file : candidatesIn(folder, place.complete))
                consider(file, folder.place);
        }
        place.models = m_found.models.size() - before;
        m_found.places.push_back(std::move(place));
    }

    // Links to files are followed (Hugging Face's snapshots are links), links to folders are not: no way in circles.
    std::vector<fs::path> candidatesIn(const SearchFolder& folder, bool& complete) {
        std::vector<fs::path> files;
        std::error_code error;
        std::size_t entries = 0;
        fs::recursive_directory_iterator it(folder.folder, fs::directory_options::skip_permission_denied, error), end;
        for (; !error && it != end; it.increment(error)) {
            if (++entries > kMaxEntriesPerPlace) {
                complete = false;
                break;
            }
            std::error_code ignored;
            if (it->is_directory(ignored) && static_cast<unsigned>(it.depth()) >= folder.depth)
                it.disable_recursion_pending();
            if (!it->is_regular_file(ignored))
                continue;
            std::string suffix = it->path().extension().string();
            std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
            if (folder.bySuffix ? suffix == ".gguf" : hasMagic(it->path()))
                files.push_back(it->path());
        }
        std::sort(files.begin(), files.end());
        return files;
    }

    void consider(const fs::path& file, const std::string& place) {
        struct stat status {};
        if (::stat(file.c_str(), &status) != 0 || !m_seen.insert({status.st_dev, status.st_ino}).second ||
            m_found.models.size() >= kMaxModels)
            return;
        const auto gguf = model::GgufFile::open(file, model::GgufParts::HeaderOnly);
        if (!gguf)
            return passOver(file, gguf.error().message);
        const auto config = model::readModelConfig(*gguf);
        if (!config)
            return passOver(file, config.error().message);
        m_found.models.push_back(
            {file, config->name, config->architecture, static_cast<std::uint64_t>(status.st_size), place});
    }

    void passOver(const fs::path& file, std::string reason) {
        if (m_found.passedOver.size() < kMaxPassedOver)
            m_found.passedOver.push_back({file, std::move(reason)});
    }

    ModelSearch m_found;
    std::set<std::pair<dev_t, ino_t>> m_seen;
};

} // namespace

fs::path ownModelFolder() {
    return cacheHome() / "kvatlas" / "models";
}

std::vector<SearchFolder> usualModelFolders() {
    std::error_code error;
    std::vector<SearchFolder> folders{{"KVAtlas", ownModelFolder(), 2}};
    if (const fs::path here = fs::current_path(error); !error)
        folders.push_back({"current folder", here, 0});
    const fs::path huggingFace =
        orElse(absoluteFrom("HF_HUB_CACHE"), orElse(absoluteFrom("HF_HOME"), cacheHome() / "huggingface") / "hub");
    folders.push_back({"Hugging Face", huggingFace, 5});
    folders.push_back({"LM Studio", home() / ".lmstudio" / "models", 3});
    folders.push_back({"LM Studio (older)", cacheHome() / "lm-studio" / "models", 3});
    folders.push_back(
        {"Ollama", orElse(absoluteFrom("OLLAMA_MODELS"), home() / ".ollama" / "models") / "blobs", 0, false});
    folders.push_back({"Ollama (service)", "/usr/share/ollama/.ollama/models/blobs", 0, false});
    folders.push_back({"llama.cpp", orElse(absoluteFrom("LLAMA_CACHE"), cacheHome() / "llama.cpp"), 2});
    return folders;
}

ModelSearch findModels(const std::vector<SearchFolder>& folders) {
    return Search().run(folders);
}

Result<fs::path> chooseModel(std::string_view given, std::string_view scenarioModel) {
    constexpr std::string_view kDefaultModel = "SmolLM2-135M-Instruct.Q4_1.gguf"; // that scripts/run fetches
    std::error_code error;
    if (!given.empty())
        return fs::path(given);
    if (!scenarioModel.empty()) {
        if (fs::path path(scenarioModel); fs::exists(path, error))
            return path;
        for (const auto& found : findModels().models)
            if (found.file.filename() == fs::path(scenarioModel).filename())
                return found.file;
        return makeError(ErrorKind::Refused,
                         "The scenario's model {} is in none of the usual places: give a model with --model FILE.gguf.",
                         scenarioModel);
    }
    const ModelSearch own = findModels({{"KVAtlas", ownModelFolder(), 2}});
    for (const auto& passed : own.passedOver)
        if (passed.file.filename() == kDefaultModel)
            return makeError(ErrorKind::Refused, "The default model cannot be used: {}", passed.reason);
    for (const auto& found : own.models)
        if (found.file.filename() == kDefaultModel)
            return found.file;
    if (!own.models.empty())
        return own.models.front().file;
    return makeError(ErrorKind::Usage,
                     "No model was given and there is none in {}: give one with --model FILE.gguf, or run scripts/run, "
                     "which fetches a small one (98 MB).",
                     ownModelFolder().string());
}

} // namespace kvatlas::app

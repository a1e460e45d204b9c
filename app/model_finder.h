// SPDX-License-Identifier: Apache-2.0
// Looks for model files in the usual places of this and other programs. Read-only and bounded; says where it looked and
// why it passed over a file. Any thread; reads headers from the disk (milliseconds per model), so not the GUI's.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::app {

struct FoundModel {
    std::filesystem::path file;
    std::string name;         // as the file calls itself
    std::string architecture; // "llama"
    std::uint64_t fileBytes = 0;
    std::string place; // "Hugging Face cache"
};

struct PassedOver {
    std::filesystem::path file;
    std::string reason; // one sentence
};

struct SearchedPlace {
    std::string place;
    std::filesystem::path folder;
    bool exists = false;
    bool complete = true; // false: stopped at the limit of entries
    std::size_t models = 0;
};

struct ModelSearch {
    std::vector<FoundModel>
        models; // in the order of the places, then by file; each file once, however many names it has
    std::vector<PassedOver> passedOver;
    std::vector<SearchedPlace> places;
};

struct SearchFolder {
    std::string place;
    std::filesystem::path folder;
    unsigned depth = 1;   // folders below it that are looked into
    bool bySuffix = true; // false: every file that begins with GGUF's magic (Ollama's blobs have no suffix)
};

// XDG cache (kvatlas/models), the current folder, Hugging Face, LM Studio, Ollama, llama.cpp.
std::vector<SearchFolder> usualModelFolders();

ModelSearch findModels(const std::vector<SearchFolder>& folders = usualModelFolders());

// $XDG_CACHE_HOME/kvatlas/models, where scripts/run puts the default model. Empty or relative values count as unset.
std::filesystem::path ownModelFolder();

// The model of a run: `given` (a flag) as it is; else what the scenario names, as a path or as a file name in the usual
// places; else the first of our own folder, the default model before others. Usage, with what to do, when there is
// none.
Result<std::filesystem::path> chooseModel(std::string_view given, std::string_view scenarioModel = {});

} // namespace kvatlas::app

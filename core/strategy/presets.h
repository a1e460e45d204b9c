// SPDX-License-Identifier: Apache-2.0
// The strategies of a folder (resources/strategies): one JSON file each, the file's stem is the preset's id.
// Any thread; reads the disk. Errors: a missing folder or an unreadable or refused file, each in one sentence.
#pragma once

#include "core/strategy/strategy.h"

#include <filesystem>
#include <vector>

namespace kvatlas::strategy {

struct Preset {
    std::string id; // "paged-f16"
    std::filesystem::path file;
    Strategy strategy;
};

// Sorted by id. The first file that does not parse is the error.
Result<std::vector<Preset>> loadPresets(const std::filesystem::path& folder);

// A path to a strategy file, or the id of a preset in `presetFolder`. Unknown: Usage, with the nearest preset's id.
Result<Strategy> loadStrategy(std::string_view fileOrPreset, const std::filesystem::path& presetFolder);

} // namespace kvatlas::strategy

// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/presets.h"

#include "core/base/small_file.h"
#include "core/base/strict_json.h"

#include <algorithm>
#include <system_error>

namespace kvatlas::strategy {

namespace {

constexpr std::size_t kMaxStrategyFileBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxPresets = 1000;

Result<Strategy> readStrategy(const std::filesystem::path& file) {
    const auto text = readSmallFile(file, kMaxStrategyFileBytes);
    if (!text)
        return tl::unexpected(text.error());
    return parse(*text, file.filename().string());
}

Result<std::vector<std::filesystem::path>> strategyFiles(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        if (it->path().extension() == ".json" && files.size() < kMaxPresets)
            files.push_back(it->path());
    if (error)
        return makeError(ErrorKind::Failed, "The folder of strategies {} cannot be read: {}.", folder.string(),
                         error.message());
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

Result<std::vector<Preset>> loadPresets(const std::filesystem::path& folder) {
    const auto files = strategyFiles(folder);
    if (!files)
        return tl::unexpected(files.error());
    std::vector<Preset> presets;
    for (const auto& file : *files) {
        auto parsed = readStrategy(file);
        if (!parsed)
            return tl::unexpected(parsed.error());
        presets.push_back({file.stem().string(), file, std::move(*parsed)});
    }
    return presets;
}

Result<Strategy> loadStrategy(std::string_view fileOrPreset, const std::filesystem::path& presetFolder) {
    const std::filesystem::path path(fileOrPreset);
    std::error_code error;
    const bool looksLikeFile = path.has_parent_path() || path.extension() == ".json";
    if (std::filesystem::is_regular_file(path, error) || (looksLikeFile && std::filesystem::exists(path, error)))
        return readStrategy(path);
    if (!looksLikeFile) {
        const auto preset = presetFolder / (std::string(fileOrPreset) + ".json");
        if (std::filesystem::is_regular_file(preset, error))
            return readStrategy(preset);
    } else {
        return makeError(ErrorKind::Refused, "There is no strategy file {}; check the path.", path.string());
    }
    std::vector<std::string> names;
    if (const auto files = strategyFiles(presetFolder))
        for (const auto& file : *files)
            names.push_back(file.stem().string());
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string hint = didYouMean(fileOrPreset, views);
    return makeError(ErrorKind::Usage, "There is no strategy \"{}\": {}", fileOrPreset,
                     hint.empty() ? "give a file, or one of `kvatlas-cli strategies`." : hint);
}

} // namespace kvatlas::strategy

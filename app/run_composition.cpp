// SPDX-License-Identifier: Apache-2.0
#include "app/run_composition.h"

#include "app/machine.h"
#include "app/resource_path.h"
#include "app/user_folders.h"
#include "app/version.h"
#include "core/base/small_file.h"
#include "core/base/strict_json.h"
#include "core/engine/live_source.h"
#include "core/strategy/presets.h"
#include "sessions/recording_source.h"
#include "sessions/replay_source.h"

#include <array>
#include <ctime>
#include <fstream>
#include <system_error>

namespace kvatlas::app {

namespace {

namespace fs = std::filesystem;

Result<void> makeFolderOf(const fs::path& file) {
    std::error_code error;
    if (const fs::path folder = file.parent_path(); !folder.empty())
        fs::create_directories(folder, error);
    if (error)
        return makeError(ErrorKind::Failed, "The folder for {} cannot be made: {}.", file.string(), error.message());
    return {};
}

// Letters and digits stay, everything else becomes a hyphen; no longer than a file name may be on any system.
std::string fileNamePart(std::string_view title) {
    constexpr std::size_t kMaxBytes = 60;
    std::string part;
    for (const char c : title.substr(0, kMaxBytes)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
        if (plain)
            part += c;
        else if (!part.empty() && part.back() != '-')
            part += '-';
    }
    while (!part.empty() && (part.back() == '-' || part.back() == '.'))
        part.pop_back();
    return part.empty() ? "run" : part;
}

} // namespace

Result<std::unique_ptr<source::EventSource>> openLiveRun(std::shared_ptr<const engine::Weights> weights,
                                                         LiveRunOptions options) {
    const Machine machine = readMachine();
    engine::LiveOptions live;
    live.engine.strategy = options.strategy;
    live.engine.arithmetic = options.arithmetic;
    live.engine.threads = options.threads > 0 ? options.threads : defaultThreads(machine, true);
    live.engine.freeDeviceBytes = machine.freeMemoryBytes;
    live.engine.programVersion = versionLine(options.program);
    live.engine.machine = describe(machine);
    live.scenario = std::move(options.scenario);
    live.paused = options.paused;
    auto source = engine::LiveSource::create(std::move(weights), std::move(live));
    if (!source)
        return tl::unexpected(source.error());
    if (const auto made = makeFolderOf(options.record); !made)
        return tl::unexpected(made.error());
    auto recorded = sessions::RecordingSource::create(std::move(*source), {.path = options.record.string()});
    if (!recorded)
        return tl::unexpected(recorded.error());
    return std::unique_ptr<source::EventSource>(std::move(*recorded));
}

Result<std::unique_ptr<source::EventSource>> openReplay(const fs::path& session, bool paused) {
    auto replay = sessions::ReplaySource::open(session.string(), {.paused = paused});
    if (!replay)
        return tl::unexpected(replay.error());
    return std::unique_ptr<source::EventSource>(std::move(*replay));
}

Result<strategy::Strategy> strategyOf(const workload::Scenario& scenario) {
    if (!scenario.strategyJson.empty())
        return strategy::parse(scenario.strategyJson, "the scenario's strategy");
    if (scenario.strategyPreset.empty())
        return strategy::Strategy{};
    const auto folder = resourceFolder();
    if (!folder)
        return tl::unexpected(folder.error());
    auto preset = strategy::loadStrategy(scenario.strategyPreset, *folder / "strategies");
    if (!preset) // what a file says is an input, not a word of the call
        return makeError(ErrorKind::Refused, "The scenario's strategy: {}", preset.error().message);
    return preset;
}

fs::path newSessionFile(const std::string& title) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    const std::string stem = fmt::format("{:04}-{:02}-{:02} {:02}{:02}{:02} {}", local.tm_year + 1900, local.tm_mon + 1,
                                         local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, fileNamePart(title));
    const fs::path folder = dataHome() / "kvatlas" / "sessions";
    fs::path file = folder / (stem + ".kvatlas");
    std::error_code error;
    for (int n = 2; fs::exists(file, error); ++n)
        file = folder / fmt::format("{} ({}).kvatlas", stem, n);
    return file;
}

FileKind kindOfFile(const fs::path& file) {
    constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;
    std::array<char, 16> start{};
    std::error_code error;
    if (!fs::is_regular_file(file, error))
        return FileKind::Unknown;
    std::ifstream stream(file, std::ios::binary);
    stream.read(start.data(), start.size());
    const std::string_view magic(start.data(), static_cast<std::size_t>(stream.gcount()));
    if (magic.starts_with("GGUF"))
        return FileKind::Model;
    if (magic.starts_with("SQLite format 3"))
        return FileKind::Session;
    if (file.extension() == ".kvatlas")
        return FileKind::Session;
    if (file.extension() == ".gguf")
        return FileKind::Model;
    if (file.extension() != ".json")
        return FileKind::Unknown;
    const auto text = readSmallFile(file, kMaxJsonBytes);
    const auto value = text ? parseStrictJson(*text, file.filename().string(), {.maxBytes = kMaxJsonBytes})
                            : Result<Json>(tl::unexpected(text.error()));
    if (!value || !value->is_object())
        return FileKind::Unknown;
    return value->contains("requests") ? FileKind::Scenario : FileKind::Strategy;
}

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// Measures the session file with a synthetic run of 1,000,000 events: how fast it is recorded, how large it is, how
// long it takes to open it and to seek in it. One JSON object on stdout. Options: --events N, --repeat R, --folder F
// (where the file is recorded; its disk is measured too).
#include "core/state/cache_state.h"
#include "sessions/reader.h"
#include "sessions/recorder.h"
#include "sessions/replay_source.h"
#include "tests/support/synthetic_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using namespace kvatlas;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point began) {
    return std::chrono::duration<double>(Clock::now() - began).count();
}

double cpuSeconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double percentile95(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() * 95 / 100];
}

[[noreturn]] void fail(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::exit(1);
}

std::size_t folded(const source::StateAtAnswer& answer) {
    auto state = answer.keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                         : state::CacheState::decode(answer.keyframe);
    if (!state)
        fail(state.error().message);
    for (const trace::Event& event : answer.events)
        if (auto fits = state->apply(event); !fits)
            fail(fits.error().message);
    return answer.events.size();
}

} // namespace

int main(int argc, char** argv) {
    std::size_t wanted = 1'000'000, repeat = 9;
    std::string folder;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view option = argv[i];
        if (option == "--events")
            wanted = std::strtoull(argv[i + 1], nullptr, 10);
        else if (option == "--repeat")
            repeat = std::max<std::size_t>(1, std::strtoull(argv[i + 1], nullptr, 10));
        else if (option == "--folder")
            folder = argv[i + 1];
        else
            fail(fmt::format("unknown option {}", option));
    }
    folder = (folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(folder)) / "bench-XXXXXX";
    if (!::mkdtemp(folder.data()))
        fail("no folder to record into");
    const std::string path = folder + "/run.kvatlas";

    // The events are made before the clock runs.
    test::SyntheticRun run({.seed = 1, .steps = 0xFFFF'FFFF, .poolBlocks = 4096, .maxSequences = 8});
    std::vector<std::vector<trace::Event>> steps;
    std::size_t events = 0;
    while (events < wanted) {
        steps.push_back(run.nextStep());
        events += steps.back().size();
    }
    sessions::RecorderOptions options;
    options.piece = test::SyntheticRun::piece;
    auto recorder = sessions::SessionRecorder::create(path, options);
    if (!recorder)
        fail(recorder.error().message);
    const auto began = Clock::now();
    const double cpuBegan = cpuSeconds();
    double deliverySeconds = 0;
    for (const auto& step : steps) {
        const auto delivered = Clock::now();
        (*recorder)->onEvents(step);
        deliverySeconds += secondsSince(delivered);
    }
    (*recorder)->onEnd();
    if (auto stopped = (*recorder)->stop(); !stopped)
        fail(stopped.error().message);
    const double recordSeconds = secondsSince(began);
    const double recordCpuSeconds = cpuSeconds() - cpuBegan;
    const double waited = static_cast<double>((*recorder)->status().waitedNs) * 1e-9;
    const auto bytes = std::filesystem::file_size(path);

    std::vector<double> openMs, replayOpenMs, seekMs, historyMs;
    std::uint64_t chunkBytes = 0, keyframes = 0;
    for (std::size_t i = 0; i < repeat; ++i) {
        auto start = Clock::now();
        auto reader = sessions::SessionReader::open(path);
        if (!reader)
            fail(reader.error().message);
        openMs.push_back(secondsSince(start) * 1e3);
        start = Clock::now();
        if (!(*reader)->history(0, 0xFFFF'FFFF, 4096))
            fail("no history");
        historyMs.push_back(secondsSince(start) * 1e3);
        std::uint64_t random = 7 + i;
        for (int seek = 0; seek < 40; ++seek) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            start = Clock::now();
            const auto answer = (*reader)->stateAt(static_cast<Step>((random >> 33) % steps.size()));
            if (!answer)
                fail(answer.error().message);
            folded(*answer);
            seekMs.push_back(secondsSince(start) * 1e3);
        }
        keyframes = (*reader)->info().keyframes;
        auto sum = sessions::Statement::prepare((*reader)->database(), "SELECT sum(length(data)) FROM chunks");
        if (sum && sum->step() == SQLITE_ROW)
            chunkBytes = static_cast<std::uint64_t>(sum->integer(0));
        start = Clock::now();
        if (!sessions::ReplaySource::open(path))
            fail("no replay");
        replayOpenMs.push_back(secondsSince(start) * 1e3);
    }
    const double n = static_cast<double>(events);
    const nlohmann::ordered_json report = {
        {"events", events},
        {"steps", steps.size()},
        {"keyframes", keyframes},
        {"record",
         {{"events_per_second", n / recordSeconds},
          {"cpu_ns_per_event", recordCpuSeconds / n * 1e9},
          {"delivery_ns_per_event", (deliverySeconds - waited) / n * 1e9},
          {"waited_seconds", waited}}},
        {"file_bytes", bytes},
        {"bytes_per_event", static_cast<double>(bytes) / n},
        {"chunk_bytes_per_event", static_cast<double>(chunkBytes) / n},
        {"open_ms", median(openMs)},
        {"open_worst_ms", *std::max_element(openMs.begin(), openMs.end())},
        {"replay_open_ms", median(replayOpenMs)},
        {"seek_ms", median(seekMs)},
        {"seek_p95_ms", percentile95(seekMs)},
        {"seek_worst_ms", *std::max_element(seekMs.begin(), seekMs.end())},
        {"history_ms", median(historyMs)},
    };
    std::puts(report.dump(2).c_str());
    std::filesystem::remove_all(folder);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// What record_until_killed and kill_test agree on: file names, runs, and the memory through which the one tells the
// other what has been acknowledged. Written by one process, read by the other after its death.
#pragma once

#include "tests/support/synthetic_run.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace kvatlas::test {

struct Acknowledged {
    static constexpr std::size_t kRuns = 64;
    struct Run {
        std::atomic<std::uint64_t> events;
        std::atomic<std::uint64_t> ended;
    };
    Run runs[kRuns];
};

inline std::string killedFile(const std::string& folder, std::size_t run) {
    return folder + "/run" + std::to_string(run) + ".kvatlas";
}

// Short runs, so that a kill hits creation and ending too, and long ones.
inline SyntheticOptions killedRun(std::uint64_t seed, std::size_t run) {
    SyntheticOptions options;
    options.seed = seed * 1000 + run;
    options.steps = run % 3 == 0 ? 30 : 1500;
    options.poolBlocks = 64;
    return options;
}

} // namespace kvatlas::test

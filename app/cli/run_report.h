// SPDX-License-Identifier: Apache-2.0
// What `run` reports when it is over: one JSON object for scripts, tables for people. Values, main thread.
#pragma once

#include "app/step_speed.h"
#include "core/base/strict_json.h"
#include "core/engine/engine.h"

#include <string>
#include <vector>

namespace kvatlas::app {

struct RunReport {
    std::string model, backend, arithmetic, record; // record: the session file, empty without one
    unsigned threads = 1;
    std::uint64_t seed = 0;
    strategy::Strategy strategy;
    std::vector<engine::RequestResult> requests; // by id
    engine::RunTotals totals;
    kernels::KvLayout layout;
    const StepSpeed* speed = nullptr;
};

Json toJson(const RunReport& report);
std::string toText(const RunReport& report, bool withTexts);

} // namespace kvatlas::app

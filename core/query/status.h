// SPDX-License-Identifier: Apache-2.0
// The figures of the status bar. Pure; any thread.
#pragma once

#include "core/query/number_text.h"
#include "core/state/snapshot.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::query {

struct StatusFigures {
    Step step = 0;
    std::optional<double> prefillPerSecond, decodePerSecond; // tokens; none without an earlier snapshot of the same run
    std::uint64_t kvBytes = 0;                               // of the device tier: every block that is not free
    std::uint64_t limitBytes = 0;                            // capacity of the device tier
    std::uint64_t activeBytes = 0;                           // active blocks
    double wasteFraction = 0; // 1 - used slots / slots of active and reserved blocks; 0 when there are none
    double wasteInsideFraction = 0, wasteReservedFraction = 0; // its two parts
    std::uint32_t running = 0, waiting = 0, preempted = 0;     // requests
};

// `before`: an earlier snapshot (about a second ago), or null.
StatusFigures statusOf(const state::Snapshot& now, const state::Snapshot* before);

struct StatusItem {
    std::string name, value; // "KV", "59.1 MiB of 64.0 MiB"
    friend bool operator==(const StatusItem&, const StatusItem&) = default;
};

// step, tok/s, KV, active, waste, requests: always the same items, an en dash for what is not known.
std::vector<StatusItem> statusItems(const StatusFigures& figures, Thousands separator = Thousands::NoBreak);

} // namespace kvatlas::query

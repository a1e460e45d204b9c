// SPDX-License-Identifier: Apache-2.0
// One row per step and one per request: what the timeline draws, what the session file keeps for people to read with
// SQL, and what reports are computed from. Folded from events by core/state/run_history. Plain values.
#pragma once

#include "core/base/ids.h"
#include "core/trace/event.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kvatlas::trace {

struct StepRow {
    Step step = 0;
    std::int64_t startNs = 0, endNs = 0; // since RunStarted
    std::int64_t computeNs = 0, waitNs = 0;
    std::uint32_t prefillTokens = 0, decodeTokens = 0; // computed in this step
    std::uint32_t sequences = 0;                       // in this step's batch
    std::uint32_t waitingRequests = 0;
    // After the step, over all pools of the device tier. active + cached + reserved + free = capacity.
    std::uint64_t activeBytes = 0, cachedBytes = 0, reservedBytes = 0, capacityBytes = 0;
    std::uint64_t usedBytes = 0; // of active blocks: slots that hold a token; active - used = waste inside blocks
    std::uint32_t activeBlocks = 0, cachedBlocks = 0, reservedBlocks = 0, freeBlocks = 0;
    std::uint64_t stateHash = 0;
    friend bool operator==(const StepRow&, const StepRow&) = default;
};

struct RequestRow {
    RequestId request;
    std::string title;
    std::uint32_t promptTokens = 0, outputTokens = 0, cachedTokens = 0, preemptions = 0;
    Step arrivedStep = 0;
    std::int64_t arrivedNs = 0;
    std::optional<Step> admittedStep, firstTokenStep, finishedStep;
    std::optional<std::int64_t> firstTokenNs, finishedNs;
    std::optional<FinishReason> finishReason;
    std::string detail; // of RequestFinished
    friend bool operator==(const RequestRow&, const RequestRow&) = default;
};

// A request had no blocks after one step and got them back before another.
struct PreemptionGap {
    RequestId request;
    Step preempted = 0;
    std::optional<Step> resumed;  // or finished; none: not yet
    std::optional<Step> caughtUp; // sampled again, all recomputed; or preempted again, or finished; none: not yet
    friend bool operator==(const PreemptionGap&, const PreemptionGap&) = default;
};

} // namespace kvatlas::trace

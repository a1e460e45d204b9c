// SPDX-License-Identifier: Apache-2.0
// Memory over time and the request bars, from the rows of steps and requests that a source answers with. At most two
// points per pixel column, and only bars that are seen. Pure; any thread.
#pragma once

#include "core/query/memory_map.h"
#include "core/trace/rows.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvatlas::query {

// Steps [firstStep, lastStep] over the pixels [leftPx, leftPx + widthPx], all as wide: step k covers what lies between
// xOf(k - 1) and xOf(k), and the state after it stands at xOf(k), where the cursor is.
struct StepAxis {
    Step firstStep = 0, lastStep = 0;
    double leftPx = 0, widthPx = 1;

    double xOf(double step) const;
    Step stepAt(double x) const; // whose state is the nearest, within the axis
};

// ---- Memory over time. Values are tops of a stack in bytes: used <= active <= cached <= reserved.
struct MemoryPoint {
    Step step = 0;
    double x = 0;
    double usedTop = 0;     // active blocks: slots that hold a token
    double activeTop = 0;   // + waste inside active blocks
    double cachedTop = 0;   // + cached and evictable
    double reservedTop = 0; // + reserved
    double capacity = 0;
    friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

// Rows ascending by step. Where a pixel column holds more than two rows, its lowest and its highest total are kept, in
// the order of their steps: each point is a state that was, none is an average.
std::vector<MemoryPoint> memorySeries(std::span<const trace::StepRow> rows, const StepAxis& axis);

// ---- Requests
struct BarSpan {
    double from = 0, to = 0; // pixels
    bool empty() const { return to <= from; }
    friend bool operator==(const BarSpan&, const BarSpan&) = default;
};

struct RequestBar {
    RequestId request;
    int hue = -1;
    std::uint32_t lane = 0;
    BarSpan waiting, prefill, decode; // in this order, touching; empty when it never came to it
    std::vector<BarSpan> gaps;        // preempted, inside prefill and decode
    std::vector<BarSpan> recomputed;  // prefill once more after a gap
    bool running = false;             // goes on at the newest step
    bool numbered = false;            // wide enough for its number (9 px and more)
    std::uint32_t preemptions = 0;
    trace::FinishReason finishReason = trace::FinishReason::EndToken; // when !running
    std::string text;                                                 // "request 16, Museum guide, 42 of output"
};

struct RequestBars {
    std::vector<RequestBar> bars; // by lane, then from left to right
    std::uint32_t lanes = 0;
};

// Packs the bars that touch the axis into as few lanes as a first-fit in order of arrival gives, at least minGapPx
// apart. `newestStep`: where bars of unfinished requests end.
RequestBars requestBars(std::span<const trace::RequestRow> rows, const StepAxis& axis, Step newestStep,
                        std::span<const trace::PreemptionGap> gaps = {}, double minGapPx = 4);

// ---- Ticks: multiples of a power of two, at most `most` (at least 2) of them.
struct Tick {
    double value = 0;
    std::string text;
    friend bool operator==(const Tick&, const Tick&) = default;
};

std::vector<Tick> stepTicks(Step first, Step last, int most); // 0 128 256
// From 0 up to at most maxBytes, all in the unit of the largest: "0", "32", "64". The unit comes apart.
struct ByteTicks {
    std::vector<Tick> ticks;
    std::string unit; // "MiB"
};
ByteTicks byteTicks(std::uint64_t maxBytes, int most);

} // namespace kvatlas::query

// SPDX-License-Identifier: Apache-2.0
// One event of every kind, with no field at its default. One thread.
#pragma once

#include "core/trace/event.h"

#include <vector>

namespace kvatlas::trace::test {

inline std::vector<Event> everyEvent() {
    RunStarted run;
    run.model = {"SmolLM2", std::string(64, 'f'), "llama", 30, 9, 3, 64, 8192, 49152, 134'515'008};
    run.pools = {{PoolId(0), Tier::Host, "f16", "q8_0", 182, 16, 368'640},
                 {PoolId(1), Tier::Disk, "f32", "f32", 1, 1, 1}};
    run.backend = "cpu, AVX-512 VNNI";
    run.arithmetic = "exact";
    run.threads = 2;
    run.strategyJson = R"({"version": 1})";
    run.scenarioJson = R"({"requests": []})";
    run.seed = 0xFFFF'FFFF'FFFF'FFFFu;
    run.programVersion = "0.1.0";
    run.machine = "Caf\xC3\xA9";
    TokenSampled sampled{RequestId(7), SequenceId(9), 4'000'000'000u, 49151, {}};
    for (std::size_t i = 0; i < sampled.top.size(); ++i)
        sampled.top[i] = {static_cast<TokenId>(100 + i), 0.5f / static_cast<float>(i + 1)};
    const std::vector<EventBody> bodies{
        run,
        CommandApplied{"cancel", RequestId(3)},
        RequestArrived{RequestId(1ull << 40), {0, 127, 128, 2'147'483'647, -1}, 64, "Four chats"},
        RequestAdmitted{RequestId(2), 48},
        RequestPreempted{RequestId(3), PreemptionReason::Command, 17},
        RequestResumed{RequestId(4)},
        RequestFinished{RequestId(5), FinishReason::Refused, 12, "182 blocks are fewer than 200"},
        SequenceStarted{SequenceId(6), RequestId(7)},
        SequenceEnded{SequenceId(8)},
        StepStarted{{{SequenceId(9), 10, 11, true}, {SequenceId(12), 13, 1, false}}, 14},
        StepEnded{15, 16, 0x0123'4567'89AB'CDEFu},
        BlocksAllocated{
            SequenceId(17), 18, {BlockId(PoolId(0), 19), BlockId(PoolId(63), 0x03FF'FFFF), BlockId(PoolId(1), 2)}},
        BlocksReserved{SequenceId(20), 21, BlockId(PoolId(2), 22), 23},
        BlocksReleased{SequenceId(24), ReleaseReason::Preempted, {BlockId(PoolId(0), 25), BlockId(PoolId(0), 3)}},
        SlotsWritten{SequenceId(26), 27, 28},
        sampled,
        KernelSpan{KernelKind::Attend, LayerId(29), 30, 31, 32, 33},
        MemoryCounter{34, 35},
        EventsLost{36},
    };
    std::vector<Event> events;
    Step step = 5;
    std::int64_t ns = 1'000'000;
    for (const EventBody& body : bodies) {
        events.push_back({step, ns, body});
        step += 1000;
        ns -= 7; // threads may report out of order; the codec does not care
    }
    return events;
}

} // namespace kvatlas::trace::test

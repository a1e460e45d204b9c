// SPDX-License-Identifier: Apache-2.0
#include "app/step_speed.h"

#include <gtest/gtest.h>

namespace kvatlas::app {
namespace {

void step(StepSpeed& speed, std::int64_t startNs, std::int64_t endNs, std::uint32_t prefill, std::uint32_t decode) {
    trace::StepStarted started;
    if (prefill > 0)
        started.batch.push_back({SequenceId(1), 0, prefill, true});
    for (std::uint32_t i = 0; i < decode; ++i)
        started.batch.push_back({SequenceId(2 + i), 9, 1, false});
    const std::vector<trace::Event> events{{0, startNs, started}, {0, endNs, trace::StepEnded{}}};
    speed.onEvents(events);
}

TEST(StepSpeed, isNothingBeforeTheFirstToken) {
    const StepSpeed speed;
    EXPECT_EQ(speed.prefillTokensPerSecond(), std::nullopt);
    EXPECT_EQ(speed.decodeTokensPerSecond(), std::nullopt);
}

TEST(StepSpeed, countsDecodeInStepsThatDoNothingElse) {
    StepSpeed speed;
    step(speed, 0, 1'000'000'000, 100, 0);                 // 100 tokens in 1 s
    step(speed, 1'000'000'000, 3'000'000'000, 50, 4);      // 50 more in 2 s, beside 4 decoding sequences
    step(speed, 5'000'000'000, 5'500'000'000, 0, 4);       // 4 in 0.5 s; the pause before is nobody's
    EXPECT_DOUBLE_EQ(*speed.prefillTokensPerSecond(), 50); // 150 in 3 s
    EXPECT_DOUBLE_EQ(*speed.decodeTokensPerSecond(), 8);
}

TEST(StepSpeed, takesMixedStepsForDecodeWhereThereAreNoOthers) {
    StepSpeed speed;
    step(speed, 0, 2'000'000'000, 50, 4);
    EXPECT_DOUBLE_EQ(*speed.decodeTokensPerSecond(), 2);
}

} // namespace
} // namespace kvatlas::app

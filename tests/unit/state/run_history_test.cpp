// SPDX-License-Identifier: Apache-2.0
#include "core/state/run_history.h"
#include "tests/support/state_notation.h"
#include "tests/support/synthetic_run.h"

#include <gtest/gtest.h>

namespace kvatlas::state {
namespace {

using test::StateNotation;
using test::SyntheticOptions;
using test::SyntheticRun;

struct Folded {
    std::vector<trace::StepRow> steps;
    RunHistory history;
};

Folded fold(const std::vector<trace::Event>& events) {
    Folded out;
    CacheState state;
    for (const trace::Event& event : events) {
        EXPECT_TRUE(state.apply(event));
        if (const auto row = out.history.apply(event, state))
            out.steps.push_back(*row);
    }
    return out;
}

// 4 slots of 1,000 bytes per block; by hand.
TEST(RunHistory, oneRowPerStepWithTheBytesAfterIt) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=8 tokens=4 | arrive r1 6 | arrive r2 3 | admit r1 | start s1 r1 | reserve s1 b2 4 |"
                      "alloc s1 b2 b3 | step s1:6p | write s1 6 | sample r1 5 | end |"
                      "step s1:1 | write s1 1 | sample r1 6 | free s1 | stop s1 | finish r1 output=2 | end"),
              "");
    const Folded folded = fold(run.events);
    ASSERT_EQ(folded.steps.size(), 2u);
    const trace::StepRow& first = folded.steps[0];
    EXPECT_EQ(first.step, 0u);
    EXPECT_EQ(first.prefillTokens, 6u);
    EXPECT_EQ(first.decodeTokens, 0u);
    EXPECT_EQ(first.sequences, 1u);
    EXPECT_EQ(first.activeBytes, 8'000u);
    EXPECT_EQ(first.usedBytes, 6'000u);
    EXPECT_EQ(first.reservedBytes, 8'000u);
    EXPECT_EQ(first.cachedBytes, 0u);
    EXPECT_EQ(first.capacityBytes, 32'000u);
    EXPECT_EQ(first.activeBlocks, 2u);
    EXPECT_EQ(first.reservedBlocks, 2u);
    EXPECT_EQ(first.freeBlocks, 4u);
    EXPECT_EQ(first.computeNs, 1);
    EXPECT_EQ(first.startNs, 7'000);
    EXPECT_EQ(first.endNs, 10'000);
    const trace::StepRow& second = folded.steps[1];
    EXPECT_EQ(second.decodeTokens, 1u);
    EXPECT_EQ(second.freeBlocks, 8u);
    EXPECT_EQ(second.activeBytes, 0u);
}

TEST(RunHistory, oneRowPerRequestWithItsMilestones) {
    StateNotation run;
    ASSERT_EQ(
        run.run("run blocks=8 tokens=4 | step | end | arrive r1 6 | step | end | admit r1 cached=4 | start s1 r1 |"
                "alloc s1 b2 b3 | step s1:6p | write s1 6 | sample r1 5 | end | step s1:1 | write s1 1 |"
                "sample r1 6 | end | preempt r1 | free s1 | stop s1 | step | end | finish r1 output=2 | step | end"),
        "");
    Folded folded = fold(run.events);
    const trace::RequestRow& row = folded.history.requests().at(RequestId(1));
    EXPECT_EQ(row.promptTokens, 6u);
    EXPECT_EQ(row.cachedTokens, 4u);
    EXPECT_EQ(row.outputTokens, 2u);
    EXPECT_EQ(row.preemptions, 1u);
    EXPECT_EQ(row.arrivedStep, 1u);
    EXPECT_EQ(row.admittedStep, 2u);
    EXPECT_EQ(row.firstTokenStep, 2u);
    EXPECT_EQ(row.finishedStep, 5u);
    EXPECT_EQ(row.finishReason, trace::FinishReason::EndToken);
    folded.history.forgetFinished();
    EXPECT_TRUE(folded.history.requests().empty());
}

TEST(RunHistory, kindsOfBlockAlwaysAddUpToThePool) {
    SyntheticOptions options;
    options.contiguous = true;
    options.poolBlocks = 60;
    for (const trace::StepRow& row : fold(SyntheticRun::all(options)).steps) {
        EXPECT_EQ(row.activeBlocks + row.cachedBlocks + row.reservedBlocks + row.freeBlocks, 60u);
        EXPECT_EQ(row.capacityBytes, 60u * 16 * 23'040);
        EXPECT_EQ(row.activeBytes, std::uint64_t{row.activeBlocks} * 16 * 23'040);
        EXPECT_LE(row.usedBytes, row.activeBytes);
    }
}

} // namespace
} // namespace kvatlas::state

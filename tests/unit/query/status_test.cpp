// SPDX-License-Identifier: Apache-2.0
#include "core/query/status.h"
#include "tests/support/state_notation.h"

#include <gtest/gtest.h>

namespace kvatlas::query {
namespace {

using test::StateNotation;

// 8 blocks of 4,000 bytes: 2 active with 6 of 8 slots, 2 reserved.
const char* const kRun = "run blocks=8 tokens=4 | arrive r1 6 | arrive r2 3 | admit r1 | start s1 r1 | alloc s1 b0 b3 |"
                         "reserve s1 b4 2 | step s1:6p | write s1 6 | sample r1 3 | end";

TEST(Status, countsBytesAndWaste) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const StatusFigures figures = statusOf(*run.state.snapshot(), nullptr);
    EXPECT_EQ(figures.kvBytes, 16'000u);
    EXPECT_EQ(figures.limitBytes, 32'000u);
    EXPECT_EQ(figures.activeBytes, 8'000u);
    EXPECT_DOUBLE_EQ(figures.wasteFraction, 10.0 / 16);
    EXPECT_DOUBLE_EQ(figures.wasteInsideFraction, 2.0 / 16);
    EXPECT_DOUBLE_EQ(figures.wasteReservedFraction, 8.0 / 16);
    EXPECT_EQ(figures.running, 1u);
    EXPECT_EQ(figures.waiting, 1u);
    EXPECT_FALSE(figures.decodePerSecond || figures.prefillPerSecond);
}

TEST(Status, measuresTokensPerSecondBetweenTwoSnapshots) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const auto before = run.state.snapshot();
    ASSERT_EQ(run.run("step s1:1 | write s1 1 | sample r1 3"), "");
    ASSERT_TRUE(run.state.apply({1, before->ns + 500'000'000, trace::StepEnded{}}));
    const auto now = run.state.snapshot();
    const StatusFigures figures = statusOf(*now, before.get());
    EXPECT_DOUBLE_EQ(figures.prefillPerSecond.value(), 0);
    EXPECT_DOUBLE_EQ(figures.decodePerSecond.value(), 2);
    // Backwards in time, the same moment, another run: nothing is measured.
    EXPECT_FALSE(statusOf(*before, now.get()).decodePerSecond);
    EXPECT_FALSE(statusOf(*now, now.get()).decodePerSecond);
    StateNotation other;
    ASSERT_EQ(other.run("run blocks=9 tokens=4"), "");
    EXPECT_FALSE(statusOf(*now, other.state.snapshot().get()).decodePerSecond);
}

TEST(Status, onlyTheDeviceTierCounts) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    state::Snapshot snapshot = *run.state.snapshot();
    snapshot.pools[0].shape.tier = trace::Tier::Host;
    EXPECT_EQ(statusOf(snapshot, nullptr).limitBytes, 0u);
    EXPECT_EQ(statusOf(snapshot, nullptr).wasteFraction, 0);
}

TEST(Status, itemsAreAlwaysTheSame) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    EXPECT_EQ(statusItems(statusOf(*run.state.snapshot(), nullptr)),
              (std::vector<StatusItem>{{"step", "0"},
                                       {"tok/s", "\xE2\x80\x93"},
                                       {"KV", "15.6 KiB of 31.2 KiB"},
                                       {"active", "7.81 KiB"},
                                       {"waste", "62.5 %"},
                                       {"requests", "1 running, 1 waiting"}}));
    StatusFigures figures;
    figures.prefillPerSecond = 1000;
    figures.decodePerSecond = 143;
    const auto items = statusItems(figures);
    EXPECT_EQ(items[1].value, "143 decode, 1\xC2\xA0"
                              "000 prefill");
    EXPECT_EQ(items[2].value, "\xE2\x80\x93");
    figures.prefillPerSecond = 0;
    EXPECT_EQ(statusItems(figures)[1].value, "143 decode");
}

} // namespace
} // namespace kvatlas::query

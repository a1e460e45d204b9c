// SPDX-License-Identifier: Apache-2.0
#include "core/state/cache_state.h"
#include "core/state/invariants.h"
#include "tests/support/state_notation.h"
#include "tests/unit/trace/every_event.h"

#include <gtest/gtest.h>

namespace kvatlas::state {
namespace {

using test::StateNotation;

const char* const kTwoSequences =
    "run blocks=8 tokens=4 | arrive r1 6 | arrive r2 3 | admit r1 | start s1 r1 | admit r2 |"
    "start s2 r2 | alloc s1 b0 b3 | alloc s2 b1 | step s1:6p s2:3p | write s1 6 |"
    "write s2 3 | sample r2 9 | end";

TEST(CacheState, foldsAllocationAndWriting) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    EXPECT_EQ(run.print(), "r1 running 6+0 preempted=0\n"
                           "r2 running 3+1 preempted=0\n"
                           "s1 r1 written=6 table: b0 b3\n"
                           "s2 r2 written=3 table: b1\n"
                           "b0 active refs=1 used=4 owner=s1[0]\n"
                           "b1 active refs=1 used=3 owner=s2[0]\n"
                           "b3 active refs=1 used=2 owner=s1[1]\n"
                           "pool free=5 active=3 cached=0 reserved=0 used=9\n");
}

TEST(CacheState, decodeFillsTheBlockAndTakesTheNext) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    ASSERT_EQ(run.run("step s2:1 | write s2 1 | sample r2 10 | end | expect b1 active used=4"), "");
    EXPECT_NE(run.run("step s2:1 | write s2 1"), ""); // no room
    EXPECT_EQ(run.run("alloc s2 b7 | write s2 1 | end | expect b7 active used=1 owner=s2"), "");
}

TEST(CacheState, aFinishedRequestLeavesNothingBehind) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    ASSERT_EQ(run.run("free s1 | stop s1 | finish r1 | finish r2 | free s2 | stop s2 | step | end"), "");
    EXPECT_EQ(run.print(), "pool free=8 active=0 cached=0 reserved=0 used=0\n");
    EXPECT_EQ(run.state.stateHash(), 0u);
}

TEST(CacheState, reservedBlocksTurnActiveWhereTheyStand) {
    StateNotation run;
    ASSERT_EQ(
        run.run("run blocks=8 tokens=4 | arrive r1 6 | admit r1 | start s1 r1 | reserve s1 b2 4 | alloc s1 b2 b3 |"
                "step s1:6p | write s1 6 | sample r1 5 | end"),
        "");
    EXPECT_EQ(run.print(), "r1 running 6+1 preempted=0\n"
                           "s1 r1 written=6 table: b2 b3 b4 b5\n"
                           "b2 active refs=1 used=4 owner=s1[0]\n"
                           "b3 active refs=1 used=2 owner=s1[1]\n"
                           "b4 reserved refs=1 used=0 owner=s1[2]\n"
                           "b5 reserved refs=1 used=0 owner=s1[3]\n"
                           "pool free=4 active=2 cached=0 reserved=2 used=6\n");
    EXPECT_NE(run.run("alloc s1 b0"), "");       // b4 is reserved for that place
    EXPECT_NE(run.run("alloc s1 b5"), "");       // and comes first
    EXPECT_EQ(run.run("alloc s1 b4 b5 b0"), ""); // beyond the reservation any free block will do
    EXPECT_EQ(run.run("expect b0 active owner=s1 | free s1 | expect b5 free refs=0"), "");
}

TEST(CacheState, aPreemptedRequestGoesOnWithANewSequence) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    ASSERT_EQ(run.run("preempt r2 | free s2 | stop s2 | step | end | resume r2 | start s3 r2 | alloc s3 b6 |"
                      "step s3:4p | write s3 4 | sample r2 7 | end"),
              "");
    EXPECT_EQ(run.print(), "r1 running 6+0 preempted=0\n"
                           "r2 running 3+2 preempted=1\n"
                           "s1 r1 written=6 table: b0 b3\n"
                           "s3 r2 written=4 table: b6\n"
                           "b0 active refs=1 used=4 owner=s1[0]\n"
                           "b3 active refs=1 used=2 owner=s1[1]\n"
                           "b6 active refs=1 used=4 owner=s3[0]\n"
                           "pool free=5 active=3 cached=0 reserved=0 used=10\n");
}

struct Refusal {
    const char* line;
    const char* saysWhat;
};

class RefusedAfterTwoSequences : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedAfterTwoSequences, leavesTheStateAsItWas) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    const auto before = run.state.encode();
    const std::string problem = run.run(GetParam().line);
    EXPECT_NE(problem.find(GetParam().saysWhat), std::string::npos) << problem;
    EXPECT_EQ(run.state.encode(), before);
}

INSTANTIATE_TEST_SUITE_P(
    CacheState, RefusedAfterTwoSequences,
    testing::Values(
        Refusal{"run", "has started already"}, Refusal{"arrive r1 3", "there already"},
        Refusal{"arrive r0 3", "there already"}, Refusal{"arrive r3 1000", "token 1000 of request 3"},
        Refusal{"admit r1", "request 1 is running, not waiting"}, Refusal{"admit r9", "request 9 is unknown"},
        Refusal{"resume r1", "not preempted"}, Refusal{"finish r9", "unknown or finished"},
        Refusal{"finish r1 output=1", "0 output tokens, not 1"},
        Refusal{"start s2 r1", "sequence 2 starts after sequence 2"}, Refusal{"start s3 r1", "has sequence 1 already"},
        Refusal{"start s3 r9", "request 9 is unknown"}, Refusal{"stop s1", "still holds 2 blocks"},
        Refusal{"stop s9", "sequence 9 is unknown"}, Refusal{"alloc s1 b0", "block 0 of pool 0 is active, not free"},
        Refusal{"alloc s1 b8", "no block 8"}, Refusal{"alloc s1 b4 b8", "no block 8"},
        Refusal{"alloc s1 b4 b4", "named twice"}, Refusal{"alloc s1 b4 at=1", "2 active blocks"},
        Refusal{"alloc s1 b4 at=3", "2 active blocks"}, Refusal{"alloc s1", "no block is named"},
        Refusal{"alloc s9 b4", "sequence 9 is unknown"}, Refusal{"reserve s1 b4 5", "no 5 blocks from 4 on"},
        Refusal{"reserve s1 b2 2", "block 3 of pool 0 is active"}, Refusal{"reserve s1 b4 0", "no block is named"},
        Refusal{"reserve s1 b4 1 at=1", "has 2 blocks"}, Refusal{"reserve s1 b9 1", "no block 9"},
        Refusal{"free s1 b0", "holds 2 blocks, but 1 are released"},
        Refusal{"free s1 b0 b1", "block 1 of pool 0 is not in the table of sequence 1"},
        Refusal{"free s1 b3 b3", "named twice"}, Refusal{"free s1 b3 b9", "not in the table"},
        Refusal{"write s1 1", "no step is running"}, Refusal{"sample r1 4", "no step is running"},
        Refusal{"end", "no step is running"}, Refusal{"step s1:1", "only 6 tokens"}, Refusal{"step s2:1 s2:1", "twice"},
        Refusal{"step s2:0", "no token"}, Refusal{"step s2:1 at=2", "cannot begin at 2"},
        Refusal{"step s9:1", "sequence 9 is unknown"}));

class RefusedInsideAStep : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedInsideAStep, leavesTheStateAsItWas) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    ASSERT_EQ(run.run("step s2:1"), "");
    const auto before = run.state.encode();
    const std::string problem = run.run(GetParam().line);
    EXPECT_NE(problem.find(GetParam().saysWhat), std::string::npos) << problem;
    EXPECT_EQ(run.state.encode(), before);
}

INSTANTIATE_TEST_SUITE_P(
    CacheState, RefusedInsideAStep,
    testing::Values(Refusal{"step s1:1", "step 1 has not ended"}, Refusal{"end", "3 slots written, not up to 4"},
                    Refusal{"write s2 2", "request 2 has only 4 tokens"}, Refusal{"write s2 0", "no slot"},
                    Refusal{"write s2 1 at=2", "none can come at 2"}, Refusal{"write s2 4294967295", "only 4 tokens"},
                    Refusal{"sample r2 1000", "not in the vocabulary"},
                    Refusal{"sample r2 1 at=3", "none can come at 3"}, Refusal{"sample r9 1", "request 9 is unknown"}));

TEST(CacheState, refusesADifferentHashOfTheEngine) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    EXPECT_NE(run.run("step | end hash=1").find("state hash is 0000000000000001"), std::string::npos);
}

TEST(CacheState, aSequenceWithoutItsRequestMustEndBeforeTheStepDoes) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    EXPECT_NE(run.run("finish r1 | step").find("sequence 1 goes on"), std::string::npos);
    EXPECT_EQ(run.run("free s1 | stop s1 | step | end"), "");
    EXPECT_NE(run.run("preempt r2 | step").find("sequence 2 goes on"), std::string::npos);
    EXPECT_NE(run.run("resume r2").find("still has sequence 2"), std::string::npos);
}

TEST(CacheState, stepsNeverGoBackAndMayBeSkipped) {
    StateNotation run;
    ASSERT_EQ(run.run(kTwoSequences), "");
    EXPECT_FALSE(run.state.apply({0, 0, trace::CommandApplied{"pause", {}}})); // step 0 has ended
    EXPECT_TRUE(run.state.apply({5, 0, trace::CommandApplied{"pause", {}}}));
    EXPECT_FALSE(run.state.apply({4, 0, trace::StepStarted{}}));
    EXPECT_TRUE(run.state.apply({9, 0, trace::StepStarted{}}));
    EXPECT_FALSE(run.state.apply({10, 0, trace::StepEnded{}}));
    EXPECT_EQ(run.state.step(), 9u);
}

TEST(CacheState, nothingButSamplesComesBeforeTheRun) {
    for (const trace::Event& event : trace::test::everyEvent()) {
        CacheState state;
        const bool harmless = trace::classOf(event.kind()) == trace::EventClass::Sample ||
                              event.kind() == trace::EventKind::RunStarted ||
                              event.kind() == trace::EventKind::EventsLost;
        EXPECT_EQ(state.apply(event).has_value(), harmless) << trace::nameOf(event.kind());
    }
    CacheState state;
    EXPECT_FALSE(state.apply({}));
}

TEST(CacheState, refusesPoolsThatCannotBe) {
    const auto start = [](std::vector<trace::PoolShape> pools) {
        trace::RunStarted run;
        run.pools = std::move(pools);
        return CacheState().apply({0, 0, run}).has_value();
    };
    const trace::PoolShape good{PoolId(0), trace::Tier::Device, "f16", "f16", 8, 16, 1000};
    trace::PoolShape second = good;
    second.pool = PoolId(1);
    EXPECT_TRUE(start({}));
    EXPECT_TRUE(start({good, second}));
    EXPECT_FALSE(start({second}));
    EXPECT_FALSE(start({good, good}));
    auto wrong = good;
    wrong.blockTokens = 0;
    EXPECT_FALSE(start({wrong}));
    wrong = good;
    wrong.blocks = kMaxBlocks + 1;
    EXPECT_FALSE(start({wrong}));
    wrong = good;
    wrong.blockBytes = ~std::uint64_t{0};
    EXPECT_FALSE(start({wrong}));
}

TEST(CacheState, blocksOfOtherSizesDoNotMixInATable) {
    trace::RunStarted run;
    run.pools = {{PoolId(0), trace::Tier::Device, "f16", "f16", 8, 16, 1000},
                 {PoolId(1), trace::Tier::Device, "f16", "f16", 8, 4, 1000},
                 {PoolId(2), trace::Tier::Host, "f16", "f16", 8, 16, 1000}};
    CacheState state;
    ASSERT_TRUE(state.apply({0, 0, run}));
    ASSERT_TRUE(state.apply({0, 0, trace::RequestArrived{RequestId(1), {1}, 1, ""}}));
    ASSERT_TRUE(state.apply({0, 0, trace::SequenceStarted{SequenceId(1), RequestId(1)}}));
    ASSERT_TRUE(state.apply({0, 0, trace::BlocksAllocated{SequenceId(1), 0, {BlockId(PoolId(0), 1)}}}));
    EXPECT_FALSE(state.apply({0, 0, trace::BlocksAllocated{SequenceId(1), 1, {BlockId(PoolId(1), 1)}}}));
    EXPECT_FALSE(state.apply({0, 0, trace::BlocksReserved{SequenceId(1), 1, BlockId(PoolId(1), 1), 2}}));
    EXPECT_TRUE(state.apply({0, 0, trace::BlocksAllocated{SequenceId(1), 1, {BlockId(PoolId(2), 1)}}}));
}

} // namespace
} // namespace kvatlas::state

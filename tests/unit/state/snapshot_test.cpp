// SPDX-License-Identifier: Apache-2.0
#include "core/state/cache_state.h"
#include "core/state/invariants.h"
#include "tests/support/state_notation.h"

#include <gtest/gtest.h>

namespace kvatlas::state {
namespace {

using test::StateNotation;

TEST(Snapshot, sharesTheChunksThatDidNotChange) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=2048 tokens=4 | arrive r1 8 | admit r1 | start s1 r1 | alloc s1 b10"), "");
    const auto first = run.state.snapshot();
    ASSERT_EQ(run.run("alloc s1 b300"), "");
    const auto second = run.state.snapshot();
    const auto third = run.state.snapshot();
    ASSERT_EQ(first->pools[0].chunks.size(), 8u);
    for (std::size_t chunk = 0; chunk < 8; ++chunk) {
        EXPECT_EQ(first->pools[0].chunks[chunk] == second->pools[0].chunks[chunk], chunk != 1) << chunk;
        EXPECT_EQ(second->pools[0].chunks[chunk], third->pools[0].chunks[chunk]);
    }
}

// A request that is refused while nothing runs takes the number of the step to come, and begins none.
TEST(Snapshot, saysWhetherAStepRuns) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=8 tokens=4 | arrive r1 6 | admit r1 | start s1 r1 | alloc s1 b0 b3 | step s1:6p"),
              "");
    EXPECT_TRUE(run.state.snapshot()->inStep);
    ASSERT_EQ(run.run("write s1 6 | end"), "");
    EXPECT_FALSE(run.state.snapshot()->inStep);
    ASSERT_EQ(run.run("arrive r2 99 | finish r2"), "");
    EXPECT_FALSE(run.state.snapshot()->inStep);
    EXPECT_FALSE(run.state.snapshot()->stepEnded);
}

TEST(Snapshot, neverChangesAfterItWasTaken) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=8 tokens=4 | arrive r1 6 | admit r1 | start s1 r1 | alloc s1 b0 b3 | step s1:6p"),
              "");
    const auto taken = run.state.snapshot();
    const std::string before = StateNotation::print(*taken);
    const auto tokens = *taken->requests[0].tokens;
    ASSERT_EQ(
        run.run("write s1 6 | sample r1 9 | end | step s1:1 | write s1 1 | sample r1 8 | end | free s1 | stop s1 |"
                "finish r1 | step | end"),
        "");
    EXPECT_EQ(StateNotation::print(*taken), before);
    EXPECT_EQ(*taken->requests[0].tokens, tokens);
    EXPECT_NE(run.print(), before);
}

TEST(Snapshot, saysWhenABlockChangedAndWasWritten) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=8 tokens=4 | step | end | step | end | arrive r1 6 | admit r1 | start s1 r1 |"
                      "alloc s1 b5 b6 | step s1:4p | write s1 4 | end | step s1:2p | write s1 2 | sample r1 3 | end"),
              "");
    auto now = run.state.snapshot();
    EXPECT_EQ(now->pools[0].block(5).changedStep, 2u);
    EXPECT_EQ(now->pools[0].block(5).writtenStep, 2u);
    EXPECT_EQ(now->pools[0].block(6).changedStep, 2u);
    EXPECT_EQ(now->pools[0].block(6).writtenStep, 3u);
    EXPECT_EQ(now->prefillTokens, 6u);
    EXPECT_EQ(now->decodeTokens, 0u);
    EXPECT_TRUE(now->stepEnded);
    ASSERT_EQ(run.run("free s1"), "");
    now = run.state.snapshot();
    EXPECT_EQ(now->step, 4u);
    EXPECT_FALSE(now->stepEnded);
    EXPECT_EQ(now->pools[0].block(5), (BlockState{BlockKind::Free, 0, 0, {}, {}, 0, 4, 0}));
}

// Each check of the invariants can fail.
TEST(Invariants, nameWhatIsBroken) {
    StateNotation run;
    ASSERT_EQ(
        run.run("run blocks=8 tokens=4 | arrive r1 6 | admit r1 | start s1 r1 | alloc s1 b0 b3 | reserve s1 b4 1 |"
                "step s1:6p | write s1 6 | end"),
        "");
    const auto good = run.state.snapshot();
    ASSERT_TRUE(checkInvariants(*good));
    const auto brokenBy = [&](auto change) {
        Snapshot snapshot = *good;
        auto chunk = std::make_shared<BlockChunk>(*snapshot.pools[0].chunks[0]);
        auto table = std::make_shared<std::vector<BlockId>>(*snapshot.sequences[0].table);
        change(snapshot, *chunk, *table);
        snapshot.pools[0].chunks[0] = chunk;
        snapshot.sequences[0].table = table;
        const auto result = checkInvariants(snapshot);
        return result ? std::string("nothing") : result.error().message;
    };
    using Table = std::vector<BlockId>;
    EXPECT_EQ(brokenBy([](Snapshot&, BlockChunk&, Table&) {}), "nothing");
    EXPECT_NE(brokenBy([](Snapshot& s, BlockChunk&, Table&) { ++s.pools[0].counts.free; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot& s, BlockChunk&, Table&) { ++s.pools[0].usedSlots; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[0].references = 2; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[0].kind = BlockKind::Free; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[0].usedSlots = 3; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[3].logical = 0; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[4].usedSlots = 1; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk& c, Table&) { c[7].references = 1; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk&, Table& t) { t.pop_back(); }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk&, Table& t) { t[1] = t[0]; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk&, Table& t) { t[1] = BlockId(PoolId(0), 8); }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot&, BlockChunk&, Table& t) { std::swap(t[1], t[2]); }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot& s, BlockChunk&, Table&) { s.sequences[0].slotsWritten = 7; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot& s, BlockChunk&, Table&) { s.requests[0].outputTokens = 1; }), "nothing");
    EXPECT_NE(brokenBy([](Snapshot& s, BlockChunk&, Table&) { s.requests[0].sequence = SequenceId(2); }), "nothing");
}

} // namespace
} // namespace kvatlas::state

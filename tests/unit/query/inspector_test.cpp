// SPDX-License-Identifier: Apache-2.0
#include "core/query/inspector.h"
#include "tests/support/state_notation.h"

#include <gtest/gtest.h>

namespace kvatlas::query {
namespace {

using test::StateNotation;

const char* const kRun = "run blocks=8 tokens=4 | step | end | arrive r9 6 max=20 | admit r9 cached=2 | start s1 r9 |"
                         "alloc s1 b5 b3 | reserve s1 b6 1 | step s1:6p | write s1 6 | sample r9 77 | end";

std::string print(const std::vector<Fact>& facts) {
    std::string out;
    for (const Fact& fact : facts)
        out += fact.name + ": " + fact.value + "\n";
    return out;
}

TEST(Inspector, saysAllThatIsKnownOfABlock) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const auto facts = blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 3));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->title, "Block 3");
    EXPECT_EQ(print(facts->facts), "State: active\n"
                                   "Tokens: 2 of 4 slots\n"
                                   "Size: 4\xC2\xA0"
                                   "000 B = 3.91 KiB\n"
                                   "Logical index: 1\n"
                                   "Positions: 4\xE2\x80\x93"
                                   "7\n"
                                   "Owner: request 9, sequence 1\n"
                                   "References: 1\n"
                                   "Allocated: step 1\n"
                                   "Last written: step 1\n");
    EXPECT_EQ(facts->usedBy, std::vector<RequestId>{RequestId(9)});
    // Position 6 is the sampled token: known, but its slot is not written yet.
    EXPECT_EQ(facts->slots,
              (std::vector<SlotToken>{
                  {0, 4, 5, true}, {1, 5, 6, true}, {2, 6, std::nullopt, false}, {3, 7, std::nullopt, false}}));
}

TEST(Inspector, freeAndReservedBlocksSayLess) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    auto free = blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 0));
    ASSERT_TRUE(free);
    EXPECT_EQ(print(free->facts), "State: free\nTokens: 0 of 4 slots\nSize: 4\xC2\xA0"
                                  "000 B = 3.91 KiB\nFreed: never used\n");
    EXPECT_TRUE(free->slots.empty());
    EXPECT_TRUE(free->usedBy.empty());
    const auto reserved = blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 6));
    EXPECT_EQ(reserved->facts.front().value, "reserved");
    EXPECT_EQ(reserved->slots.size(), 4u);
    EXPECT_EQ(reserved->slots[0].position, 8u);
    EXPECT_FALSE(reserved->slots[0].written);
    ASSERT_EQ(run.run("free s1"), "");
    free = blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 3));
    EXPECT_EQ(free->facts.back(), (Fact{"Freed", "step 2"}));
    EXPECT_FALSE(blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 8)));
    EXPECT_FALSE(blockFacts(*run.state.snapshot(), BlockId(PoolId(3), 0)));
}

TEST(Inspector, aSharedBlockNamesAllWhoUseIt) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    ASSERT_EQ(run.run("arrive r4 2 | admit r4 | start s2 r4 | alloc s2 b0"), "");
    state::Snapshot snapshot = *run.state.snapshot();
    auto chunk = std::make_shared<state::BlockChunk>(*snapshot.pools[0].chunks[0]);
    (*chunk)[5].references = 2;
    snapshot.pools[0].chunks[0] = chunk;
    snapshot.sequences[1].table = std::make_shared<std::vector<BlockId>>(1, BlockId(PoolId(0), 5));
    const auto facts = blockFacts(snapshot, BlockId(PoolId(0), 5));
    EXPECT_EQ(facts->usedBy, (std::vector<RequestId>{RequestId(4), RequestId(9)}));
    EXPECT_EQ(facts->facts.front().value, "active, shared by 2");
}

TEST(Inspector, aBlockWhoseRequestIsGoneKnowsNoTokens) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    ASSERT_EQ(run.run("finish r9"), "");
    const auto facts = blockFacts(*run.state.snapshot(), BlockId(PoolId(0), 5));
    ASSERT_EQ(facts->slots.size(), 4u);
    EXPECT_TRUE(facts->slots[0].written);
    EXPECT_EQ(facts->slots[0].token, std::nullopt);
}

TEST(Inspector, saysAllThatIsKnownOfARequest) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const auto facts = requestFacts(*run.state.snapshot(), RequestId(9));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->title, "Request 9");
    EXPECT_EQ(print(facts->facts), "State: running\n"
                                   "Prompt: 6 tokens\n"
                                   "Output: 1 of at most 20 tokens\n"
                                   "From the prefix cache: 2 tokens\n"
                                   "Preempted: 0\xC3\x97\n"
                                   "Arrived: step 1\n"
                                   "Slots written: 6\n"
                                   "Blocks: 3\n"
                                   "Size: 12\xC2\xA0"
                                   "000 B = 11.7 KiB\n");
    EXPECT_EQ(facts->blocks.size(), 3u);
    EXPECT_FALSE(requestFacts(*run.state.snapshot(), RequestId(1)));
}

TEST(Inspector, saysHowManyBlocksAWaitingRequestNeeds) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    ASSERT_EQ(run.run("arrive r10 21 max=4"), "");
    const auto facts = requestFacts(*run.state.snapshot(), RequestId(10));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->facts.front(), (Fact{"State", "waiting"}));
    EXPECT_EQ(facts->facts.back(), (Fact{"Blocks needed", "6 at least, free now: 5"}));
}

constexpr Step kLater = 1000;

TEST(Inspector, aFinishedRequestSpeaksFromItsRow) {
    trace::RequestRow row;
    row.request = RequestId(3);
    row.title = "Museum guide";
    row.promptTokens = 112;
    row.outputTokens = 11;
    row.arrivedStep = 4;
    row.arrivedNs = 1'000'000;
    row.admittedStep = 5;
    row.firstTokenStep = 6;
    row.firstTokenNs = 31'000'000;
    row.finishedStep = 16;
    row.finishedNs = 131'000'000;
    row.finishReason = trace::FinishReason::MaxTokens;
    EXPECT_EQ(print(requestFacts(row, kLater).facts), "State: finished: token limit\n"
                                                      "Prompt: 112 tokens\n"
                                                      "Output: 11 tokens\n"
                                                      "From the prefix cache: 0 tokens\n"
                                                      "Preempted: 0\xC3\x97\n"
                                                      "Arrived: step 4\n"
                                                      "First token: step 6\n"
                                                      "Time to first token: 30.0 ms\n"
                                                      "Finished: step 16\n"
                                                      "Time per token: 10.0 ms\n");
    EXPECT_EQ(print(requestFacts(row, 3).facts), "State: to come\nArrives: step 4\n"); // looking back before it came
    row = {};
    row.finishReason = trace::FinishReason::Refused;
    row.detail = "200 blocks are more than the 182 of the pool";
    EXPECT_EQ(requestFacts(row, kLater).facts.back(), (Fact{"Reason", row.detail}));
}

} // namespace
} // namespace kvatlas::query

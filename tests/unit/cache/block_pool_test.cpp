// SPDX-License-Identifier: Apache-2.0
#include "core/cache/block_pool.h"
#include "core/cache/invariants.h"
#include "tests/support/event_log.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kvatlas::cache {
namespace {

class PoolTest : public ::testing::Test {
protected:
    BlockPool& make(std::uint32_t blocks, std::uint32_t blockTokens) {
        pool.emplace(PoolId(0), blocks, blockTokens, events, hash);
        return *pool;
    }
    BlockTable opened() {
        ++sequences;
        return pool->open(SequenceId(sequences), RequestId(sequences));
    }
    BlockTable filled(std::uint32_t tokens) {
        BlockTable table = opened();
        EXPECT_TRUE(pool->grow(table, tokens));
        pool->writeSlots(table, tokens);
        return table;
    }
    static std::vector<std::uint32_t> indexes(const BlockTable& table) {
        std::vector<std::uint32_t> out;
        for (BlockId id : table.blocks())
            out.push_back(id.index());
        return out;
    }
    static std::vector<std::uint32_t> list(std::initializer_list<std::uint32_t> values) { return values; }

    testing::EventLog log;
    ManualClock clock;
    trace::EventEmitter events{log, clock};
    trace::StateHash hash;
    std::optional<BlockPool> pool;
    std::uint32_t sequences = 0;
};

TEST_F(PoolTest, takesBlocksFromTheFrontAndReturnsThemTailFirst) {
    make(6, 4);
    BlockTable a = filled(9), b = filled(4);
    EXPECT_EQ(indexes(a), list({0, 1, 2}));
    EXPECT_EQ(indexes(b), list({3}));
    pool->close(a, trace::ReleaseReason::Finished);
    EXPECT_EQ(pool->freeList(), list({4, 5, 2, 1, 0}));
    EXPECT_EQ(pool->counts(), (BlockCounts{5, 1, 0}));
}

TEST_F(PoolTest, growsOnlyWhenTheLastBlockIsFull) {
    make(3, 4);
    BlockTable a = filled(4);
    EXPECT_EQ(a.activeBlocks(), 1u);
    EXPECT_TRUE(pool->grow(a, 5));
    EXPECT_EQ(a.activeBlocks(), 2u);
    EXPECT_EQ(pool->usedSlots(), 4u);
}

TEST_F(PoolTest, changesNothingWhenBlocksDoNotSuffice) {
    make(3, 4);
    BlockTable a = filled(5), b = opened();
    const auto hashBefore = hash.value();
    events.flush();
    const auto eventsBefore = log.events.size();
    EXPECT_FALSE(pool->grow(b, 5));
    events.flush();
    EXPECT_EQ(log.events.size(), eventsBefore);
    EXPECT_EQ(hash.value(), hashBefore);
    EXPECT_EQ(pool->freeList(), list({2}));
    EXPECT_TRUE(pool->grow(b, 4));
}

TEST_F(PoolTest, reservedRunIsConsecutiveAndLowestThatFits) {
    make(8, 2);
    BlockTable a = filled(4), b = filled(2), c = filled(6); // 0 1 | 2 | 3 4 5 | free 6 7
    pool->close(a, trace::ReleaseReason::Finished);
    BlockTable d = opened();
    ASSERT_TRUE(pool->reserveRun(d, 2));
    EXPECT_EQ(indexes(d), list({0, 1}));
    EXPECT_EQ(pool->counts(), (BlockCounts{2, 4, 2}));
}

TEST_F(PoolTest, waitsForALongEnoughRunThoughEnoughBlocksAreFree) {
    make(6, 1);
    BlockTable a = filled(2), b = filled(2), c = filled(2);
    pool->close(a, trace::ReleaseReason::Finished);
    pool->close(c, trace::ReleaseReason::Finished);
    BlockTable d = opened();
    EXPECT_EQ(pool->counts().free, 4u);
    EXPECT_EQ(pool->longestFreeRun(), 2u);
    EXPECT_FALSE(pool->reserveRun(d, 3));
    pool->close(b, trace::ReleaseReason::Finished);
    ASSERT_TRUE(pool->reserveRun(d, 3));
    EXPECT_EQ(indexes(d), list({0, 1, 2}));
}

TEST_F(PoolTest, reservedBlocksBecomeActiveAsTheyAreNeeded) {
    make(4, 2);
    BlockTable a = opened();
    ASSERT_TRUE(pool->reserveRun(a, 4));
    ASSERT_TRUE(pool->grow(a, 3));
    pool->writeSlots(a, 3);
    EXPECT_EQ(pool->counts(), (BlockCounts{0, 2, 2}));
    EXPECT_EQ(a.reservedBlocks(), 2u);
    events.flush();
    const auto allocated = log.all<trace::BlocksAllocated>();
    ASSERT_EQ(allocated.size(), 1u);
    EXPECT_EQ(allocated[0].blocks, (std::vector{BlockId(PoolId(0), 0), BlockId(PoolId(0), 1)}));
    pool->close(a, trace::ReleaseReason::Preempted);
    EXPECT_EQ(pool->freeList(), list({3, 2, 1, 0}));
    EXPECT_EQ(hash.value(), 0u);
}

TEST_F(PoolTest, reportsEachChangeAsAnEvent) {
    make(4, 2);
    events.setStep(7);
    BlockTable a = filled(3);
    pool->close(a, trace::ReleaseReason::Finished);
    events.flush();
    ASSERT_EQ(log.events.size(), 5u);
    const SequenceId one(1);
    const BlockId first(PoolId(0), 0), second(PoolId(0), 1);
    EXPECT_EQ(log.events[0].body, trace::EventBody(trace::SequenceStarted{one, RequestId(1)}));
    EXPECT_EQ(log.events[1].body, trace::EventBody(trace::BlocksAllocated{one, 0, {first, second}}));
    EXPECT_EQ(log.events[2].body, trace::EventBody(trace::SlotsWritten{one, 0, 3}));
    EXPECT_EQ(log.events[3].body,
              trace::EventBody(trace::BlocksReleased{one, trace::ReleaseReason::Finished, {second, first}}));
    EXPECT_EQ(log.events[4].body, trace::EventBody(trace::SequenceEnded{one}));
    EXPECT_EQ(log.events[4].step, 7u);
}

TEST_F(PoolTest, invariantCheckFindsATableThatWasForgotten) {
    make(4, 2);
    BlockTable a = filled(3);
    const BlockTable* live[] = {&a};
    EXPECT_FALSE(brokenInvariant(*pool, live));
    EXPECT_TRUE(brokenInvariant(*pool, {}));
}

// Without a prefix cache a scenario agrees with an independent model of vLLM's pool up to its first prefix hit.
class PoolScenario : public PoolTest, public ::testing::WithParamInterface<std::pair<const char*, std::size_t>> {};

TEST_P(PoolScenario, givesTheTablesAndFreeQueueOfTheOracle) {
    const auto [file, opsWithoutHit] = GetParam();
    std::ifstream in(std::string(KVATLAS_SOURCE_DIR "/tests/oracle/blockpool/") + file);
    ASSERT_TRUE(in) << file;
    const auto scenario = nlohmann::json::parse(in);
    make(scenario["config"]["blocks"], scenario["config"]["block_size"]);
    std::map<std::string, BlockTable> tables;
    std::size_t at = 0;
    for (const auto& expected : scenario["expected"]["per_op"]) {
        if (expected.value("hit_tokens", 0) > 0)
            break;
        const auto& op = scenario["ops"][at++];
        const std::string request = op["request"], kind = op["op"];
        if (kind == "finish") {
            pool->close(tables.at(request), trace::ReleaseReason::Finished);
        } else {
            const bool admit = kind == "admit";
            const auto tokens = admit ? static_cast<std::uint32_t>(op["tokens"].size()) : 1;
            BlockTable& table = tables[request];
            if (admit)
                table = opened();
            ASSERT_TRUE(pool->grow(table, table.slotsWritten() + tokens));
            pool->writeSlots(table, tokens);
            EXPECT_EQ(indexes(table), expected["table"].get<std::vector<std::uint32_t>>()) << "op " << at;
        }
        EXPECT_EQ(pool->freeList(), expected["free_queue"].get<std::vector<std::uint32_t>>()) << "op " << at;
    }
    EXPECT_EQ(at, opsWithoutHit);
}

INSTANTIATE_TEST_SUITE_P(Oracle, PoolScenario,
                         ::testing::Values(std::pair{"random-b1-p3-s0.json", 27}, std::pair{"random-b2-p6-s6.json", 56},
                                           std::pair{"random-b4-p12-s12.json", 13},
                                           std::pair{"random-b1-p12-s10.json", 10}));

} // namespace
} // namespace kvatlas::cache

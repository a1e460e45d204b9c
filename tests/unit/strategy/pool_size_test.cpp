// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/strategy.h"

#include <gtest/gtest.h>

namespace kvatlas::strategy {
namespace {

// SmolLM2-135M: 30 layers, 3 KV heads of 64 (tests/oracle/model.json).
kernels::KvLayout smol(const Strategy& s) {
    return layoutFor(s, 30, 3, 64);
}

TEST(PoolSize, theDefaultModelGetsTheBlocksThatFitInto64MiB) {
    const Strategy s;
    ASSERT_EQ(smol(s).blockBytes(), 360u * 1024);
    const auto maxModelLen = maxModelLenFor(s, 8192);
    ASSERT_TRUE(maxModelLen);
    EXPECT_EQ(*maxModelLen, 2048u);
    EXPECT_EQ(*poolBlocksFor(s, smol(s), *maxModelLen, 0), 182u); // 65,536 KiB / 360 KiB
}

TEST(PoolSize, autoHoldsOneSequenceOfMaxModelLen) {
    Strategy s;
    s.maxModelLenTokens = 8190;
    EXPECT_EQ(*poolBlocksFor(s, smol(s), *maxModelLenFor(s, 8192), 0), 512u); // ceil(8190 / 16)
}

TEST(PoolSize, aShorterContextOfTheModelCounts) {
    EXPECT_EQ(*maxModelLenFor({}, 512), 512u);
}

TEST(PoolSize, refusesALongerContextThanTheModels) {
    Strategy s;
    s.maxModelLenTokens = 4096;
    const auto refused = maxModelLenFor(s, 2048);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Refused);
    EXPECT_NE(refused.error().message.find("4096"), std::string::npos);
    EXPECT_NE(refused.error().message.find("2048"), std::string::npos);
    EXPECT_FALSE(maxModelLenFor({}, 0));
}

TEST(PoolSize, bytesBlocksAndSharesDecide) {
    Strategy s;
    s.kvMemory = {KvMemory::Kind::Bytes, std::uint64_t{10} * 360 * 1024 + 1, 0};
    EXPECT_EQ(*poolBlocksFor(s, smol(s), 2048, 0), 10u);
    s.kvMemory = {KvMemory::Kind::Share, 0, 0.5};
    EXPECT_EQ(*poolBlocksFor(s, smol(s), 2048, std::uint64_t{40} * 360 * 1024), 20u);
    s.kvMemory = {};
    s.poolBlocks = 7;
    EXPECT_EQ(*poolBlocksFor(s, smol(s), 2048, 0), 7u);
}

TEST(PoolSize, tooLittleMemoryIsSaidWithTheNumbers) {
    Strategy s;
    s.kvMemory = {KvMemory::Kind::Bytes, 1024, 0};
    const auto tooLittle = poolBlocksFor(s, smol(s), 2048, 0);
    ASSERT_FALSE(tooLittle);
    EXPECT_EQ(tooLittle.error().kind, ErrorKind::OutOfMemory);
    EXPECT_NE(tooLittle.error().message.find("360 KiB"), std::string::npos) << tooLittle.error().message;
    s.kvMemory = {};
    s.poolBlocks = 1000;
    EXPECT_EQ(poolBlocksFor(s, smol(s), 2048, 100 << 20).error().kind, ErrorKind::OutOfMemory);
}

TEST(PoolSize, hostileModelShapesNeitherWrapNorDivideByZero) {
    const Strategy s;
    EXPECT_FALSE(poolBlocksFor(s, layoutFor(s, 0, 3, 64), 2048, 0));
    EXPECT_FALSE(poolBlocksFor(s, layoutFor(s, 30, 0, 64), 2048, 0));
    EXPECT_FALSE(poolBlocksFor(s, layoutFor(s, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), 2048, 0));
    EXPECT_FALSE(poolBlocksFor(s, layoutFor(s, 1u << 31, 1u << 31, 4), 2048, 0));
    Strategy tiny;
    tiny.blockTokens = 1;
    EXPECT_FALSE(poolBlocksFor(tiny, layoutFor(tiny, 1, 1, 1), 0xFFFFFFFF, 0)); // 2^32 blocks
}

} // namespace
} // namespace kvatlas::strategy

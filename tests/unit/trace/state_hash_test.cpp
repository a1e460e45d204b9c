// SPDX-License-Identifier: Apache-2.0
#include "core/trace/state_hash.h"

#include <gtest/gtest.h>

#include <set>

namespace kvatlas::trace {
namespace {

const BlockId kBlock(PoolId(1), 131);

// XXH3-64 of the 24 bytes that state_hash.cpp describes, computed with the xxhash package of Python.
TEST(StateHash, elementsHaveFrozenValues) {
    EXPECT_EQ(blockElement(kBlock, BlockKind::Active, 1, 16), 0x37fa0488d860b770u);
    EXPECT_EQ(tableElement(SequenceId(3), 2, kBlock), 0x51d2c64a48a87f15u);
    EXPECT_EQ(sequenceElement(SequenceId(3), RequestId(7), 33), 0xa00d51ee7eee585u);
    EXPECT_EQ(requestElement(RequestId(7), RequestStatus::Running, 30, 4, 1), 0x92cbaed70f5f30f3u);
}

TEST(StateHash, everyFieldOfAnElementCounts) {
    const std::set<std::uint64_t> blocks{
        blockElement(kBlock, BlockKind::Active, 1, 16), blockElement(BlockId(PoolId(0), 131), BlockKind::Active, 1, 16),
        blockElement(kBlock, BlockKind::Reserved, 1, 16), blockElement(kBlock, BlockKind::Active, 2, 16),
        blockElement(kBlock, BlockKind::Active, 1, 15)};
    EXPECT_EQ(blocks.size(), 5u);
    const std::set<std::uint64_t> requests{requestElement(RequestId(7), RequestStatus::Running, 30, 4, 1),
                                           requestElement(RequestId(8), RequestStatus::Running, 30, 4, 1),
                                           requestElement(RequestId(7), RequestStatus::Waiting, 30, 4, 1),
                                           requestElement(RequestId(7), RequestStatus::Running, 31, 4, 1),
                                           requestElement(RequestId(7), RequestStatus::Running, 30, 5, 1),
                                           requestElement(RequestId(7), RequestStatus::Running, 30, 4, 2)};
    EXPECT_EQ(requests.size(), 6u);
}

TEST(StateHash, doesNotDependOnTheOrderOfChanges) {
    StateHash one, other;
    one.add(1);
    one.add(2);
    one.remove(1);
    one.add(3);
    other.add(3);
    other.add(2);
    EXPECT_EQ(one.value(), other.value());
    one.remove(2);
    one.remove(3);
    EXPECT_EQ(one.value(), 0u);
}

} // namespace
} // namespace kvatlas::trace

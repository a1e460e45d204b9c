// SPDX-License-Identifier: Apache-2.0
// Two snapshots show the same state, times apart. One thread.
#pragma once

#include "core/state/snapshot.h"

#include <gtest/gtest.h>

namespace kvatlas::test {

inline void expectSameBlocks(const state::PoolState& a, const state::PoolState& b) {
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.counts, b.counts);
    EXPECT_EQ(a.usedSlots, b.usedSlots);
    ASSERT_EQ(a.shape.blocks, b.shape.blocks);
    for (std::uint32_t i = 0; i < a.shape.blocks; ++i)
        EXPECT_EQ(a.block(i), b.block(i)) << "block " << i;
}

inline void expectSame(const state::Snapshot& a, const state::Snapshot& b) {
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.stepEnded, b.stepEnded);
    EXPECT_EQ(a.inStep, b.inStep);
    EXPECT_EQ(a.stateHash, b.stateHash);
    EXPECT_EQ(a.prefillTokens, b.prefillTokens);
    EXPECT_EQ(a.decodeTokens, b.decodeTokens);
    EXPECT_EQ(a.batch, b.batch);
    EXPECT_EQ(a.waitingRequests, b.waitingRequests);
    ASSERT_EQ(a.run == nullptr, b.run == nullptr);
    if (a.run) {
        EXPECT_EQ(*a.run, *b.run);
    }
    ASSERT_EQ(a.pools.size(), b.pools.size());
    for (std::size_t i = 0; i < a.pools.size(); ++i)
        expectSameBlocks(a.pools[i], b.pools[i]);
    ASSERT_EQ(a.sequences.size(), b.sequences.size());
    for (std::size_t i = 0; i < a.sequences.size(); ++i) {
        EXPECT_EQ(a.sequences[i].sequence, b.sequences[i].sequence);
        EXPECT_EQ(a.sequences[i].request, b.sequences[i].request);
        EXPECT_EQ(a.sequences[i].slotsWritten, b.sequences[i].slotsWritten);
        EXPECT_EQ(*a.sequences[i].table, *b.sequences[i].table);
    }
    ASSERT_EQ(a.requests.size(), b.requests.size());
    for (std::size_t i = 0; i < a.requests.size(); ++i) {
        const state::RequestState &x = a.requests[i], &y = b.requests[i];
        EXPECT_EQ(x.request, y.request);
        EXPECT_EQ(x.title, y.title);
        EXPECT_EQ(x.status, y.status);
        EXPECT_EQ(x.promptTokens, y.promptTokens);
        EXPECT_EQ(x.outputTokens, y.outputTokens);
        EXPECT_EQ(x.cachedTokens, y.cachedTokens);
        EXPECT_EQ(x.maxTokens, y.maxTokens);
        EXPECT_EQ(x.preemptions, y.preemptions);
        EXPECT_EQ(x.arrivedStep, y.arrivedStep);
        EXPECT_EQ(x.sequence, y.sequence);
        EXPECT_EQ(*x.tokens, *y.tokens);
    }
}

} // namespace kvatlas::test

// SPDX-License-Identifier: Apache-2.0
#include "core/query/block_tables.h"
#include "tests/support/state_notation.h"

#include <gtest/gtest.h>

namespace kvatlas::query {
namespace {

using test::StateNotation;

// Request 2 starts before request 1; its table is longer.
const char* const kRun = "run blocks=16 tokens=4 | arrive r1 5 | arrive r2 9 | admit r2 | start s1 r2 | admit r1 |"
                         "start s2 r1 | alloc s1 b7 b3 b9 | reserve s1 b10 2 | alloc s2 b0 b1 | step s1:9p s2:5p |"
                         "write s1 9 | write s2 5 | end";

std::vector<std::uint64_t> requestsOf(const std::vector<TableRow>& rows) {
    std::vector<std::uint64_t> ids;
    for (const TableRow& row : rows)
        ids.push_back(row.request.value);
    return ids;
}

TEST(BlockTables, rowsStandInTheOrderAskedFor) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const auto snapshot = run.state.snapshot();
    EXPECT_EQ(requestsOf(tableRows(*snapshot, TableOrder::Arrival)), (std::vector<std::uint64_t>{1, 2}));
    const auto byLength = tableRows(*snapshot, TableOrder::Length);
    EXPECT_EQ(requestsOf(byLength), (std::vector<std::uint64_t>{2, 1}));
    EXPECT_EQ(byLength[0], (TableRow{0, SequenceId(1), RequestId(2), 1, 9, 5, 3}));
    EXPECT_TRUE(tableRows(state::Snapshot(), TableOrder::Arrival).empty());
}

TEST(BlockTables, cellsShowPhysicalIdsInLogicalOrder) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    const auto snapshot = run.state.snapshot();
    const TableRow row = tableRows(*snapshot, TableOrder::Length)[0];
    const auto cells = tableCells(*snapshot, row, 0, 100);
    std::string labels;
    for (const TableCell& cell : cells)
        labels += cell.label + (cell.reserved ? "r " : cell.partFilled ? "p " : " ");
    EXPECT_EQ(labels, "7 3 9p 10r 11r ");
    EXPECT_DOUBLE_EQ(cells[2].level(), 0.25);
    EXPECT_EQ(cells[0].hue, 1);
    const auto some = tableCells(*snapshot, row, 2, 2);
    ASSERT_EQ(some.size(), 2u);
    EXPECT_EQ(some[0].logical, 2u);
    EXPECT_TRUE(tableCells(*snapshot, row, 5, 2).empty());
    EXPECT_TRUE(tableCells(*snapshot, row, 0xFFFF'FFFF, 0xFFFF'FFFF).empty());
}

TEST(BlockTables, aSharedCellHasNoHue) {
    StateNotation run;
    ASSERT_EQ(run.run(kRun), "");
    state::Snapshot snapshot = *run.state.snapshot();
    auto chunk = std::make_shared<state::BlockChunk>(*snapshot.pools[0].chunks[0]);
    (*chunk)[7].references = 2;
    snapshot.pools[0].chunks[0] = chunk;
    const auto cells = tableCells(snapshot, tableRows(snapshot, TableOrder::Length)[0], 0, 2);
    EXPECT_TRUE(cells[0].shared);
    EXPECT_EQ(cells[0].hue, -1);
    EXPECT_FALSE(cells[1].shared);
}

TEST(BlockTables, severalPoolsAreNamedInTheLabel) {
    trace::RunStarted started;
    started.pools = {{PoolId(0), trace::Tier::Device, "f16", "f16", 8, 4, 1000},
                     {PoolId(1), trace::Tier::Host, "f16", "f16", 8, 4, 1000}};
    state::CacheState state;
    ASSERT_TRUE(state.apply({0, 0, started}));
    ASSERT_TRUE(state.apply({0, 0, trace::RequestArrived{RequestId(1), {1}, 1, ""}}));
    ASSERT_TRUE(state.apply({0, 0, trace::SequenceStarted{SequenceId(1), RequestId(1)}}));
    ASSERT_TRUE(state.apply({0, 0, trace::BlocksAllocated{SequenceId(1), 0, {BlockId(PoolId(1), 6)}}}));
    const auto snapshot = state.snapshot();
    EXPECT_EQ(tableCells(*snapshot, tableRows(*snapshot, TableOrder::Arrival)[0], 0, 1)[0].label, "1:6");
}

TEST(BlockTables, rulerTicksEveryFourBlocks) {
    EXPECT_EQ(rulerTicks(16, 0, 9), (std::vector<RulerTick>{{0, "0"}, {4, "64"}, {8, "128"}}));
    EXPECT_EQ(rulerTicks(16, 5, 4), (std::vector<RulerTick>{{8, "128"}}));
    EXPECT_EQ(rulerTicks(16, 64, 1), (std::vector<RulerTick>{{64, "1\xC2\xA0"
                                                                  "024"}}));
    EXPECT_TRUE(rulerTicks(16, 1, 3).empty());
    EXPECT_EQ(rulerTicks(16, 0, 2, 0).size(), 2u);
}

} // namespace
} // namespace kvatlas::query

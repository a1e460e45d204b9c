// SPDX-License-Identifier: Apache-2.0
#include "core/query/memory_map.h"
#include "tests/support/state_notation.h"
#include "tests/support/synthetic_run.h"

#include <gtest/gtest.h>

namespace kvatlas::query {
namespace {

using test::StateNotation;

// Request 9 has hue 1; blocks 0 and 1 full, 4 half, 5 and 6 reserved.
const char* const kRun =
    "run blocks=8 tokens=4 | arrive r9 10 | admit r9 | start s1 r9 | reserve s1 b0 2 | alloc s1 b0 b1 |"
    "alloc s1 b4 | reserve s1 b5 2 | step s1:10p | write s1 10 | end";

std::shared_ptr<const state::Snapshot> snapshotOf(const char* text) {
    StateNotation run;
    EXPECT_EQ(run.run(text), "");
    return run.state.snapshot();
}

// A block with two references cannot come from this events: made by hand.
state::Snapshot withSharedBlock(std::uint32_t references) {
    state::Snapshot snapshot = *snapshotOf(kRun);
    auto chunk = std::make_shared<state::BlockChunk>(*snapshot.pools[0].chunks[0]);
    (*chunk)[0].references = references;
    (*chunk)[7].kind = state::BlockKind::Cached;
    --snapshot.pools[0].counts.free;
    ++snapshot.pools[0].counts.cached;
    snapshot.pools[0].chunks[0] = chunk;
    return snapshot;
}

std::vector<std::uint8_t> codes(const state::Snapshot& snapshot, ColourBy by, std::uint32_t first = 0,
                                std::size_t count = 8) {
    std::vector<std::uint8_t> out(count, 99);
    blockCodes(snapshot, 0, by, first, out);
    return out;
}

TEST(MemoryMap, levelsCrossAtTheStatedSizes) {
    EXPECT_EQ(levelOf(2), MapLevel::Overview);
    EXPECT_EQ(levelOf(5), MapLevel::Overview);
    EXPECT_EQ(levelOf(6), MapLevel::Cells);
    EXPECT_EQ(levelOf(15), MapLevel::Cells);
    EXPECT_EQ(levelOf(16), MapLevel::Labels);
    EXPECT_EQ(levelOf(47), MapLevel::Labels);
    EXPECT_EQ(levelOf(48), MapLevel::Slots);
}

// The default pool in the view of the 1600x1000 window: look.md wants cells of 20 to 24 px, rows of 20.
TEST(MemoryMap, fitShowsTheDefaultPoolInLabelledCells) {
    const int cellPx = fitCellPx(182, 480, 250);
    EXPECT_GE(cellPx, 20);
    EXPECT_LE(cellPx, 24);
    const MapLayout layout = layOutMap(182, 480, cellPx);
    EXPECT_EQ(layout.columns, 20u);
    EXPECT_EQ(layout.rows, 10u);
    EXPECT_EQ(layout.firstOfRow(9), 180u);
}

TEST(MemoryMap, fitIsTheLargestCellThatShowsEverything) {
    for (const std::uint32_t blocks : {1u, 7u, 182u, 5000u, 65'536u}) {
        const int cellPx = fitCellPx(blocks, 700, 500);
        const MapLayout fits = layOutMap(blocks, 700, cellPx);
        EXPECT_LE(fits.widthPx(), 700) << blocks;
        EXPECT_TRUE(fits.heightPx() <= 500 || cellPx == kMinCellPx) << blocks;
        for (int larger = cellPx + 1; larger <= 47; ++larger)
            EXPECT_GT(layOutMap(blocks, 700, larger).heightPx(), 500) << blocks << " at " << larger;
    }
    EXPECT_EQ(fitCellPx(10'000'000, 700, 500), kMinCellPx);
}

TEST(MemoryMap, everyCellIsFoundWhereItIsDrawn) {
    for (const int cellPx : {2, 3, 6, 16, 23, 40, 60}) {
        const MapLayout layout = layOutMap(77, 500, cellPx);
        for (std::uint32_t i = 0; i < 77; ++i) {
            const PixelRect cell = layout.cell(i);
            EXPECT_EQ(layout.blockAt(cell.x, cell.y), i);
            EXPECT_EQ(layout.blockAt(cell.x + cell.width - 1, cell.y + cell.height - 1), i);
            EXPECT_LE(cell.x + cell.width, layout.widthPx());
            EXPECT_LE(cell.y + cell.height, layout.heightPx());
        }
        EXPECT_EQ(layout.blockAt(-1, 0), std::nullopt);
        EXPECT_EQ(layout.blockAt(0, -1), std::nullopt);
        EXPECT_EQ(layout.blockAt(100'000, 0), std::nullopt);
        EXPECT_EQ(layout.blockAt(0, 100'000), std::nullopt);
    }
    const MapLayout layout = layOutMap(11, 500, 10);
    EXPECT_EQ(layout.rows, 1u);
    EXPECT_EQ(layout.blockAt(layout.cell(10).x + layout.pitchPx(), 0), std::nullopt); // behind the last block
}

TEST(MemoryMap, anEmptyPoolAndANarrowViewAreNoTrouble) {
    EXPECT_EQ(layOutMap(0, 500, 20).heightPx(), 0);
    EXPECT_EQ(layOutMap(0, 500, 20).blockAt(0, 0), std::nullopt);
    EXPECT_EQ(layOutMap(5, 0, 20).columns, 1u);
    EXPECT_EQ(layOutMap(5, -3, 20).rows, 5u);
}

TEST(MemoryMap, asksOnlyForRowsThatAreSeen) {
    EXPECT_EQ(rowsIn(10, 20, 0, 200), (RowRange{0, 10}));
    EXPECT_EQ(rowsIn(10, 20, 39, 41), (RowRange{1, 3}));
    EXPECT_EQ(rowsIn(10, 20, 40, 60), (RowRange{2, 3}));
    EXPECT_EQ(rowsIn(10, 20, -50, 10), (RowRange{0, 1}));
    EXPECT_EQ(rowsIn(10, 20, 190, 900), (RowRange{9, 10}));
    EXPECT_EQ(rowsIn(10, 20, 500, 900), (RowRange{10, 10}));
    EXPECT_EQ(rowsIn(10, 20, 50, 50), (RowRange{0, 0}));
    EXPECT_EQ(rowsIn(0, 20, 0, 100), (RowRange{0, 0}));
}

TEST(MemoryMap, colourByOwnerSaysWhoAndHowFull) {
    using namespace map_code;
    const auto snapshot = snapshotOf(kRun);
    EXPECT_EQ(codes(*snapshot, ColourBy::Owner),
              (std::vector<std::uint8_t>{kOwner + 1, kOwner + 1, kFree, kFree, kOwnerPartFilled + 1, kOwnerReserved + 1,
                                         kOwnerReserved + 1, kFree}));
    EXPECT_EQ(codes(withSharedBlock(4), ColourBy::Owner),
              (std::vector<std::uint8_t>{kShared, kOwner + 1, kFree, kFree, kOwnerPartFilled + 1, kOwnerReserved + 1,
                                         kOwnerReserved + 1, kCached}));
}

TEST(MemoryMap, colourByStateSaysOnlyWhat) {
    using namespace map_code;
    EXPECT_EQ(codes(withSharedBlock(2), ColourBy::State),
              (std::vector<std::uint8_t>{kShared, kActive, kFree, kFree, kPartFilled, kReserved, kReserved, kCached}));
}

TEST(MemoryMap, colourByFormatReferencesAndAge) {
    using namespace map_code;
    EXPECT_EQ(codes(*snapshotOf(kRun), ColourBy::Format)[0], kFormat);
    EXPECT_EQ(codes(withSharedBlock(1), ColourBy::References)[0], kScale);
    EXPECT_EQ(codes(withSharedBlock(9), ColourBy::References)[0], kScale + 64);
    EXPECT_EQ(codes(withSharedBlock(500), ColourBy::References)[0], kScale + 127);
    state::Snapshot snapshot = *snapshotOf(kRun);
    EXPECT_EQ(codes(snapshot, ColourBy::Age)[0], kScale); // written in this step
    snapshot.step = 63;
    EXPECT_EQ(codes(snapshot, ColourBy::Age)[0], kScale + 64); // log2(64) of 12
    snapshot.step = 4095;
    EXPECT_EQ(codes(snapshot, ColourBy::Age)[0], kScale + 127);
    EXPECT_EQ(codes(snapshot, ColourBy::Age)[5], kReserved);
    EXPECT_EQ(codes(snapshot, ColourBy::Age)[7], kFree);
}

TEST(MemoryMap, codesBeyondThePoolAreFree) {
    const auto snapshot = snapshotOf(kRun);
    EXPECT_EQ(codes(*snapshot, ColourBy::State, 6, 4),
              (std::vector<std::uint8_t>{map_code::kReserved, map_code::kFree, map_code::kFree, map_code::kFree}));
    EXPECT_EQ(codes(*snapshot, ColourBy::State, 4'294'967'295u, 2), (std::vector<std::uint8_t>{0, 0}));
    std::vector<std::uint8_t> out(2, 9);
    blockCodes(*snapshot, 7, ColourBy::Owner, 0, out);
    EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 0}));
}

TEST(MemoryMap, cellsCarryLabelsAndLevels) {
    const auto cells = mapCells(withSharedBlock(4), 0, ColourBy::Owner, 0, 100);
    ASSERT_EQ(cells.size(), 8u);
    EXPECT_EQ(cells[0].label, "\xC3\x97"
                              "4");
    EXPECT_TRUE(cells[0].shared);
    EXPECT_EQ(cells[0].hue, -1);
    EXPECT_EQ(cells[1].label, "9");
    EXPECT_EQ(cells[1].hue, 1);
    EXPECT_FALSE(cells[1].partFilled);
    EXPECT_EQ(cells[2].label, "");
    EXPECT_TRUE(cells[4].partFilled);
    EXPECT_DOUBLE_EQ(cells[4].level(), 0.5);
    EXPECT_EQ(cells[5].kind, state::BlockKind::Reserved);
    EXPECT_EQ(cells[5].label, "9");
    EXPECT_EQ(cells[7].label, "");
    EXPECT_EQ(mapCells(*snapshotOf(kRun), 0, ColourBy::Owner, 4, 2).front().block, BlockId(PoolId(0), 4));
    EXPECT_TRUE(mapCells(*snapshotOf(kRun), 0, ColourBy::Owner, 8, 2).empty());
    EXPECT_TRUE(mapCells(*snapshotOf(kRun), 3, ColourBy::Owner, 0, 2).empty());
}

TEST(MemoryMap, requestsTakeSevenHuesInTurn) {
    EXPECT_EQ(hueOf(RequestId(1)), 0);
    EXPECT_EQ(hueOf(RequestId(7)), 6);
    EXPECT_EQ(hueOf(RequestId(8)), 0);
    EXPECT_EQ(hueOf(RequestId(0)), -1);
}

TEST(MemoryMap, describesABlockInASentence) {
    const auto snapshot = snapshotOf(kRun);
    const auto say = [](const state::Snapshot& of, std::uint32_t index) {
        return describeBlock(of, BlockId(PoolId(0), index));
    };
    EXPECT_EQ(say(*snapshot, 0), "Block 0, active, request 9, 4 of 4 slots");
    EXPECT_EQ(say(*snapshot, 4), "Block 4, active, request 9, 2 of 4 slots");
    EXPECT_EQ(say(*snapshot, 5), "Block 5, reserved for request 9");
    EXPECT_EQ(say(*snapshot, 2), "Block 2, free");
    EXPECT_EQ(say(withSharedBlock(4), 0), "Block 0, active, shared by 4, 4 of 4 slots");
    EXPECT_EQ(say(withSharedBlock(4), 7), "Block 7, cached and evictable");
    EXPECT_EQ(say(*snapshot, 8), "");
    EXPECT_EQ(describeBlock(*snapshot, BlockId(PoolId(1), 0)), "");
}

TEST(MemoryMap, titleNamesTierFormatAndSize) {
    state::PoolState pool;
    pool.shape = {PoolId(0), trace::Tier::Device, "f16", "f16", 182, 16, 368'640};
    EXPECT_EQ(titleOf(pool), "device, f16 \xC2\xB7 182 blocks \xC3\x97 360 KiB");
    pool.shape.vFormat = "q8_0";
    pool.shape.tier = trace::Tier::Host;
    pool.shape.blocks = 1;
    EXPECT_EQ(titleOf(pool), "host, f16/q8_0 \xC2\xB7 1 block \xC3\x97 360 KiB");
}

TEST(MemoryMap, legendCountsWhatTheMapShows) {
    EXPECT_EQ(legendOf(withSharedBlock(4).pools[0]), (MapLegend{3, 1, 1, 1, 2, 2}));
    // Over a run: the legend is the histogram of the codes.
    state::CacheState state;
    for (const trace::Event& event : test::SyntheticRun::all({.steps = 80, .poolBlocks = 300, .contiguous = true}))
        ASSERT_TRUE(state.apply(event));
    const auto snapshot = state.snapshot();
    std::map<int, std::uint32_t> histogram;
    for (const std::uint8_t code : codes(*snapshot, ColourBy::State, 0, 300))
        ++histogram[code];
    const MapLegend legend = legendOf(snapshot->pools[0]);
    EXPECT_EQ(legend.free, histogram[map_code::kFree]);
    EXPECT_EQ(legend.active, histogram[map_code::kActive] + histogram[map_code::kPartFilled]);
    EXPECT_EQ(legend.partFilled, histogram[map_code::kPartFilled]);
    EXPECT_EQ(legend.reserved, histogram[map_code::kReserved]);
    EXPECT_GT(legend.active, 0u);
    EXPECT_GT(legend.reserved, 0u);
}

} // namespace
} // namespace kvatlas::query

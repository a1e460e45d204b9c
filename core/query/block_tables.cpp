// SPDX-License-Identifier: Apache-2.0
#include "core/query/block_tables.h"

#include "core/query/number_text.h"

#include <algorithm>
#include <fmt/format.h>

namespace kvatlas::query {

namespace {

using state::BlockKind;
using state::BlockState;
using state::SequenceState;
using state::Snapshot;

// Active blocks come first: the first reserved one is where they end.
std::uint32_t activeBlocks(const Snapshot& snapshot, const std::vector<BlockId>& table) {
    const auto at = std::partition_point(table.begin(), table.end(), [&](BlockId id) {
        return snapshot.pools[id.pool().value].block(id.index()).kind != BlockKind::Reserved;
    });
    return static_cast<std::uint32_t>(at - table.begin());
}

} // namespace

std::vector<TableRow> tableRows(const Snapshot& snapshot, TableOrder order) {
    std::vector<TableRow> rows;
    rows.reserve(snapshot.sequences.size());
    for (std::uint32_t i = 0; i < snapshot.sequences.size(); ++i) {
        const SequenceState& sequence = snapshot.sequences[i];
        rows.push_back({i, sequence.sequence, sequence.request, hueOf(sequence.request), sequence.slotsWritten,
                        static_cast<std::uint32_t>(sequence.table->size()), activeBlocks(snapshot, *sequence.table)});
    }
    std::sort(rows.begin(), rows.end(), [order](const TableRow& a, const TableRow& b) {
        if (order == TableOrder::Length && a.blocks != b.blocks)
            return a.blocks > b.blocks;
        return a.request != b.request ? a.request < b.request : a.sequence < b.sequence;
    });
    return rows;
}

std::vector<TableCell> tableCells(const Snapshot& snapshot, const TableRow& row, std::uint32_t firstLogical,
                                  std::uint32_t count) {
    std::vector<TableCell> cells;
    if (row.sequenceIndex >= snapshot.sequences.size())
        return cells;
    const std::vector<BlockId>& table = *snapshot.sequences[row.sequenceIndex].table;
    const std::uint64_t end = std::min<std::uint64_t>(table.size(), std::uint64_t{firstLogical} + count);
    for (std::uint64_t logical = firstLogical; logical < end; ++logical) {
        const BlockId id = table[logical];
        const state::PoolState& pool = snapshot.pools[id.pool().value];
        const BlockState& block = pool.block(id.index());
        TableCell& cell = cells.emplace_back();
        cell.block = id;
        cell.logical = static_cast<std::uint32_t>(logical);
        cell.usedSlots = block.usedSlots;
        cell.blockTokens = pool.shape.blockTokens;
        cell.shared = block.references > 1;
        cell.reserved = block.kind == BlockKind::Reserved;
        cell.partFilled = block.kind == BlockKind::Active && block.usedSlots < pool.shape.blockTokens;
        cell.hue = cell.shared ? -1 : row.hue;
        cell.label = snapshot.pools.size() > 1 ? fmt::format("{}:{}", id.pool().value, id.index())
                                               : fmt::format("{}", id.index());
    }
    return cells;
}

std::vector<RulerTick> rulerTicks(std::uint32_t blockTokens, std::uint32_t firstLogical, std::uint32_t count,
                                  std::uint32_t everyBlocks) {
    std::vector<RulerTick> ticks;
    const std::uint64_t every = std::max(everyBlocks, 1u);
    const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{firstLogical} + count, 0xFFFF'FFFFu);
    for (std::uint64_t logical = (firstLogical + every - 1) / every * every; logical < end; logical += every)
        ticks.push_back({static_cast<std::uint32_t>(logical),
                         numberText(static_cast<std::int64_t>(logical * blockTokens), Thousands::NoBreak)});
    return ticks;
}

} // namespace kvatlas::query

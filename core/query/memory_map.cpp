// SPDX-License-Identifier: Apache-2.0
#include "core/query/memory_map.h"

#include "core/query/number_text.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>

namespace kvatlas::query {

namespace {

using state::BlockKind;
using state::BlockState;
using state::PoolState;
using state::Snapshot;

// Physical ids stand under the cells from this size on.
constexpr int kIdFromCellPx = 32;
constexpr int kIdPx = 14;

int gapFor(int cellPx) {
    return cellPx < 6 ? 1 : cellPx < 16 ? 2 : 3;
}

std::uint8_t scaleCode(double share) {
    return static_cast<std::uint8_t>(map_code::kScale + std::lround(std::clamp(share, 0.0, 1.0) * 127));
}

std::uint8_t stateCode(const BlockState& block, std::uint32_t blockTokens) {
    switch (block.kind) {
    case BlockKind::Cached:
        return map_code::kCached;
    case BlockKind::Reserved:
        return map_code::kReserved;
    case BlockKind::Active:
        if (block.references > 1)
            return map_code::kShared;
        return block.usedSlots < blockTokens ? map_code::kPartFilled : map_code::kActive;
    case BlockKind::Free:
        break;
    }
    return map_code::kFree;
}

std::uint8_t ownerCode(const BlockState& block, std::uint32_t blockTokens) {
    const std::uint8_t code = stateCode(block, blockTokens);
    const auto hue = static_cast<std::uint8_t>(std::max(hueOf(block.request), 0));
    switch (code) {
    case map_code::kActive:
        return map_code::kOwner + hue;
    case map_code::kPartFilled:
        return map_code::kOwnerPartFilled + hue;
    case map_code::kReserved:
        return map_code::kOwnerReserved + hue;
    default:
        return code;
    }
}

std::string formatOf(const trace::PoolShape& shape) {
    return shape.kFormat == shape.vFormat ? shape.kFormat : shape.kFormat + "/" + shape.vFormat;
}

std::string_view wordOf(trace::Tier tier) {
    switch (tier) {
    case trace::Tier::Host:
        return "host";
    case trace::Tier::Disk:
        return "disk";
    case trace::Tier::Device:
        break;
    }
    return "device";
}

// What colours every block of one pool in one mode.
class Coder {
public:
    Coder(const Snapshot& snapshot, std::size_t pool, ColourBy colourBy)
        : m_colourBy(colourBy)
        , m_step(snapshot.step)
        , m_blockTokens(snapshot.pools[pool].shape.blockTokens) {
        if (colourBy == ColourBy::Format) {
            const auto formats = formatsOf(snapshot);
            const auto at = std::find(formats.begin(), formats.end(), formatOf(snapshot.pools[pool].shape));
            m_formatCode =
                static_cast<std::uint8_t>(map_code::kFormat + std::min<std::ptrdiff_t>(at - formats.begin(), 31));
        }
    }

    std::uint8_t operator()(const BlockState& block) const {
        if (m_colourBy == ColourBy::Owner)
            return ownerCode(block, m_blockTokens);
        if (m_colourBy == ColourBy::State || block.kind != BlockKind::Active)
            return stateCode(block, m_blockTokens);
        if (m_colourBy == ColourBy::Format)
            return m_formatCode;
        if (m_colourBy == ColourBy::References)
            return scaleCode((block.references - 1) / 16.0);
        const Step since = m_step - std::min(m_step, std::max(block.writtenStep, block.changedStep));
        return scaleCode(std::log2(1.0 + since) / 12);
    }

private:
    ColourBy m_colourBy;
    Step m_step;
    std::uint32_t m_blockTokens;
    std::uint8_t m_formatCode = map_code::kFormat;
};

} // namespace

MapLevel levelOf(int cellPx) {
    if (cellPx < 6)
        return MapLevel::Overview;
    if (cellPx < 16)
        return MapLevel::Cells;
    return cellPx < 48 ? MapLevel::Labels : MapLevel::Slots;
}

int MapLayout::widthPx() const {
    return columns == 0 ? 0 : static_cast<int>(std::min(columns, blocks)) * pitchPx() - gapPx;
}
int MapLayout::heightPx() const {
    return rows == 0 ? 0 : static_cast<int>(rows) * rowPitchPx() - gapPx;
}

PixelRect MapLayout::cell(std::uint32_t index) const {
    assert(index < blocks);
    return {static_cast<int>(index % columns) * pitchPx(), static_cast<int>(index / columns) * rowPitchPx(), cellPx,
            cellPx};
}

std::optional<std::uint32_t> MapLayout::blockAt(int x, int y) const {
    if (x < 0 || y < 0 || columns == 0)
        return std::nullopt;
    const auto column = static_cast<std::uint32_t>(x / pitchPx());
    const auto row = static_cast<std::uint32_t>(y / rowPitchPx());
    if (column >= columns || row >= rows)
        return std::nullopt;
    const std::uint32_t index = row * columns + column;
    return index < blocks ? std::optional(index) : std::nullopt;
}

RowRange MapLayout::rowsIn(int top, int bottom) const {
    return query::rowsIn(rows, rowPitchPx(), top, bottom);
}

RowRange rowsIn(std::size_t rows, int rowPx, int top, int bottom) {
    top = std::max(top, 0);
    if (rows == 0 || rowPx <= 0 || bottom <= top)
        return {};
    const auto count = static_cast<std::int64_t>(std::min<std::size_t>(rows, 0x7FFF'FFFF));
    const std::int64_t first = std::min<std::int64_t>(top / rowPx, count);
    const std::int64_t end = std::min<std::int64_t>((std::int64_t{bottom} + rowPx - 1) / rowPx, count);
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(std::max(first, end))};
}

MapLayout layOutMap(std::uint32_t blocks, int widthPx, int cellPx) {
    MapLayout layout;
    layout.blocks = blocks;
    layout.cellPx = std::max(cellPx, kMinCellPx);
    layout.gapPx = gapFor(layout.cellPx);
    layout.idPx = layout.cellPx >= kIdFromCellPx ? kIdPx : 0;
    if (blocks == 0)
        return layout;
    // The last cell needs no gap behind it.
    const int fit = std::max(1, (std::max(widthPx, 0) + layout.gapPx) / layout.pitchPx());
    auto columns = static_cast<std::uint32_t>(fit);
    if (columns >= 20)
        columns -= columns % 10;
    else if (columns >= 10)
        columns -= columns % 5;
    layout.columns = columns;
    layout.rows = blocks / columns + (blocks % columns != 0 ? 1 : 0);
    return layout;
}

int fitCellPx(std::uint32_t blocks, int widthPx, int heightPx, int maxCellPx) {
    for (int cellPx = std::max(maxCellPx, kMinCellPx); cellPx > kMinCellPx; --cellPx) {
        const MapLayout layout = layOutMap(blocks, widthPx, cellPx);
        if (layout.widthPx() <= widthPx && std::int64_t{layout.rows} * layout.rowPitchPx() - layout.gapPx <= heightPx)
            return cellPx;
    }
    return kMinCellPx;
}

int hueOf(RequestId request) {
    return request.value == 0 ? -1 : static_cast<int>((request.value - 1) % kHues);
}

std::vector<std::string> formatsOf(const Snapshot& snapshot) {
    std::vector<std::string> formats;
    for (const PoolState& pool : snapshot.pools) {
        std::string format = formatOf(pool.shape);
        if (std::find(formats.begin(), formats.end(), format) == formats.end())
            formats.push_back(std::move(format));
    }
    return formats;
}

void blockCodes(const Snapshot& snapshot, std::size_t pool, ColourBy colourBy, std::uint32_t first,
                std::span<std::uint8_t> out) {
    std::fill(out.begin(), out.end(), map_code::kFree);
    if (pool >= snapshot.pools.size())
        return;
    const PoolState& blocks = snapshot.pools[pool];
    const Coder coder(snapshot, pool, colourBy);
    const std::uint64_t end = std::min<std::uint64_t>(blocks.shape.blocks, std::uint64_t{first} + out.size());
    for (std::uint64_t i = first; i < end; ++i)
        out[i - first] = coder(blocks.block(static_cast<std::uint32_t>(i)));
}

std::vector<MapCell> mapCells(const Snapshot& snapshot, std::size_t pool, ColourBy colourBy, std::uint32_t first,
                              std::uint32_t count) {
    std::vector<MapCell> cells;
    if (pool >= snapshot.pools.size() || first >= snapshot.pools[pool].shape.blocks)
        return cells;
    const PoolState& blocks = snapshot.pools[pool];
    const Coder coder(snapshot, pool, colourBy);
    count = std::min(count, blocks.shape.blocks - first);
    cells.reserve(count);
    for (std::uint32_t i = first; i < first + count; ++i) {
        const BlockState& block = blocks.block(i);
        MapCell& cell = cells.emplace_back();
        cell.block = BlockId(blocks.shape.pool, i);
        cell.kind = block.kind;
        cell.code = coder(block);
        cell.shared = block.references > 1;
        cell.partFilled = block.kind == BlockKind::Active && block.usedSlots < blocks.shape.blockTokens;
        cell.usedSlots = block.usedSlots;
        cell.blockTokens = blocks.shape.blockTokens;
        if (block.kind != BlockKind::Active && block.kind != BlockKind::Reserved)
            continue;
        cell.request = block.request;
        cell.hue = cell.shared ? -1 : hueOf(block.request);
        cell.label = cell.shared ? fmt::format("\u00D7{}", block.references) : fmt::format("{}", block.request.value);
    }
    return cells;
}

MapLegend legendOf(const PoolState& pool) {
    MapLegend legend{pool.counts.active, 0, 0, pool.counts.cached, pool.counts.free, pool.counts.reserved};
    for (std::uint32_t i = 0; i < pool.shape.blocks; ++i) {
        const BlockState& block = pool.block(i);
        if (block.kind != BlockKind::Active)
            continue;
        legend.shared += block.references > 1 ? 1 : 0;
        legend.partFilled += block.usedSlots < pool.shape.blockTokens ? 1 : 0;
    }
    return legend;
}

std::string titleOf(const PoolState& pool) {
    return fmt::format("{}, {} \u00B7 {} {} \u00D7 {}", wordOf(pool.shape.tier), formatOf(pool.shape),
                       numberText(pool.shape.blocks), pool.shape.blocks == 1 ? "block" : "blocks",
                       bytesText(pool.shape.blockBytes));
}

std::string describeBlock(const Snapshot& snapshot, BlockId id) {
    const std::size_t pool = id.pool().value;
    if (pool >= snapshot.pools.size() || id.index() >= snapshot.pools[pool].shape.blocks)
        return {};
    const PoolState& blocks = snapshot.pools[pool];
    const BlockState& block = blocks.block(id.index());
    std::string out = fmt::format("Block {}", id.index());
    if (snapshot.pools.size() > 1)
        out += fmt::format(" of pool {}", pool);
    switch (block.kind) {
    case BlockKind::Free:
        return out + ", free";
    case BlockKind::Cached:
        return out + ", cached and evictable";
    case BlockKind::Reserved:
        return out + fmt::format(", reserved for request {}", block.request.value);
    case BlockKind::Active:
        break;
    }
    out += block.references > 1 ? fmt::format(", active, shared by {}", block.references)
                                : fmt::format(", active, request {}", block.request.value);
    return out + fmt::format(", {} of {} slots", block.usedSlots, blocks.shape.blockTokens);
}

} // namespace kvatlas::query

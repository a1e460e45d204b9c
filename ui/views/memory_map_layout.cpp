// SPDX-License-Identifier: Apache-2.0
#include "ui/views/memory_map_layout.h"

#include "core/query/memory_map.h"

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr int kGutter = 30, kPadding = 12, kTop = 8, kBandTitle = 20, kBandGap = 12; // logical pixels

// A gap of the same look at every pixel ratio; wider where ids or slots need air.
int gapOf(int cell) {
    return cell < 6 ? 1 : cell < 16 ? 2 : cell < 32 ? 3 : cell < 48 ? 5 : 10;
}

} // namespace

MapLayout MapLayout::make(const std::vector<state::PoolState>& pools, QSize device, double scale, int cell) {
    std::uint64_t largestBlock = 1;
    for (const state::PoolState& pool : pools)
        largestBlock = std::max(largestBlock, pool.shape.blockBytes);

    const auto px = [scale](double logical) { return static_cast<int>(std::lround(logical * scale)); };
    const auto layOut = [&](int logicalCell) {
        MapLayout layout;
        layout.m_scale = scale;
        layout.m_cellLogical = logicalCell;
        layout.m_level = static_cast<int>(query::levelOf(logicalCell));
        layout.m_originX = px(kPadding) + (layout.m_level == 1 ? 0 : px(kGutter));
        const int gap = std::max(1, px(gapOf(logicalCell)));
        const int idText = logicalCell >= 32 ? px(idTextHeight()) : 0;
        const int width = std::max(1, device.width() - layout.m_originX - px(kPadding));
        int y = px(kTop);
        for (std::size_t i = 0; i < pools.size(); ++i) {
            MapBand band;
            band.pool = static_cast<std::uint32_t>(i);
            band.blocks = pools[i].shape.blocks;
            // Equal area is equal bytes.
            const double side =
                std::sqrt(static_cast<double>(pools[i].shape.blockBytes) / static_cast<double>(largestBlock));
            band.cell = std::max(kMinCell, px(logicalCell * side));
            band.pitchX = band.cell + gap;
            band.pitchY = band.cell + gap + idText;
            // Round row labels, as core/query has it: from ten on a multiple of 5, from twenty on of 10.
            const int most = std::max(1, (width + gap) / band.pitchX);
            band.columns = most >= 20 ? most / 10 * 10 : most >= 10 ? most / 5 * 5 : most;
            band.rows = static_cast<int>((band.blocks + static_cast<std::uint32_t>(band.columns) - 1) /
                                         static_cast<std::uint32_t>(band.columns));
            band.titleTop = y;
            if (pools.size() > 1)
                y += px(kBandTitle);
            band.top = y;
            y += band.rows * band.pitchY + (i + 1 < pools.size() ? px(kBandGap) : 0);
            layout.m_bands.push_back(band);
        }
        layout.m_contentHeight = y;
        return layout;
    };

    if (cell > 0)
        return layOut(std::clamp(cell, kMinCell, kMaxCell));
    // Heights grow with the cell, apart from the step at 32 px where ids appear: from the largest down, the first fits.
    for (int candidate = kFitMaxCell; candidate > kMinCell; --candidate) {
        MapLayout layout = layOut(candidate);
        if (layout.m_contentHeight <= device.height())
            return layout;
    }
    return layOut(kMinCell);
}

QRect MapLayout::rectOf(BlockId block) const {
    for (const MapBand& band : m_bands)
        if (band.pool == block.pool().value && block.index() < band.blocks) {
            const int column = static_cast<int>(block.index()) % band.columns;
            const int row = static_cast<int>(block.index()) / band.columns;
            return {m_originX + column * band.pitchX, band.top + row * band.pitchY, band.cell, band.cell};
        }
    return {};
}

std::optional<BlockId> MapLayout::blockAt(QPoint point) const {
    for (const MapBand& band : m_bands) {
        const int x = point.x() - m_originX, y = point.y() - band.top;
        if (x < 0 || y < 0 || y >= band.rows * band.pitchY)
            continue;
        const int column = x / band.pitchX;
        if (column >= band.columns)
            return {};
        const std::uint64_t index =
            static_cast<std::uint64_t>(y / band.pitchY) * static_cast<std::uint64_t>(band.columns) +
            static_cast<std::uint64_t>(column);
        if (index < band.blocks)
            return BlockId(PoolId(static_cast<std::uint8_t>(band.pool)), static_cast<std::uint32_t>(index));
        return {};
    }
    return {};
}

} // namespace kvatlas::ui

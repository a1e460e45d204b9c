// SPDX-License-Identifier: Apache-2.0
// Where each block of each pool lies in the memory map, in device pixels. Pure values, any thread.
#pragma once

#include "core/state/snapshot.h"

#include <QPoint>
#include <QRect>

#include <optional>
#include <vector>

namespace kvatlas::ui {

struct MapBand { // one pool
    std::uint32_t pool = 0, blocks = 0;
    int cell = 0, pitchX = 0, pitchY = 0, columns = 1, rows = 0;
    int top = 0;      // of its first row
    int titleTop = 0; // of its title, when there are several bands
};

class MapLayout {
public:
    static constexpr int kMinCell = 2, kMaxCell = 208, kFitMaxCell = 34; // logical pixels

    // `cell`: logical pixels, 0 = the largest that shows everything (never below 2 device pixels: then it scrolls).
    static MapLayout make(const std::vector<state::PoolState>& pools, QSize device, double scale, int cell);

    int level() const { return m_level; } // 1..4
    int cellLogical() const { return m_cellLogical; }
    double scale() const { return m_scale; }
    int contentHeight() const { return m_contentHeight; }
    int originX() const { return m_originX; }
    const std::vector<MapBand>& bands() const { return m_bands; }

    QRect rectOf(BlockId block) const; // of the cell, before scrolling
    std::optional<BlockId> blockAt(QPoint point) const;
    static int idTextHeight() { return 14; }

private:
    std::vector<MapBand> m_bands;
    int m_level = 1, m_cellLogical = 0, m_contentHeight = 0, m_originX = 0;
    double m_scale = 1;
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Paints the memory map of a snapshot at any of its four levels. Keeps one byte per block between paints and renews it
// only for chunks that changed. GUI thread.
#pragma once

#include "core/state/snapshot.h"
#include "ui/bridge/linked_state.h"
#include "ui/theme/theme.h"
#include "ui/views/cell_painter.h"
#include "ui/views/memory_map_layout.h"

#include <QImage>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace kvatlas::ui {

struct MapScene {
    const Theme* theme = nullptr;
    std::shared_ptr<const state::Snapshot> snapshot;
    ColourBy colourBy = ColourBy::Owner;
    Selection selection;
    bool isolate = true; // a selected request dims the others
    std::optional<BlockId> hovered, focused;
    std::function<QString(TokenId)> tokenText; // may be empty
};

class MemoryMapPainter {
public:
    // `view`: where to paint, in device pixels of the painter's DeviceSpace; `scroll` device pixels down the content.
    // Paints what `dirty` (device pixels) touches.
    void paint(QPainter& painter, const QRect& view, const QRect& dirty, int scroll, const MapLayout& layout,
               const MapScene& scene, bool vector);

private:
    void renewCodes(const MapScene& scene);
    void renewTable(const MapScene& scene);
    void paintOverview(QPainter& painter, const QRect& target, const MapBand& band, int left, int top);
    void paintCells(QPainter& painter, const MapBand& band, const MapScene& scene, const QRect& target, QPoint origin);
    void paintSlots(QPainter& painter, const QRect& rect, BlockId id, const state::BlockState& block,
                    const MapScene& scene);
    CellLook look(const MapScene& scene, BlockId id, const state::BlockState& block, std::uint32_t blockTokens) const;
    bool dimmed(const MapScene& scene, const state::BlockState& block) const;

    struct PoolCodes {
        std::vector<std::shared_ptr<const state::BlockChunk>> chunks; // what the codes were made from
        std::vector<std::uint8_t> codes, dim; // query::blockCodes; 1 where a selection dims the block
    };
    std::vector<PoolCodes> m_pools;
    struct CodeKey { // what the codes depend on besides the chunks
        ColourBy colourBy = ColourBy::Owner;
        RequestId dimAllBut;
        Step ageOf = 0;
        friend bool operator==(const CodeKey&, const CodeKey&) = default;
    } m_key;
    std::array<std::array<QRgb, 256>, 2> m_table{}; // [dim][code]
    QRgb m_back = 0;
    CellPainter m_cells;
    QImage m_image;
    double m_scale = 1;
    bool m_vector = false;
    int m_level = 1;
};

} // namespace kvatlas::ui

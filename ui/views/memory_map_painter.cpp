// SPDX-License-Identifier: Apache-2.0
#include "ui/views/memory_map_painter.h"

#include "core/query/memory_map.h"
#include "ui/theme/colour_map.h"

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr double kCachedShare = 0.42;

query::ColourBy queryOf(ColourBy colourBy) {
    switch (colourBy) {
    case ColourBy::Owner:
        return query::ColourBy::Owner;
    case ColourBy::State:
        return query::ColourBy::State;
    case ColourBy::Age:
        return query::ColourBy::Age;
    case ColourBy::References:
        return query::ColourBy::References;
    }
    return query::ColourBy::Owner;
}

// The colour of a code from map_code::kScale on.
QColor scaleColour(int code) {
    return QColor(viridis()[static_cast<std::size_t>((code - query::map_code::kScale) * 255 / 127)]);
}

} // namespace

bool MemoryMapPainter::dimmed(const MapScene& scene, const state::BlockState& block) const {
    return scene.isolate && scene.selection.request != RequestId() && block.kind != state::BlockKind::Free &&
           block.request != scene.selection.request;
}

void MemoryMapPainter::renewCodes(const MapScene& scene) {
    CodeKey key{scene.colourBy, scene.isolate ? scene.selection.request : RequestId(), 0};
    if (scene.colourBy == ColourBy::Age)
        key.ageOf = scene.snapshot->step;
    const bool all = !(key == m_key);
    m_key = key;
    m_pools.resize(scene.snapshot->pools.size());
    for (std::size_t p = 0; p < m_pools.size(); ++p) {
        const state::PoolState& pool = scene.snapshot->pools[p];
        PoolCodes& own = m_pools[p];
        own.chunks.resize(pool.chunks.size());
        own.codes.resize(pool.chunks.size() * state::kChunkBlocks);
        own.dim.resize(own.codes.size());
        for (std::size_t c = 0; c < pool.chunks.size(); ++c) {
            if (!all && own.chunks[c] == pool.chunks[c])
                continue;
            own.chunks[c] = pool.chunks[c];
            const std::size_t first = c * state::kChunkBlocks;
            query::blockCodes(*scene.snapshot, p, queryOf(scene.colourBy), static_cast<std::uint32_t>(first),
                              std::span(own.codes).subspan(first, state::kChunkBlocks));
            for (std::size_t i = 0; i < state::kChunkBlocks; ++i)
                own.dim[first + i] = dimmed(scene, (*pool.chunks[c])[i]);
        }
    }
}

void MemoryMapPainter::renewTable(const MapScene& scene) {
    namespace code = query::map_code;
    const Theme& theme = *scene.theme;
    std::array<QColor, 256> colours;
    colours.fill(theme.state.freeLine);
    colours[code::kFree] = mixed(theme.state.freeLine, theme.panel, 0.55);
    colours[code::kCached] = mixed(theme.state.cached, theme.panel, kCachedShare);
    colours[code::kShared] = theme.shared();
    colours[code::kActive] = theme.state.active;
    colours[code::kPartFilled] = mixed(theme.state.active, theme.panel, 0.7);
    colours[code::kReserved] = mixed(theme.state.reserved, theme.panel, 0.34);
    for (std::size_t hue = 0; hue < query::kHues; ++hue) {
        colours[code::kOwner + hue] = theme.seq[hue];
        colours[code::kOwnerPartFilled + hue] = mixed(theme.seq[hue], theme.panel, 0.7);
        colours[code::kOwnerReserved + hue] = mixed(theme.seq[hue], theme.panel, 0.34);
    }
    for (int at = code::kScale; at < 256; ++at)
        colours[static_cast<std::size_t>(at)] = scaleColour(at);
    for (std::size_t at = 0; at < 256; ++at) {
        m_table[0][at] = colours[at].rgb();
        m_table[1][at] = mixed(colours[at], theme.panel, theme.dimShare()).rgb();
    }
}

CellLook MemoryMapPainter::look(const MapScene& scene, BlockId id, const state::BlockState& block,
                                std::uint32_t blockTokens) const {
    const Theme& theme = *scene.theme;
    CellLook look = lookOf(theme, block, blockTokens);
    if (block.kind == state::BlockKind::Active && scene.colourBy != ColourBy::Owner) {
        look.pattern = 0;
        std::uint8_t code = 0;
        query::blockCodes(*scene.snapshot, id.pool().value, queryOf(scene.colourBy), id.index(), std::span(&code, 1));
        look.colour = code >= query::map_code::kScale ? scaleColour(code)
                      : block.references > 1          ? theme.shared()
                                                      : theme.state.active;
    }
    if (block.kind == state::BlockKind::Reserved && scene.colourBy != ColourBy::Owner)
        look.colour = theme.state.reserved;
    if (dimmed(scene, block))
        look.colour = mixed(look.colour, theme.panel, theme.dimShare());
    return look;
}

void MemoryMapPainter::paintOverview(QPainter& painter, const QRect& target, const MapBand& band, int left, int top) {
    if (target.isEmpty())
        return;
    if (m_image.width() < target.width() || m_image.height() < target.height())
        m_image = QImage(target.size().expandedTo(m_image.size()), QImage::Format_RGB32);
    const std::vector<std::uint8_t>& codes = m_pools[band.pool].codes;
    const std::vector<std::uint8_t>& dim = m_pools[band.pool].dim;
    const QRgb back = m_back;
    for (int y = 0; y < target.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(m_image.scanLine(y));
        const int contentY = target.y() + y - top;
        const int row = contentY / band.pitchY;
        if (contentY < 0 || contentY - row * band.pitchY >= band.cell || row >= band.rows) {
            std::fill(line, line + target.width(), back);
            continue;
        }
        const std::uint64_t rowStart = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(band.columns);
        const int inRow =
            static_cast<int>(std::min<std::uint64_t>(band.blocks - rowStart, static_cast<std::uint64_t>(band.columns)));
        int x = 0;
        int column = std::max(0, target.x() - left) / band.pitchX;
        for (; column < inRow && x < target.width(); ++column) {
            const int start = std::max(0, left + column * band.pitchX - target.x());
            const int end = std::min(left + column * band.pitchX + band.cell - target.x(), target.width());
            for (; x < std::min(start, target.width()); ++x)
                line[x] = back;
            const std::uint64_t index = rowStart + static_cast<std::uint64_t>(column);
            const QRgb colour = m_table[dim[index]][codes[index]];
            for (; x < end; ++x)
                line[x] = colour;
        }
        std::fill(line + x, line + target.width(), back);
    }
    painter.drawImage(target.topLeft(), m_image, QRect(QPoint(), target.size()));
}

void MemoryMapPainter::paintSlots(QPainter& painter, const QRect& rect, BlockId id, const state::BlockState& block,
                                  const MapScene& scene) {
    const Theme& theme = *scene.theme;
    const state::PoolState& pool = scene.snapshot->pools[id.pool().value];
    const std::uint32_t slotCount = pool.shape.blockTokens;
    const CellLook own = look(scene, id, block, slotCount);
    const bool withText = rect.width() >= 96 * m_scale;
    const int edge = m_cells.width(2);
    painter.fillRect(rect, theme.well);
    int top = edge;
    if (withText) {
        const int head = m_cells.width(20);
        painter.fillRect(QRect(rect.topLeft(), QSize(rect.width(), head)), own.colour);
        const QColor ink = labelOn(own.colour);
        QFont font = theme.monoFont(theme.type.small, QFont::Medium);
        font.setPixelSize(m_cells.width(font.pixelSize()));
        painter.setFont(font);
        painter.setPen(ink);
        const QRect inner = rect.adjusted(m_cells.width(6), 0, -m_cells.width(6), 0);
        painter.drawText(QRect(inner.topLeft(), QSize(inner.width(), head)), Qt::AlignLeft | Qt::AlignVCenter,
                         own.label);
        painter.drawText(QRect(inner.topLeft(), QSize(inner.width(), head)), Qt::AlignRight | Qt::AlignVCenter,
                         QStringLiteral("block %1").arg(id.index()));
        top = head;
    }
    m_cells.frame(rect, own.colour, edge);

    const int columns = std::max(1, static_cast<int>(std::ceil(std::sqrt(double(slotCount)))));
    const int rows = (static_cast<int>(slotCount) + columns - 1) / columns;
    const int gap = m_cells.width(withText ? 2 : 1), inset = edge + gap;
    const int across = rect.width() - 2 * inset + gap, down = rect.height() - top - edge - gap;
    if (across / columns <= gap + 1 || down / rows <= gap + 1)
        return; // more slots than pixels: the level bar of smaller cells says it better
    const state::RequestState* owner = state::findRequest(*scene.snapshot, block.request);
    const bool known = owner && owner->tokens;
    QFont text = theme.monoFont(theme.type.micro), place = theme.monoFont(theme.type.micro);
    text.setPixelSize(m_cells.width(text.pixelSize()));
    place.setPixelSize(std::max(8, m_cells.width(9)));
    const QFontMetrics metrics(text);
    for (std::uint32_t slot = 0; slot < slotCount; ++slot) {
        const int column = static_cast<int>(slot) % columns, row = static_cast<int>(slot) / columns;
        // The division's rest is spread, so that the slots fill the cell.
        const int left = column * across / columns, right = (column + 1) * across / columns;
        const int upper = row * down / rows, lower = (row + 1) * down / rows;
        const QRect box(rect.x() + inset + left, rect.y() + top + gap + upper, right - left - gap, lower - upper - gap);
        if (slot >= block.usedSlots) {
            m_cells.frame(box, theme.state.freeLine, m_cells.width(1));
            continue;
        }
        const QColor fill = mixed(own.colour, theme.well, 0.34);
        painter.fillRect(box, fill);
        const std::uint64_t position = std::uint64_t{block.logical} * slotCount + slot;
        if (scene.selection.token && scene.selection.request == block.request && *scene.selection.token == position)
            m_cells.frame(box, theme.select, m_cells.width(2));
        if (!withText)
            continue;
        painter.setPen(theme.text);
        if (known && position < owner->tokens->size() && scene.tokenText) {
            painter.setFont(text);
            painter.drawText(
                box.adjusted(1, 0, -1, -box.height() / 2), Qt::AlignHCenter | Qt::AlignBottom,
                metrics.elidedText(scene.tokenText((*owner->tokens)[position]), Qt::ElideRight, box.width() - 2));
        }
        painter.setFont(place);
        painter.drawText(box.adjusted(0, box.height() / 2, 0, 0), Qt::AlignHCenter | Qt::AlignVCenter,
                         QString::number(position));
    }
}

void MemoryMapPainter::paintCells(QPainter& painter, const MapBand& band, const MapScene& scene, const QRect& target,
                                  QPoint origin) {
    const Theme& theme = *scene.theme;
    const state::PoolState& pool = scene.snapshot->pools[band.pool];
    const int firstRow = std::max(0, (target.top() - origin.y()) / band.pitchY);
    const int lastRow = std::min(band.rows - 1, (target.bottom() - origin.y()) / band.pitchY);
    const int firstColumn = std::clamp((target.left() - origin.x()) / band.pitchX, 0, band.columns - 1);
    const int lastColumn = std::clamp((target.right() - origin.x()) / band.pitchX, 0, band.columns - 1);
    const bool showSlots = m_level == 4, labels = m_level == 3, ids = band.cell >= 32 * m_scale;
    QFont labelFont = theme.monoFont(band.cell >= 28 * m_scale ? theme.type.body : theme.type.small, QFont::Medium);
    if (band.cell < 20 * m_scale)
        labelFont.setPixelSize(10);
    labelFont.setPixelSize(m_cells.width(labelFont.pixelSize()));
    QFont idFont = theme.monoFont(theme.type.micro);
    idFont.setPixelSize(m_cells.width(idFont.pixelSize()));

    std::vector<std::pair<QRect, QString>> idTexts;
    for (int row = firstRow; row <= lastRow; ++row)
        for (int column = firstColumn; column <= lastColumn; ++column) {
            const std::uint64_t index = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(band.columns) +
                                        static_cast<std::uint64_t>(column);
            if (index >= band.blocks)
                break;
            const QRect rect(origin.x() + column * band.pitchX, origin.y() + row * band.pitchY, band.cell, band.cell);
            const BlockId id(PoolId(static_cast<std::uint8_t>(band.pool)), static_cast<std::uint32_t>(index));
            const state::BlockState& block = pool.block(id.index());
            if (showSlots && block.kind == state::BlockKind::Active) {
                paintSlots(painter, rect, id, block, scene);
            } else {
                const CellLook own = look(scene, id, block, pool.shape.blockTokens);
                m_cells.cell(rect, own);
                if (labels && !own.label.isEmpty()) {
                    const bool onWell = own.shape == CellShape::PartFilled;
                    const QColor ink = onWell ? labelOn(mixed(own.colour, theme.well, 0.34)) : labelOn(own.colour);
                    m_cells.label(rect, own.label, labelFont, ink);
                }
            }
            if (ids)
                idTexts.emplace_back(QRect(rect.x() - 4, rect.bottom() + 1, rect.width() + 8,
                                           static_cast<int>(std::lround(MapLayout::idTextHeight() * m_scale))),
                                     QString::number(index));
        }
    painter.setFont(idFont);
    painter.setPen(theme.text3);
    for (const auto& [rect, text] : idTexts)
        painter.drawText(rect, Qt::AlignCenter, text);
}

void MemoryMapPainter::paint(QPainter& painter, const QRect& view, const QRect& dirty, int scroll,
                             const MapLayout& layout, const MapScene& scene, bool vector) {
    m_scale = layout.scale();
    m_vector = vector;
    m_level = layout.level();
    const Theme& theme = *scene.theme;
    const QRect target = view.intersected(dirty);
    m_cells.begin(painter, theme, m_scale, vector);
    if (m_level == 1) {
        renewCodes(scene);
        renewTable(scene);
        m_back = theme.panel.rgb();
    }
    QFont micro = theme.monoFont(theme.type.micro), bandFont = theme.textFont(theme.type.small);
    micro.setPixelSize(m_cells.width(micro.pixelSize()));
    bandFont.setPixelSize(m_cells.width(bandFont.pixelSize()));
    const int left = view.x() + layout.originX();
    const int gap = m_cells.width(8);
    for (const MapBand& band : layout.bands()) {
        const int top = view.y() + band.top - scroll;
        const QRect area(left, top, band.columns * band.pitchX, band.rows * band.pitchY);
        if (layout.bands().size() > 1) {
            const trace::PoolShape& shape = scene.snapshot->pools[band.pool].shape;
            painter.setFont(bandFont);
            painter.setPen(theme.text2);
            painter.drawText(
                QRect(view.x() + m_cells.width(12), top - m_cells.width(20), view.width(), m_cells.width(18)),
                Qt::AlignVCenter,
                QStringLiteral("device, %1 · %2 blocks").arg(QString::fromStdString(shape.kFormat)).arg(shape.blocks));
        }
        if (m_level == 1) {
            paintOverview(painter, area.intersected(target), band, left, top);
            continue;
        }
        if (!area.intersects(QRect(left, target.y(), area.width(), target.height())))
            continue;
        paintCells(painter, band, scene, target, {left, top});
        painter.setFont(micro);
        painter.setPen(theme.text3);
        const int every = std::max(1, (m_cells.width(13) + band.pitchY - 1) / band.pitchY);
        const int firstRow = std::max(0, (target.top() - top) / band.pitchY);
        const int lastRow = std::min(band.rows - 1, (target.bottom() - top) / band.pitchY);
        const int labelBox = std::min(band.cell, m_cells.width(48));
        for (int row = firstRow - firstRow % every; row <= lastRow; row += every)
            painter.drawText(
                QRect(view.x(), top + row * band.pitchY, left - gap - view.x(), labelBox),
                Qt::AlignRight | Qt::AlignVCenter,
                QString::number(static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(band.columns)));
    }
    const auto placed = [&](BlockId id) { return layout.rectOf(id).translated(view.x(), view.y() - scroll); };
    if (scene.hovered && placed(*scene.hovered).intersects(view))
        m_cells.hover(placed(*scene.hovered));
    if (scene.focused && placed(*scene.focused).intersects(view)) {
        const int two = m_cells.width(2), three = m_cells.width(3);
        m_cells.frame(placed(*scene.focused).adjusted(-two - three, -two - three, two + three, two + three),
                      theme.accent, two);
    }
    if (scene.selection.block && placed(*scene.selection.block).intersects(view))
        m_cells.selection(placed(*scene.selection.block));
}

} // namespace kvatlas::ui

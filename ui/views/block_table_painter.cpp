// SPDX-License-Identifier: Apache-2.0
#include "ui/views/block_table_painter.h"

#include "ui/theme/number_text.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr std::uint32_t kRulerEveryBlocks = 4;

QString tr(const char* text) {
    return QCoreApplication::translate("BlockTables", text);
}

std::size_t runningRows(const std::vector<TableRow>& rows) {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const TableRow& row) { return row.table != nullptr; }));
}

int rowTop(const std::vector<TableRow>& rows, std::size_t index) {
    const int waitingGap = index >= runningRows(rows) ? BlockTablePainter::kWaitingGap : 0;
    return BlockTablePainter::kRuler + static_cast<int>(index) * BlockTablePainter::kRowPitch + waitingGap;
}

} // namespace

std::vector<TableRow> laneRows(const state::Snapshot& snapshot, query::TableOrder order) {
    std::vector<TableRow> rows;
    for (const query::TableRow& running : query::tableRows(snapshot, order)) {
        TableRow row{running.request,
                     running.sequence,
                     running.tokens,
                     snapshot.sequences[running.sequenceIndex].table,
                     state::RequestStatus::Running,
                     0,
                     {}};
        if (!row.table)
            row.table = std::make_shared<const std::vector<BlockId>>();
        if (const state::RequestState* request = state::findRequest(snapshot, running.request)) {
            row.title = QString::fromStdString(request->title);
            row.arrivedStep = request->arrivedStep;
        }
        rows.push_back(std::move(row));
    }
    for (const state::RequestState& request : snapshot.requests)
        if (request.sequence == SequenceId())
            rows.push_back({request.request,
                            {},
                            request.promptTokens,
                            nullptr,
                            request.status,
                            request.arrivedStep,
                            QString::fromStdString(request.title)});
    return rows;
}

QSize BlockTablePainter::contentSize(const std::vector<TableRow>& rows) {
    std::size_t longest = 0;
    for (const TableRow& row : rows)
        if (row.table)
            longest = std::max(longest, row.table->size());
    const int height = rows.empty() ? 0 : rowTop(rows, rows.size() - 1) + kRowPitch;
    return {kCellsLeft + static_cast<int>(longest) * kCellWidth + kPadding, height + 8};
}

QRect BlockTablePainter::cellRect(const std::vector<TableRow>& rows, TableCell cell) {
    return {kCellsLeft + static_cast<int>(cell.logical) * kCellWidth, rowTop(rows, cell.row), kCellWidth - 1,
            kCellHeight};
}

std::optional<std::size_t> BlockTablePainter::rowAt(const std::vector<TableRow>& rows, QPoint point) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const int top = rowTop(rows, i);
        if (point.y() >= top && point.y() < top + kRowPitch)
            return i;
    }
    return {};
}

std::optional<TableCell> BlockTablePainter::cellAt(const std::vector<TableRow>& rows, QPoint point) {
    const auto row = rowAt(rows, point);
    if (!row || !rows[*row].table || point.x() < kCellsLeft)
        return {};
    const auto logical = static_cast<std::uint32_t>((point.x() - kCellsLeft) / kCellWidth);
    if (logical >= rows[*row].table->size())
        return {};
    return TableCell{*row, logical};
}

QRect BlockTablePainter::device(const QRect& logical, const QRect& view, QPoint scroll) const {
    const auto at = [this](int value) { return static_cast<int>(std::lround(value * m_scale)); };
    const int left = at(logical.x() - scroll.x()), top = at(logical.y() - scroll.y());
    return {view.x() + left, view.y() + top, at(logical.x() + logical.width() - scroll.x()) - left,
            at(logical.y() + logical.height() - scroll.y()) - top};
}

void BlockTablePainter::paintRow(QPainter& painter, const QRect& view, QPoint scroll, const TableScene& scene,
                                 std::size_t index) {
    const Theme& theme = *scene.theme;
    const TableRow& row = (*scene.rows)[index];
    const int top = rowTop(*scene.rows, index);
    const bool dim = scene.isolate && scene.selection.request != RequestId() && scene.selection.request != row.request;
    QFont ids = theme.monoFont(theme.type.micro, QFont::Medium);
    ids.setPixelSize(m_cells.width(ids.pixelSize()));

    if (row.table) {
        std::uint32_t highest = 0;
        for (const BlockId id : *row.table)
            highest = std::max(highest, id.index());
        const int room = m_cells.width(kCellWidth - 1) - 2,
                  widest = QFontMetrics(ids).horizontalAdvance(QString::number(highest));
        if (widest > room) // four digits and more
            ids.setPixelSize(std::max(1, ids.pixelSize() * room / widest));
        const int firstVisible = std::max(0, (scroll.x() - kCellsLeft) / kCellWidth);
        const auto viewWidth = static_cast<int>(view.width() / m_scale);
        const std::size_t end = std::min<std::size_t>(
            row.table->size(), static_cast<std::size_t>(std::max(0, (scroll.x() + viewWidth) / kCellWidth + 1)));
        const int clipLeft = view.x() + m_cells.width(kCellsLeft);
        for (std::size_t logical = static_cast<std::size_t>(firstVisible); logical < end; ++logical) {
            const QRect rect = device(
                {kCellsLeft + static_cast<int>(logical) * kCellWidth, top, kCellWidth - 1, kCellHeight}, view, scroll);
            if (rect.left() < clipLeft || rect.right() > view.right())
                continue; // whole cells only: nothing is cut at the edges
            const BlockId id = (*row.table)[logical];
            if (id.pool().value >= scene.snapshot->pools.size())
                continue;
            const state::PoolState& pool = scene.snapshot->pools[id.pool().value];
            CellLook look = lookOf(theme, pool.block(id.index()), pool.shape.blockTokens);
            if (dim)
                look.colour = mixed(look.colour, theme.panel, theme.dimShare());
            m_cells.cell(rect, look);
            const QColor ground = look.shape == CellShape::Solid        ? look.colour
                                  : look.shape == CellShape::PartFilled ? mixed(look.colour, theme.well, 0.34)
                                                                        : theme.well;
            if (look.shape == CellShape::Hatched) // a plate, so that the id can be read
                painter.fillRect(
                    rect.adjusted(m_cells.width(2), m_cells.width(5), -m_cells.width(2), -m_cells.width(5)),
                    theme.well);
            m_cells.label(rect, QString::number(id.index()), ids, dim ? theme.text3 : labelOn(ground));
            if (scene.hovered == id)
                m_cells.hover(rect);
        }
    }

    // The gutter, over what scrolls under it.
    const QRect chip = device({kPadding + scroll.x(), top + 1, 24, 20}, view, scroll);
    const QColor hue =
        dim ? mixed(theme.hueOf(row.request.value), theme.panel, theme.dimShare()) : theme.hueOf(row.request.value);
    QFont number = theme.monoFont(theme.type.small, QFont::Medium);
    number.setPixelSize(m_cells.width(number.pixelSize()));
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(row.table ? QPen(Qt::NoPen) : QPen(theme.lineStrong, m_cells.width(1)));
    painter.setBrush(row.table ? QBrush(hue) : QBrush(theme.panel));
    const double radius = theme.radiusBadge * m_scale, half = row.table ? 0 : 0.5 * m_scale;
    painter.drawRoundedRect(QRectF(chip).adjusted(half, half, -half, -half), radius, radius);
    painter.setRenderHint(QPainter::Antialiasing, false);
    m_cells.label(chip, QString::number(row.request.value), number, row.table ? labelOn(hue) : theme.text);
    painter.setPen(dim ? theme.text3 : theme.text2);
    painter.setFont(number);
    painter.drawText(
        device({kPadding + 26 + scroll.x(), top, kCellsLeft - kPadding - 26 - 8, kCellHeight}, view, scroll),
        Qt::AlignRight | Qt::AlignVCenter, QString::number(row.tokens));
    if (!row.table) {
        QFont words = theme.textFont(theme.type.small);
        words.setPixelSize(m_cells.width(words.pixelSize()));
        painter.setFont(words);
        painter.setPen(theme.text3);
        const QString why = row.status == state::RequestStatus::Preempted
                                ? tr("preempted, waits for blocks; arrived at step %1")
                                : tr("waits since step %1");
        painter.drawText(device({kCellsLeft + scroll.x(), top, 600, kCellHeight}, view, scroll), Qt::AlignVCenter,
                         why.arg(row.arrivedStep) + QStringLiteral("  ·  ") + row.title);
    }
}

void BlockTablePainter::paintRuler(QPainter& painter, const QRect& view, QPoint scroll, const TableScene& scene) {
    const Theme& theme = *scene.theme;
    painter.fillRect(QRect(view.topLeft(), QSize(view.width(), m_cells.width(kRuler))), theme.panel);
    QFont words = theme.textFont(theme.type.micro), numbers = theme.monoFont(theme.type.micro);
    words.setPixelSize(m_cells.width(words.pixelSize()));
    numbers.setPixelSize(m_cells.width(numbers.pixelSize()));
    painter.setPen(theme.text3);
    painter.setFont(words);
    painter.drawText(device({kPadding + scroll.x(), scroll.y(), 60, kRuler - 2}, view, scroll), Qt::AlignVCenter,
                     tr("tokens"));
    painter.setFont(numbers);
    std::size_t longest = 0;
    std::uint32_t blockTokens = 0;
    for (const TableRow& row : *scene.rows)
        if (row.table)
            longest = std::max(longest, row.table->size());
    if (!scene.snapshot->pools.empty())
        blockTokens = scene.snapshot->pools.front().shape.blockTokens;
    for (std::size_t logical = 0; logical < longest; logical += kRulerEveryBlocks) {
        const int x = kCellsLeft + static_cast<int>(logical) * kCellWidth;
        if (x < scroll.x() + kCellsLeft || x > scroll.x() + view.width() / m_scale)
            continue;
        painter.drawText(device({x, scroll.y(), 60, kRuler - 2}, view, scroll), Qt::AlignVCenter,
                         QString::number(logical * blockTokens));
    }
}

void BlockTablePainter::paint(QPainter& painter, const QRect& view, double scale, QPoint scroll,
                              const TableScene& scene, bool vector) {
    m_scale = scale;
    m_cells.begin(painter, *scene.theme, scale, vector);
    const std::vector<TableRow>& rows = *scene.rows;
    const std::size_t running = runningRows(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const QRect line = device({0, rowTop(rows, i), 1, kRowPitch}, view, scroll);
        if (line.bottom() < view.top() + m_cells.width(kRuler) || line.bottom() > view.bottom())
            continue;
        if (i == running) {
            const QRect hair = device({kPadding + scroll.x(), rowTop(rows, i) - 22, 1, 1}, view, scroll);
            painter.fillRect(QRect(hair.topLeft(), QSize(view.width() - 2 * m_cells.width(kPadding), m_cells.width(1))),
                             scene.theme->line);
            QFont words = scene.theme->textFont(scene.theme->type.small);
            words.setPixelSize(m_cells.width(words.pixelSize()));
            painter.setFont(words);
            painter.setPen(scene.theme->text3);
            painter.drawText(device({kPadding + scroll.x(), rowTop(rows, i) - 20, 300, 18}, view, scroll),
                             Qt::AlignVCenter, tr("Waiting, no blocks yet"));
        }
        paintRow(painter, view, scroll, scene, i);
    }
    paintRuler(painter, view, scroll, scene);
    const auto visible = [&](const QRect& rect) {
        return rect.top() >= view.top() + m_cells.width(kRuler - 4) && rect.left() >= view.left() + m_cells.width(60) &&
               rect.intersects(view);
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (scene.selection.request == rows[i].request && !scene.selection.block) {
            const QRect chip = device({kPadding + scroll.x(), rowTop(rows, i) + 1, 24, 20}, view, scroll);
            if (chip.top() >= view.top() + m_cells.width(kRuler))
                m_cells.selection(chip);
        }
        if (!rows[i].table || !scene.selection.block)
            continue;
        const auto at = std::find(rows[i].table->begin(), rows[i].table->end(), *scene.selection.block);
        if (at == rows[i].table->end())
            continue;
        const auto logical = static_cast<std::uint32_t>(at - rows[i].table->begin());
        const QRect rect = device(cellRect(rows, {i, logical}), view, scroll);
        if (visible(rect))
            m_cells.selection(rect);
    }
    if (scene.focused && scene.focused->row < rows.size()) {
        const QRect rect = device(cellRect(rows, *scene.focused), view, scroll);
        const int five = m_cells.width(5);
        if (visible(rect))
            m_cells.frame(rect.adjusted(-five, -five, five, five), scene.theme->accent, m_cells.width(2));
    }
}

} // namespace kvatlas::ui

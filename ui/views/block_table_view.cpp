// SPDX-License-Identifier: Apache-2.0
#include "ui/views/block_table_view.h"

#include "ui/theme/number_text.h"
#include "ui/views/empty_note.h"
#include "ui/views/hover_tip.h"
#include "ui/views/memory_map_view.h"

#include <QActionGroup>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QStackedLayout>
#include <QToolButton>

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

BlockTableCanvas::BlockTableCanvas(const Workbench& bench, QWidget* parent)
    : CellCanvas(bench, tr("Block tables"), tr("A row per sequence, physical block ids in logical order; arrows move"),
                 parent)
    , m_snapshot(std::make_shared<state::Snapshot>()) {
    verticalScrollBar()->setSingleStep(BlockTablePainter::kRowPitch);
    horizontalScrollBar()->setSingleStep(BlockTablePainter::kCellWidth);
}

TableScene BlockTableCanvas::scene() const {
    TableScene scene;
    scene.theme = &m_bench.theme();
    scene.snapshot = m_snapshot;
    scene.rows = &m_rows;
    scene.selection = m_bench.linked.selection();
    scene.isolate = m_bench.linked.isolating();
    scene.hovered = m_bench.linked.hovered();
    if (showsRing())
        scene.focused = focusedCell();
    return scene;
}

void BlockTableCanvas::setSnapshot(SnapshotPtr snapshot) {
    m_snapshot = std::move(snapshot);
    m_rows = laneRows(*m_snapshot, m_order);
    relayout();
}

void BlockTableCanvas::setOrder(query::TableOrder order) {
    m_order = order;
    m_rows = laneRows(*m_snapshot, m_order);
    relayout();
}

QPoint BlockTableCanvas::scroll() const {
    return {horizontalScrollBar()->value(), verticalScrollBar()->value()};
}

void BlockTableCanvas::relayout() {
    const QSize content = BlockTablePainter::contentSize(m_rows), room = viewport()->size();
    verticalScrollBar()->setPageStep(room.height());
    verticalScrollBar()->setRange(0, std::max(0, content.height() - room.height()));
    horizontalScrollBar()->setPageStep(room.width());
    horizontalScrollBar()->setRange(0, std::max(0, content.width() - room.width()));
    viewport()->update();
    refreshHover();
}

void BlockTableCanvas::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), m_bench.theme().panel);
    DeviceSpace space(painter);
    m_painter.paint(painter, space.rect(viewport()->rect()), space.scale(), scroll(), scene(), false);
}

void BlockTableCanvas::selectCell(TableCell cell) {
    m_focused = cell;
    const TableRow& row = m_rows[cell.row];
    m_bench.linked.select({row.request, (*row.table)[cell.logical], {}});
}

void BlockTableCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    const QPoint at = event->position().toPoint() + scroll();
    if (const auto cell = BlockTablePainter::cellAt(m_rows, at))
        selectCell(*cell);
    else if (const auto row = BlockTablePainter::rowAt(m_rows, at))
        m_bench.linked.select({m_rows[*row].request, {}, {}});
    else
        m_bench.linked.clearSelection();
}

void BlockTableCanvas::hoverAt(QPointF point) {
    const auto cell = BlockTablePainter::cellAt(m_rows, point.toPoint() + scroll());
    m_bench.linked.hover(cell ? std::optional((*m_rows[cell->row].table)[cell->logical]) : std::nullopt);
    explain(cell);
}

void BlockTableCanvas::explain(std::optional<TableCell> cell) {
    if (!cell) {
        m_tip->withdraw();
        return;
    }
    const TableRow& row = m_rows[cell->row];
    const BlockId id = (*row.table)[cell->logical];
    const state::PoolState& pool = m_snapshot->pools[id.pool().value];
    const state::BlockState& block = pool.block(id.index());
    const std::uint64_t first = std::uint64_t{cell->logical} * pool.shape.blockTokens;
    std::vector<HoverTip::Row> rows{
        {tr("request"), QString::number(row.request.value)},
        {tr("logical index"), tr("%1 of %2").arg(cell->logical).arg(row.table->size())},
        {tr("tokens"), QStringLiteral("%1–%2").arg(first).arg(first + pool.shape.blockTokens - 1)},
        {tr("state"), blockStateText(block)},
        {tr("slots"), tr("%1 of %2").arg(block.usedSlots).arg(pool.shape.blockTokens)}};
    const QRect local = BlockTablePainter::cellRect(m_rows, *cell).translated(-scroll());
    m_tip->present(m_bench.theme(), tr("Block %1").arg(id.index()), std::move(rows),
                   QRect(viewport()->mapToGlobal(local.topLeft()), local.size()));
}

std::optional<TableCell> BlockTableCanvas::focusedCell() const {
    if (!m_focused || m_focused->row >= m_rows.size())
        return {};
    const TableRow& row = m_rows[m_focused->row];
    if (!row.table || row.table->empty())
        return {};
    return TableCell{m_focused->row, std::min(m_focused->logical, static_cast<std::uint32_t>(row.table->size() - 1))};
}

void BlockTableCanvas::moveFocus(int columns, int rowStep) {
    const auto holds = [this](std::size_t row) { return m_rows[row].table && !m_rows[row].table->empty(); };
    std::optional<TableCell> target = focusedCell();
    if (!target) {
        for (std::size_t i = 0; i < m_rows.size() && !target; ++i)
            if (holds(i))
                target = TableCell{i, 0};
        if (!target)
            return;
    } else {
        const std::int64_t row = static_cast<std::int64_t>(target->row) + rowStep;
        if (row < 0 || row >= std::ssize(m_rows) || !holds(static_cast<std::size_t>(row)))
            return;
        target->row = static_cast<std::size_t>(row);
        const std::int64_t last = std::ssize(*m_rows[target->row].table) - 1;
        target->logical =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::int64_t{target->logical} + columns, 0, last));
    }
    selectCell(*target);
    const QRect rect = BlockTablePainter::cellRect(m_rows, *target);
    QScrollBar *across = horizontalScrollBar(), *down = verticalScrollBar();
    if (rect.left() - BlockTablePainter::kCellsLeft < across->value())
        across->setValue(rect.left() - BlockTablePainter::kCellsLeft);
    else if (rect.right() + 8 > across->value() + across->pageStep())
        across->setValue(rect.right() + 8 - across->pageStep());
    if (rect.top() - BlockTablePainter::kRuler < down->value())
        down->setValue(rect.top() - BlockTablePainter::kRuler);
    else if (rect.bottom() + 8 > down->value() + down->pageStep())
        down->setValue(rect.bottom() + 8 - down->pageStep());
}

void BlockTableCanvas::takeFocused() {
    if (const auto cell = focusedCell())
        selectCell(*cell);
}

void BlockTableCanvas::focusSomeCell() {
    if (!m_focused)
        m_focused = TableCell{0, 0};
}

QString BlockTableCanvas::focusedCellName() const {
    const auto cell = focusedCell();
    if (!cell)
        return {};
    const TableRow& row = m_rows[cell->row];
    const BlockId id = (*row.table)[cell->logical];
    return tr("Request %1, entry %2 of %3: ").arg(row.request.value).arg(cell->logical + 1).arg(row.table->size()) +
           QString::fromStdString(query::describeBlock(*m_snapshot, id));
}

QRect BlockTableCanvas::focusedCellRect() const {
    const auto cell = focusedCell();
    return cell ? BlockTablePainter::cellRect(m_rows, *cell).translated(-scroll()).translated(viewport()->pos())
                : QRect();
}

BlockTableView::BlockTableView(const Workbench& bench, std::size_t laneIndex, QWidget* parent)
    : ViewFrame(bench, laneIndex, tr("Block tables"), QStringLiteral("block-tables"), parent) {
    auto* body = new QWidget(this);
    auto* stack = new QStackedLayout(body);
    m_canvas = new BlockTableCanvas(bench, body);
    m_empty = new EmptyNote(bench.appearance, body);
    stack->addWidget(m_canvas);
    stack->addWidget(m_empty);
    setBody(body);
    setSubtitle(tr("physical block ids in logical order"));

    m_orderButton = addControl(tr("Order"), tr("Order of the rows"));
    auto* menu = new QMenu(m_orderButton);
    auto* group = new QActionGroup(menu);
    for (const auto& [order, text] :
         {std::pair{query::TableOrder::Arrival, tr("arrival")}, std::pair{query::TableOrder::Length, tr("length")}}) {
        QAction* action = menu->addAction(text);
        action->setCheckable(true);
        action->setData(static_cast<int>(order));
        group->addAction(action);
        connect(action, &QAction::triggered, this, [this, o = order] { setOrder(o); });
    }
    m_orderButton->setMenu(menu);
    setOrder(query::TableOrder::Arrival);

    connect(&bench.lanes, &LaneSet::shownChanged, this, &BlockTableView::refresh);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &BlockTableView::refresh);
    connect(&bench.lanes, &LaneSet::infoChanged, this, &BlockTableView::refresh);
    connect(&bench.appearance, &Appearance::changed, this, &BlockTableView::refresh);
    refresh();
}

void BlockTableView::setOrder(query::TableOrder order) {
    m_order = order;
    m_canvas->setOrder(order);
    for (QAction* action : m_orderButton->menu()->actions())
        if (action->data().toInt() == static_cast<int>(order)) {
            action->setChecked(true);
            setControlText(m_orderButton, tr("Order"), action->text());
        }
}

void BlockTableView::refresh() {
    const SnapshotPtr snapshot = lane() ? lane()->shown() : std::make_shared<state::Snapshot>();
    m_canvas->setSnapshot(snapshot);
    if (m_canvas->rows().empty())
        m_empty->setText(lane() && lane()->damagedHere() ? tr("This step cannot be shown.")
                         : snapshot->run                 ? tr("No request holds a block at this step.")
                                                         : tr("The table of each request appears here while it runs."),
                         {});
    static_cast<QStackedLayout*>(m_canvas->parentWidget()->layout())
        ->setCurrentWidget(m_canvas->rows().empty() ? static_cast<QWidget*>(m_empty) : m_canvas);
    showLegend(legend());
}

std::vector<LegendEntry> BlockTableView::legend() const {
    const SnapshotPtr snapshot = lane() ? lane()->shown() : nullptr;
    if (!snapshot || snapshot->pools.empty())
        return {};
    const Theme& look = theme();
    std::uint64_t own = 0, part = 0, shared = 0, reserved = 0;
    for (const TableRow& row : m_canvas->rows())
        if (row.table)
            for (BlockId id : *row.table) {
                const state::PoolState& pool = snapshot->pools[id.pool().value];
                const state::BlockState& block = pool.block(id.index());
                reserved += block.kind == state::BlockKind::Reserved;
                if (block.kind != state::BlockKind::Active)
                    continue;
                shared += block.references > 1;
                (block.usedSlots < pool.shape.blockTokens ? part : own) += block.references <= 1;
            }
    const auto entry = [](CellShape shape, const QColor& colour, const QString& text, std::uint64_t count) {
        return LegendEntry{LegendEntry::Mark::Cell, CellLook{shape, colour, 0.6, {}, 0, false}, text, grouped(count)};
    };
    std::vector<LegendEntry> entries;
    if (shared > 0)
        entries.push_back(entry(CellShape::Solid, look.shared(), tr("shared"), shared));
    entries.push_back(entry(CellShape::Solid, look.state.active, tr("full"), own));
    entries.push_back(entry(CellShape::PartFilled, look.state.active, tr("part filled"), part));
    if (reserved > 0)
        entries.push_back(entry(CellShape::Hatched, look.state.reserved, tr("reserved"), reserved));
    return entries;
}

void BlockTableView::paintPicture(QPainter& painter, const QRect& rect, bool vector) {
    if (!lane())
        return;
    const std::vector<TableRow> rows = laneRows(*lane()->shown(), m_order);
    TableScene scene = m_canvas->scene();
    scene.snapshot = lane()->shown();
    scene.rows = &rows;
    scene.focused.reset();
    scene.hovered.reset();
    if (rows.empty()) {
        painter.setFont(theme().textFont(theme().type.body));
        painter.setPen(theme().text2);
        painter.drawText(rect, Qt::AlignCenter, tr("No request holds a block at this step."));
        return;
    }
    DeviceSpace space(painter);
    m_exportPainter.paint(painter, space.rect(rect), space.scale(), {}, scene, vector);
}

} // namespace kvatlas::ui

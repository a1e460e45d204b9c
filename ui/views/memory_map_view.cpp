// SPDX-License-Identifier: Apache-2.0
// Before Qt, whose `slots` is a macro.
#include "core/query/inspector.h"

#include "ui/views/memory_map_view.h"

#include "core/query/memory_map.h"
#include "ui/theme/number_text.h"
#include "ui/views/empty_note.h"
#include "ui/views/hover_tip.h"

#include <QAction>
#include <QActionGroup>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QStackedLayout>
#include <QToolButton>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvatlas::ui {

namespace {

// Sizes that zooming steps through: both ends of every level and what is pleasant between.
constexpr std::array kZoomCells{2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 42, 48, 64, 80, 96, 128, 176, 208};

const state::BlockState* blockOf(const state::Snapshot& snapshot, BlockId id) {
    if (id.pool().value >= snapshot.pools.size() || id.index() >= snapshot.pools[id.pool().value].shape.blocks)
        return nullptr;
    return &snapshot.pools[id.pool().value].block(id.index());
}

} // namespace

QString blockStateText(const state::BlockState& block) {
    switch (block.kind) {
    case state::BlockKind::Free:
        return MemoryMapView::tr("free");
    case state::BlockKind::Cached:
        return MemoryMapView::tr("cached, evictable");
    case state::BlockKind::Reserved:
        return MemoryMapView::tr("reserved");
    case state::BlockKind::Active:
        break;
    }
    return block.references > 1 ? MemoryMapView::tr("active, shared by %1").arg(block.references)
                                : MemoryMapView::tr("active");
}

MemoryMapCanvas::MemoryMapCanvas(const Workbench& bench, QWidget* parent)
    : CellCanvas(bench, tr("Memory map"), tr("Blocks in physical order; arrows move, Enter inspects"), parent)
    , m_snapshot(std::make_shared<state::Snapshot>()) {
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    connect(&bench.linked, &LinkedState::selectionChanged, this, [this] {
        if (const auto& block = m_bench.linked.selection().block; block && *block != m_focused) {
            m_focused = *block;
            announceFocus();
        }
    });
    connect(&bench.linked, &LinkedState::colourByChanged, this, [this] { viewport()->update(); });
}

MapScene MemoryMapCanvas::scene() const {
    MapScene scene;
    scene.theme = &m_bench.theme();
    scene.snapshot = m_snapshot;
    scene.colourBy = m_bench.linked.colourBy();
    scene.selection = m_bench.linked.selection();
    scene.isolate = m_bench.linked.isolating();
    scene.hovered = m_bench.linked.hovered();
    if (showsRing() && m_focused && m_focused != scene.selection.block)
        scene.focused = m_focused;
    if (m_lane)
        scene.tokenText = [lane = m_lane](TokenId token) { return visibleToken(lane->piece(token)); };
    return scene;
}

void MemoryMapCanvas::setSnapshot(SnapshotPtr snapshot, const Lane* lane) {
    const auto shapes = [](const state::Snapshot& s) {
        std::vector<std::pair<std::uint32_t, std::uint64_t>> out;
        out.reserve(s.pools.size());
        for (const state::PoolState& pool : s.pools)
            out.emplace_back(pool.shape.blocks, pool.shape.blockBytes);
        return out;
    };
    const bool relaid = shapes(*snapshot) != shapes(*m_snapshot);
    const bool everywhere = relaid || lane != m_lane || m_bench.linked.colourBy() == ColourBy::Age;
    const QRegion changed = everywhere ? QRegion() : changedCells(*m_snapshot, *snapshot);
    m_snapshot = std::move(snapshot);
    m_lane = lane;
    if (relaid) {
        m_focused.reset();
        relayout();
    }
    if (everywhere)
        viewport()->update();
    else if (!changed.isEmpty())
        viewport()->update(changed);
    refreshHover();
}

// Where the two differ, in the viewport's pixels; everything when that is too much to list.
QRegion MemoryMapCanvas::changedCells(const state::Snapshot& before, const state::Snapshot& after) const {
    constexpr int kMostCells = 256, kAround = 4;
    QRegion region;
    int cells = 0;
    for (std::size_t p = 0; p < after.pools.size(); ++p)
        for (std::size_t c = 0; c < after.pools[p].chunks.size(); ++c) {
            const auto &was = before.pools[p].chunks[c], &is = after.pools[p].chunks[c];
            if (was == is)
                continue;
            for (std::size_t i = 0; i < state::kChunkBlocks; ++i) {
                if ((*was)[i] == (*is)[i])
                    continue;
                if (++cells > kMostCells)
                    return viewport()->rect();
                const BlockId id(PoolId(static_cast<std::uint8_t>(p)),
                                 static_cast<std::uint32_t>(c * state::kChunkBlocks + i));
                region += logicalRect(id).adjusted(-kAround, -kAround, kAround, kAround);
            }
        }
    return region;
}

void MemoryMapCanvas::relayout() {
    const QSize device(static_cast<int>(std::floor(viewport()->width() * scale())),
                       static_cast<int>(std::floor(viewport()->height() * scale())));
    m_layout = MapLayout::make(m_snapshot->pools, device, scale(), m_cell);
    verticalScrollBar()->setRange(0, std::max(0, m_layout.contentHeight() - device.height()));
    verticalScrollBar()->setPageStep(device.height());
    verticalScrollBar()->setSingleStep(
        m_layout.bands().empty() ? 1 : std::max(m_layout.bands().front().pitchY, static_cast<int>(16 * scale())));
    viewport()->update();
    refreshHover();
    emit zoomChanged();
}

void MemoryMapCanvas::zoomTo(int cell, QPoint about) {
    const auto under = m_layout.blockAt(QPoint(static_cast<int>(about.x() * scale()),
                                               static_cast<int>(about.y() * scale()) + verticalScrollBar()->value()));
    m_cell = cell == 0 ? 0 : std::clamp(cell, MapLayout::kMinCell, MapLayout::kMaxCell);
    relayout();
    if (under) // stays under the pointer, as far as wrapping lets it
        verticalScrollBar()->setValue(m_layout.rectOf(*under).center().y() - static_cast<int>(about.y() * scale()));
}

void MemoryMapCanvas::zoomBy(int notches, QPoint about) {
    const int now = m_layout.cellLogical();
    auto at = std::lower_bound(kZoomCells.begin(), kZoomCells.end(), now);
    auto index = std::distance(kZoomCells.begin(), at);
    if (notches < 0 || (at != kZoomCells.end() && *at == now))
        index += notches;
    else
        index += notches - 1;
    index = std::clamp<std::ptrdiff_t>(index, 0, std::ssize(kZoomCells) - 1);
    zoomTo(kZoomCells[static_cast<std::size_t>(index)], about);
}

std::optional<BlockId> MemoryMapCanvas::blockAt(QPointF point) const {
    return m_layout.blockAt(QPoint(static_cast<int>(std::floor(point.x() * scale())),
                                   static_cast<int>(std::floor(point.y() * scale())) + verticalScrollBar()->value()));
}

QRect MemoryMapCanvas::logicalRect(BlockId block) const {
    const QRect device = m_layout.rectOf(block).translated(0, -verticalScrollBar()->value());
    return {static_cast<int>(device.x() / scale()), static_cast<int>(device.y() / scale()),
            static_cast<int>(std::ceil(device.width() / scale())),
            static_cast<int>(std::ceil(device.height() / scale()))};
}

void MemoryMapCanvas::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), m_bench.theme().panel);
    if (m_snapshot->pools.empty())
        return;
    DeviceSpace space(painter);
    m_painter.paint(painter, space.rect(viewport()->rect()), space.rect(event->rect()), verticalScrollBar()->value(),
                    m_layout, scene(), false);
}

void MemoryMapCanvas::select(BlockId block) {
    const state::BlockState* at = blockOf(*m_snapshot, block);
    m_focused = block;
    m_bench.linked.select({at ? at->request : RequestId(), block, {}});
}

void MemoryMapCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    if (const auto block = blockAt(event->position()))
        select(*block);
    else
        m_bench.linked.clearSelection();
}

void MemoryMapCanvas::hoverAt(QPointF point) {
    const auto block = blockAt(point);
    m_bench.linked.hover(block);
    explain(block);
}

void MemoryMapCanvas::explain(std::optional<BlockId> id) {
    if (!id)
        return m_tip->withdraw();
    const state::BlockState* block = blockOf(*m_snapshot, *id);
    if (!block)
        return m_tip->withdraw();
    const trace::PoolShape& shape = m_snapshot->pools[id->pool().value].shape;
    std::vector<HoverTip::Row> rows{{tr("state"), blockStateText(*block)}};
    if (block->request != RequestId())
        rows.push_back({tr("request"), QString::number(block->request.value)});
    if (block->kind == state::BlockKind::Active) {
        rows.push_back({tr("slots"), tr("%1 of %2").arg(block->usedSlots).arg(shape.blockTokens)});
        rows.push_back({tr("logical index"), QString::number(block->logical)});
        rows.push_back({tr("last written"), tr("step %1").arg(block->writtenStep)});
    } else {
        rows.push_back({tr("size"), bytesText(shape.blockBytes)});
        const query::Fact change = query::lastChange(*block); // as the inspector says it
        rows.push_back({QString::fromStdString(change.name).toLower(), QString::fromStdString(change.value)});
    }
    const QRect local = logicalRect(*id);
    m_tip->present(m_bench.theme(), tr("Block %1").arg(id->index()), std::move(rows),
                   QRect(viewport()->mapToGlobal(local.topLeft()), local.size()));
}

void MemoryMapCanvas::wheelEvent(QWheelEvent* event) {
    if (!(event->modifiers() & Qt::ControlModifier)) {
        QAbstractScrollArea::wheelEvent(event);
        return;
    }
    m_wheel += event->angleDelta().y() / 120.0;
    const int notches = static_cast<int>(m_wheel);
    m_wheel -= notches;
    if (notches != 0)
        zoomBy(notches, viewport()->mapFromGlobal(event->globalPosition()).toPoint());
    event->accept();
}

void MemoryMapCanvas::moveFocus(int columns, int rows) {
    if (m_layout.bands().empty())
        return;
    if (!m_focused) {
        m_focused = BlockId(PoolId(0), 0);
    } else {
        const auto band = std::find_if(m_layout.bands().begin(), m_layout.bands().end(),
                                       [this](const MapBand& b) { return b.pool == m_focused->pool().value; });
        const std::int64_t target = std::int64_t{m_focused->index()} + columns + std::int64_t{rows} * band->columns;
        if (target < 0 || target >= band->blocks)
            return;
        m_focused = BlockId(m_focused->pool(), static_cast<std::uint32_t>(target));
    }
    ensureVisible(*m_focused);
    select(*m_focused);
}

void MemoryMapCanvas::ensureVisible(BlockId block) {
    const QRect rect = m_layout.rectOf(block);
    QScrollBar* bar = verticalScrollBar();
    if (rect.top() < bar->value())
        bar->setValue(rect.top() - rect.height());
    else if (rect.bottom() > bar->value() + bar->pageStep())
        bar->setValue(rect.bottom() - bar->pageStep() + rect.height());
}

QPoint MemoryMapCanvas::zoomCentre() const {
    for (const std::optional<BlockId>& block : {m_bench.linked.selection().block, m_focused})
        if (block && viewport()->rect().contains(logicalRect(*block).center()) && blockOf(*m_snapshot, *block))
            return logicalRect(*block).center();
    return viewport()->rect().center();
}

bool MemoryMapCanvas::takeKey(int key) {
    switch (key) {
    case Qt::Key_PageUp:
        verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepSub);
        return true;
    case Qt::Key_PageDown:
        verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepAdd);
        return true;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(1, zoomCentre());
        return true;
    case Qt::Key_Minus:
        zoomBy(-1, zoomCentre());
        return true;
    case Qt::Key_0:
        zoomTo(0, zoomCentre());
        return true;
    default:
        return false;
    }
}

void MemoryMapCanvas::takeFocused() {
    if (m_focused)
        select(*m_focused);
}

void MemoryMapCanvas::focusSomeCell() {
    if (!m_focused && !m_layout.bands().empty())
        m_focused = m_bench.linked.selection().block.value_or(BlockId(PoolId(0), 0));
}

QString MemoryMapCanvas::focusedCellName() const {
    return m_focused && blockOf(*m_snapshot, *m_focused)
               ? QString::fromStdString(query::describeBlock(*m_snapshot, *m_focused))
               : QString();
}

QRect MemoryMapCanvas::focusedCellRect() const {
    return m_focused ? logicalRect(*m_focused).translated(viewport()->pos()) : QRect();
}

MemoryMapView::MemoryMapView(const Workbench& bench, std::size_t laneIndex, QWidget* parent)
    : ViewFrame(bench, laneIndex, tr("Memory map"), QStringLiteral("memory-map"), parent) {
    auto* body = new QWidget(this);
    auto* stack = new QStackedLayout(body);
    m_canvas = new MemoryMapCanvas(bench, body);
    m_empty = new EmptyNote(bench.appearance, body);
    stack->addWidget(m_canvas);
    stack->addWidget(m_empty);
    setBody(body);

    m_colour = addControl(tr("Colour"), tr("Colour the cells by"));
    auto* menu = new QMenu(m_colour);
    auto* group = new QActionGroup(menu);
    const std::pair<ColourBy, QString> ways[] = {{ColourBy::Owner, tr("owner")},
                                                 {ColourBy::State, tr("state")},
                                                 {ColourBy::Age, tr("age")},
                                                 {ColourBy::References, tr("references")}};
    for (const auto& [way, text] : ways) {
        QAction* action = menu->addAction(text);
        action->setCheckable(true);
        action->setData(static_cast<int>(way));
        group->addAction(action);
        connect(action, &QAction::triggered, this, [this, w = way] { m_bench.linked.setColourBy(w); });
    }
    m_colour->setMenu(menu);
    this->menu()->addAction(tr("Fit"), this, [this] { m_canvas->zoomTo(0, {}); });
    this->menu()->addAction(tr("Zoom in"), this, [this] { m_canvas->zoomBy(1, m_canvas->zoomCentre()); });
    this->menu()->addAction(tr("Zoom out"), this, [this] { m_canvas->zoomBy(-1, m_canvas->zoomCentre()); });

    connect(&bench.lanes, &LaneSet::shownChanged, this, &MemoryMapView::refresh);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &MemoryMapView::refresh);
    connect(&bench.linked, &LinkedState::colourByChanged, this, &MemoryMapView::refreshColour);
    connect(&bench.appearance, &Appearance::changed, this, &MemoryMapView::refresh);
    refreshColour();
    refresh();
}

void MemoryMapView::refreshColour() {
    for (QAction* action : m_colour->menu()->actions())
        if (action->data().toInt() == static_cast<int>(m_bench.linked.colourBy())) {
            action->setChecked(true);
            setControlText(m_colour, tr("Colour"), action->text());
        }
    showLegend(legend());
}

void MemoryMapView::refresh() {
    const SnapshotPtr snapshot = lane() ? lane()->shown() : std::make_shared<state::Snapshot>();
    m_canvas->setSnapshot(snapshot, lane());
    static_cast<QStackedLayout*>(m_canvas->parentWidget()->layout())
        ->setCurrentWidget(snapshot->pools.empty() ? static_cast<QWidget*>(m_empty) : m_canvas);
    QStringList parts;
    for (const state::PoolState& pool : snapshot->pools)
        parts << tr("%1 blocks × %2").arg(grouped(pool.shape.blocks), bytesText(pool.shape.blockBytes));
    setSubtitle(parts.join(QLatin1String(", ")));
    showLegend(legend());
}

std::vector<LegendEntry> MemoryMapView::legend() const {
    const SnapshotPtr snapshot = lane() ? lane()->shown() : nullptr;
    if (!snapshot || snapshot->pools.empty())
        return {};
    const Theme& look = theme();
    query::MapLegend counts;
    for (const state::PoolState& pool : snapshot->pools) {
        const query::MapLegend own = query::legendOf(pool);
        counts.active += own.active;
        counts.shared += own.shared;
        counts.partFilled += own.partFilled;
        counts.cached += own.cached;
        counts.free += own.free;
        counts.reserved += own.reserved;
    }
    const QString strategy = snapshot->run ? QString::fromStdString(snapshot->run->strategyJson) : QString();
    const bool contiguous = counts.reserved > 0 || strategy.contains(QLatin1String("contiguous"));
    const auto entry = [](CellShape shape, const QColor& colour, const QString& text, std::uint64_t count) {
        return LegendEntry{LegendEntry::Mark::Cell, CellLook{shape, colour, 0.6, {}, 0, false}, text, grouped(count)};
    };
    std::vector<LegendEntry> entries;
    const ColourBy colourBy = m_bench.linked.colourBy();
    if (colourBy == ColourBy::Age) // the ends of core/query/memory_map.h
        entries.push_back(
            {LegendEntry::Mark::Scale, {}, tr("written in this step"), tr("%1 steps ago or more").arg(grouped(4095))});
    else if (colourBy == ColourBy::References)
        entries.push_back({LegendEntry::Mark::Scale, {}, tr("1 reference"), tr("17 or more")});
    else {
        entries = {entry(CellShape::Solid, look.state.active, tr("active"), counts.active),
                   entry(CellShape::PartFilled, look.state.active, tr("of these part filled"), counts.partFilled)};
        if (counts.shared > 0)
            entries.push_back(entry(CellShape::Solid, look.shared(), tr("of these shared"), counts.shared));
    }
    if (counts.cached > 0)
        entries.push_back(entry(CellShape::Hollow, look.state.cached, tr("cached"), counts.cached));
    entries.push_back(entry(CellShape::Free, look.state.freeLine, tr("free"), counts.free));
    if (contiguous)
        entries.push_back(entry(CellShape::Hatched, look.state.reserved, tr("reserved"), counts.reserved));
    return entries;
}

void MemoryMapView::paintPicture(QPainter& painter, const QRect& rect, bool vector) {
    if (!lane() || lane()->shown()->pools.empty())
        return;
    MapScene scene = m_canvas->scene();
    scene.snapshot = lane()->shown();
    scene.focused.reset();
    scene.hovered.reset();
    DeviceSpace space(painter);
    const QRect device = space.rect(rect);
    const MapLayout layout = MapLayout::make(scene.snapshot->pools, device.size(), space.scale(), 0);
    m_exportPainter.paint(painter, device, device, 0, layout, scene, vector);
}

} // namespace kvatlas::ui

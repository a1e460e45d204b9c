// SPDX-License-Identifier: Apache-2.0
#include "ui/views/timeline_view.h"

#include "ui/views/view_frame.h"

#include <QLabel>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {
constexpr int kHeader = 28, kAxis = 20, kMinChart = 52, kBadgeHeight = 17, kMarginLine = 16;
constexpr int kBadgeTop = kHeader - 4; // below the legend's text, above the line of the capacity
constexpr double kVeil = 0.42;
} // namespace

// Over chart and bars: veil, playhead, focus ring. Takes no mouse.
class TimelineView::Overlay : public QWidget {
public:
    explicit Overlay(TimelineView* view)
        : QWidget(view)
        , m_view(*view) {
        setAttribute(Qt::WA_TransparentForMouseEvents);
        setAccessibleName(TimelineView::tr("Playhead"));
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        const QRect body = rect().adjusted(0, kHeader, 0, 0);
        m_view.paintVeil(painter, body.adjusted(0, 0, 0, -kAxis), m_view.m_scale);
        m_view.paintPlayhead(painter, rect().adjusted(0, kBadgeTop, 0, -kAxis), m_view.m_scale);
        m_view.paintUnit(painter, QPoint(12, kHeader + 2));
        if (m_view.hasFocus()) {
            painter.setPen(QPen(m_view.m_bench.theme().accent, 2));
            painter.drawRect(rect().adjusted(1, 1, -1, -1));
        }
    }

private:
    TimelineView& m_view;
};

class TimelineView::MemoryPicture : public Picture {
public:
    explicit MemoryPicture(TimelineView& view)
        : m_view(view) {}
    QString pictureTitle() const override { return TimelineView::tr("Memory over time"); }
    QString pictureSubtitle() const override { return TimelineView::tr("KV memory in MiB, by step"); }
    std::vector<LegendEntry> legend() const override { return m_view.memoryLegend(); }
    void paintPicture(QPainter& painter, const QRect& rect, bool vector) override {
        TimelineScale scale = m_view.m_scale;
        scale.width = rect.width();
        const QRect plot = rect.adjusted(0, 0, 0, -kAxis);
        MemoryChart chart;
        chart.setTheme(m_view.m_bench.theme(), vector);
        chart.resize(plot.size());
        chart.setHistory(*m_view.history(), scale);
        painter.save();
        painter.translate(plot.topLeft());
        if (vector) {
            // QCustomPlot paints through a QCPPainter only: record it, then play it into any device.
            QPicture recorded;
            QCPPainter recorder(&recorded);
            recorder.setMode(QCPPainter::pmVectorized);
            recorder.setMode(QCPPainter::pmNoCaching);
            chart.toPainter(&recorder, plot.width(), plot.height());
            recorder.end();
            painter.drawPicture(0, 0, recorded);
        } else {
            const double ratio = painter.deviceTransform().m11();
            painter.drawPixmap(QRect(QPoint(), plot.size()), chart.toPixmap(plot.width(), plot.height(), ratio));
        }
        painter.restore();
        if (vector)
            MemoryChart::hatchAreas(painter, plot, m_view.m_bench.theme(), *m_view.history(), scale);
        m_view.paintUnit(painter, plot.topLeft() + QPoint(12, 2));
        m_view.paintVeil(painter, plot, scale);
        m_view.paintPlayhead(painter, plot, scale);
        m_view.paintAxis(painter, QRect(rect.x(), rect.bottom() + 1 - kAxis, rect.width(), kAxis), scale);
    }

private:
    TimelineView& m_view;
};

class TimelineView::RequestsPicture : public Picture {
public:
    explicit RequestsPicture(TimelineView& view)
        : m_view(view) {}
    QString pictureTitle() const override { return TimelineView::tr("Requests"); }
    QString pictureSubtitle() const override { return TimelineView::tr("waiting, prefill and decode, by step"); }
    std::vector<LegendEntry> legend() const override { return m_view.requestsLegend(); }
    void paintPicture(QPainter& painter, const QRect& rect, bool) override {
        TimelineScale scale = m_view.m_scale;
        scale.width = rect.width();
        const QRect body = rect.adjusted(0, kBadgeHeight, 0, -kAxis);
        const HistoryPtr rows = m_view.history();
        const query::RequestBars bars = query::requestBars(rows->requests, scale.axis(), rows->lastStep, rows->gaps);
        RequestBarPainter::paint(painter, body, m_view.m_bench.theme(), bars, m_view.m_bench.linked.selection());
        m_view.paintLeftOut(painter, body, bars);
        m_view.paintVeil(painter, body, scale);
        m_view.paintPlayhead(painter, rect.adjusted(0, 0, 0, -kAxis), scale);
        m_view.paintAxis(painter, QRect(rect.x(), rect.bottom() + 1 - kAxis, rect.width(), kAxis), scale);
    }

private:
    TimelineView& m_view;
};

TimelineView::TimelineView(const Workbench& bench, QWidget* parent)
    : QWidget(parent)
    , m_bench(bench) {
    setAccessibleName(tr("Timeline"));
    setAccessibleDescription(tr("Left and right move one step, with Shift ten; Home and End jump"));
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    m_chart = new MemoryChart(this);
    m_title = new QLabel(tr("Memory over time"), this);
    m_title->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_legend = new LegendBar(bench, this);
    m_legend->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_overlay = new Overlay(this);
    m_memoryPicture = std::make_unique<MemoryPicture>(*this);
    m_requestsPicture = std::make_unique<RequestsPicture>(*this);
    connect(&bench.lanes, &LaneSet::historyChanged, this, &TimelineView::refreshHistory);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &TimelineView::refreshHistory);
    connect(&bench.lanes, &LaneSet::infoChanged, this, &TimelineView::refreshHistory);
    connect(&bench.linked, &LinkedState::cursorMoved, this, &TimelineView::movePlayhead);
    connect(&bench.linked, &LinkedState::selectionChanged, this, qOverload<>(&QWidget::update));
    connect(&bench.appearance, &Appearance::changed, this, &TimelineView::restyle);
    restyle();
}

TimelineView::~TimelineView() = default;

HistoryPtr TimelineView::history() const {
    static const HistoryPtr none = std::make_shared<source::HistoryAnswer>();
    return lane() ? lane()->history() : none;
}

void TimelineView::restyle() {
    const Theme& theme = m_bench.theme();
    m_title->setFont(theme.textFont(theme.type.body, QFont::DemiBold));
    m_title->adjustSize();
    m_chart->setTheme(theme);
    layOut();
    refreshHistory();
}

void TimelineView::refreshHistory() {
    const bool grows = lane() && lane()->capabilities().live && !lane()->ended();
    const HistoryPtr rows = history();
    m_scale.lastStep = TimelineScale::endFor(std::max(rows->lastStep, lane() ? lane()->lastStep() : 0), grows);
    m_scale.width = width();
    m_bars = query::requestBars(rows->requests, m_scale.axis(), rows->lastStep, rows->gaps);
    m_chart->setHistory(*rows, m_scale);
    m_legend->setEntries(memoryLegend());
    m_playheadX = static_cast<int>(m_scale.xOf(std::min(m_bench.linked.cursor(), m_scale.lastStep)));
    update();
}

std::vector<LegendEntry> TimelineView::memoryLegend() const {
    const Theme& theme = m_bench.theme();
    bool cached = false, reserved = false;
    const HistoryPtr rows = history();
    for (const trace::StepRow& row : rows->steps) {
        cached = cached || row.cachedBytes > 0;
        reserved = reserved || row.reservedBytes > 0;
    }
    const auto look = [](CellShape shape, const QColor& colour) { return CellLook{shape, colour, 1, {}, 0, false}; };
    std::vector<LegendEntry> entries{
        {LegendEntry::Mark::Cell, look(CellShape::Solid, theme.state.active), tr("active, used"), {}},
        {LegendEntry::Mark::Hatch, look(CellShape::Hatched, theme.state.waste), tr("wasted inside blocks"), {}}};
    if (cached)
        entries.push_back({LegendEntry::Mark::Cell, look(CellShape::Hollow, theme.state.cached), tr("cached"), {}});
    if (reserved)
        entries.push_back(
            {LegendEntry::Mark::Hatch, look(CellShape::Hatched, theme.state.reserved), tr("reserved"), {}});
    entries.push_back({LegendEntry::Mark::Line, look(CellShape::Solid, theme.text), tr("capacity"), {}});
    return entries;
}

std::vector<LegendEntry> TimelineView::requestsLegend() const {
    const Theme& theme = m_bench.theme();
    CellLook solid{CellShape::Solid, theme.state.active, 1, {}, 0, false}, decode = solid;
    decode.colour = mixed(theme.state.active, theme.panel, 0.30);
    std::vector<LegendEntry> entries{{LegendEntry::Mark::Line, solid, tr("waiting"), {}},
                                     {LegendEntry::Mark::Cell, solid, tr("prefill"), {}},
                                     {LegendEntry::Mark::Cell, decode, tr("decode"), {}}};
    if (!history()->gaps.empty())
        entries.push_back({LegendEntry::Mark::DashedLine, solid, tr("preempted (P)"), {}});
    return entries;
}

// In the margin beside the bars: what their looks mean, one below the other, and what there was no room for.
void TimelineView::paintBarsMargin(QPainter& painter, const QRect& bars) const {
    const Theme& theme = m_bench.theme();
    painter.setFont(theme.textFont(theme.type.body - 1, QFont::DemiBold));
    painter.setPen(theme.text);
    painter.drawText(QRect(12, bars.y() + 3, TimelineScale::kLeft - 16, 18), Qt::AlignVCenter, tr("Requests"));
    const std::uint32_t leftOut = RequestBarPainter::lanesLeftOut(bars, m_bars);
    int y = bars.y() + 23;
    const int end = bars.bottom() + 1 - (leftOut > 0 ? kMarginLine : 0);
    if (lane())
        for (const LegendEntry& entry : requestsLegend()) {
            if (y + kMarginLine > end)
                break;
            paintLegend(painter, QRect(12, y, TimelineScale::kLeft - 12, kMarginLine), theme, {entry});
            y += kMarginLine;
        }
    paintLeftOut(painter, bars, m_bars);
}

void TimelineView::paintLeftOut(QPainter& painter, const QRect& rect, const query::RequestBars& bars) const {
    const std::uint32_t leftOut = RequestBarPainter::lanesLeftOut(rect, bars);
    if (leftOut == 0)
        return;
    const Theme& theme = m_bench.theme();
    painter.setFont(theme.textFont(theme.type.small));
    painter.setPen(theme.text2);
    painter.drawText(QRect(rect.x() + 12, rect.bottom() + 1 - kMarginLine, TimelineScale::kLeft - 12, kMarginLine),
                     Qt::AlignVCenter, tr("%1 rows more").arg(leftOut));
}

QRect TimelineView::barsRect() const {
    const QRect chart = m_chart->geometry();
    return {0, chart.bottom() + 1, width(), height() - kAxis - chart.bottom() - 1};
}

// Repaints only the strip that the playhead left and the one it came to: the rest stays as it is.
void TimelineView::movePlayhead() {
    constexpr int kHalfBadge = 40;
    const int now = static_cast<int>(m_scale.xOf(std::min(m_bench.linked.cursor(), m_scale.lastStep)));
    const int left = std::min(now, m_playheadX) - kHalfBadge, right = std::max(now, m_playheadX) + kHalfBadge;
    m_playheadX = now;
    m_overlay->update(left, 0, right - left, height());
}

void TimelineView::layOut() {
    const int body = height() - kHeader - kAxis;
    const int chart = std::max(kMinChart, body * 48 / 100);
    m_title->move(12, (kHeader - m_title->height()) / 2);
    const int legendLeft = m_title->x() + m_title->width() + 12;
    m_legend->setGeometry(legendLeft, 4, std::max(0, width() - legendLeft), 24);
    m_chart->setGeometry(0, kHeader, width(), chart);
    m_scale.width = width();
    m_overlay->setGeometry(rect());
    m_overlay->raise();
}

void TimelineView::resizeEvent(QResizeEvent*) {
    layOut();
    refreshHistory();
}

void TimelineView::paintAxis(QPainter& painter, const QRect& rect, const TimelineScale& scale) const {
    const Theme& theme = m_bench.theme();
    painter.setPen(theme.text3);
    painter.setFont(theme.textFont(theme.type.micro));
    painter.drawText(QRect(rect.x() + 12, rect.y(), 60, rect.height()), Qt::AlignVCenter, tr("step"));
    painter.setFont(theme.monoFont(theme.type.micro));
    for (const query::Tick& tick : query::stepTicks(0, scale.lastStep, std::max(2, scale.width / 160))) {
        const double x = rect.x() + scale.xOf(tick.value);
        painter.fillRect(QRectF(std::round(x), rect.y(), 1, 3), theme.lineStrong);
        const QRectF box(x - 40, rect.y() + 2, 80, rect.height() - 2);
        const bool last = x + 20 > rect.x() + rect.width();
        painter.drawText(last ? QRectF(rect.right() - 82, box.y(), 80, box.height()) : box,
                         (last ? Qt::AlignRight : Qt::AlignHCenter) | Qt::AlignVCenter,
                         QString::fromStdString(tick.text));
    }
}

void TimelineView::paintUnit(QPainter& painter, QPoint at) const {
    painter.setPen(m_bench.theme().text3);
    painter.setFont(m_bench.theme().textFont(m_bench.theme().type.micro));
    painter.drawText(QRect(at, QSize(60, 14)), Qt::AlignVCenter, m_chart->unit());
}

void TimelineView::paintVeil(QPainter& painter, const QRect& rect, const TimelineScale& scale) const {
    if (!lane())
        return;
    const double from = rect.x() + scale.xOf(m_bench.linked.cursor()), to = rect.x() + scale.xOf(scale.lastStep);
    QColor veil = m_bench.theme().panel;
    veil.setAlphaF(kVeil);
    if (to > from)
        painter.fillRect(QRectF(from, rect.y(), to - from, rect.height()), veil);
}

void TimelineView::paintPlayhead(QPainter& painter, const QRect& rect, const TimelineScale& scale) const {
    if (!lane())
        return;
    const Theme& theme = m_bench.theme();
    const double x = std::round(rect.x() + scale.xOf(std::min(m_bench.linked.cursor(), scale.lastStep)));
    const QFont font = theme.monoFont(theme.type.small, QFont::Medium);
    const QString text = QString::number(m_bench.linked.cursor());
    const int width = QFontMetrics(font).horizontalAdvance(text) + 12;
    QRectF badge(x - width / 2.0, rect.y(), width, kBadgeHeight);
    badge.moveLeft(std::clamp(badge.left(), double(rect.x()), double(rect.x() + rect.width() - width)));
    painter.fillRect(QRectF(x - 1, badge.bottom() - 1, 2, rect.bottom() - badge.bottom() + 2), theme.accent);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.accent);
    painter.drawRoundedRect(badge, theme.radiusBadge, theme.radiusBadge);
    painter.restore();
    painter.setPen(theme.accentText);
    painter.setFont(font);
    painter.drawText(badge, Qt::AlignCenter, text);
}

void TimelineView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const Theme& theme = m_bench.theme();
    painter.fillRect(rect(), theme.panel);
    const QRect bars = barsRect();
    paintBarsMargin(painter, bars);
    RequestBarPainter::paint(painter, bars, theme, m_bars, m_bench.linked.selection());
    if (!lane()) {
        painter.setFont(theme.textFont(theme.type.body));
        painter.setPen(theme.text2);
        painter.drawText(bars.adjusted(TimelineScale::kLeft, 0, -TimelineScale::kRight, 0), Qt::AlignCenter,
                         tr("Memory and requests over time appear here; drag to look back."));
        return;
    }
    paintAxis(painter, QRect(0, height() - kAxis, width(), kAxis), m_scale);
    if (const QString text = notRecorded(); !text.isEmpty()) {
        painter.setFont(theme.textFont(theme.type.small));
        painter.setPen(theme.text3);
        const int from = static_cast<int>(m_scale.xOf(lane()->recordedTo().value_or(0) + 1)) + 8;
        const int need = painter.fontMetrics().horizontalAdvance(text) + 8;
        painter.drawText(QRect(std::min(from, width() - need), bars.y(), need, bars.height()), Qt::AlignVCenter, text);
    }
}

QString TimelineView::notRecorded() const {
    const auto to = lane() ? lane()->recordedTo() : std::nullopt;
    return to && lane()->latest()->step > *to ? tr("not recorded after step %1").arg(*to) : QString();
}

void TimelineView::scrub(double x) {
    if (!lane())
        return;
    m_bench.lanes.goTo(m_scale.stepAt(x));
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    if (const auto request = RequestBarPainter::barAt(event->position().toPoint(), barsRect(), m_bars)) {
        m_bench.linked.select({*request, {}, {}});
        return;
    }
    if (event->position().y() < kHeader && std::abs(event->position().x() - m_scale.xOf(m_bench.linked.cursor())) > 12)
        return;
    m_scrubbing = true;
    scrub(event->position().x());
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
    if (m_scrubbing)
        scrub(event->position().x());
    const bool grip = std::abs(event->position().x() - m_scale.xOf(m_bench.linked.cursor())) <= 6;
    setCursor(grip || m_scrubbing ? Qt::SizeHorCursor : Qt::ArrowCursor);
}

void TimelineView::mouseReleaseEvent(QMouseEvent*) {
    m_scrubbing = false;
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
    const int by = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    switch (event->key()) {
    case Qt::Key_Left:
        m_bench.lanes.stepBy(-by);
        break;
    case Qt::Key_Right:
        m_bench.lanes.stepBy(by);
        break;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    event->accept();
}

void TimelineView::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    m_overlay->update();
}

void TimelineView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    m_overlay->update();
}

} // namespace kvatlas::ui

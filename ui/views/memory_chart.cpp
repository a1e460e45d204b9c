// SPDX-License-Identifier: Apache-2.0
#include "ui/views/memory_chart.h"

#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr double kMiB = 1 << 20;
constexpr double kHeadroom = 1.02; // over the capacity, so that its line is seen and the next round tick fits
constexpr double kLeastPx = 1.5;   // what is there is seen, however little of the capacity it is

// A hatch as a brush: areas, unlike cells, may start anywhere.
QBrush hatchBrush(const QColor& ink, const QColor& ground) {
    constexpr int side = 6;
    QPixmap tile(side, side);
    tile.fill(ground);
    QPainter painter(&tile);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(ink, 1.3));
    for (int offset : {-side, 0, side})
        painter.drawLine(offset, side, offset + side, 0);
    painter.end();
    return QBrush(tile);
}

} // namespace

MemoryChart::MemoryChart(QWidget* parent)
    : QCustomPlot(parent) {
    setAccessibleName(tr("Memory over time"));
    setFocusPolicy(Qt::NoFocus);
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setNotAntialiasedElements(QCP::AntialiasedElements(QCP::aeAll & ~QCP::aePlottables));
    setAntialiasedElements(QCP::aePlottables);
    setPlottingHints(QCP::phFastPolylines);
    setNoAntialiasingOnDrag(true);
    plotLayout()->setRowSpacing(0);
    axisRect()->setAutoMargins(QCP::msNone);
    axisRect()->setMargins({TimelineScale::kLeft, kTop, TimelineScale::kRight, kBottom});
    for (QCPAxis* axis : {xAxis, yAxis}) {
        axis->setBasePen(Qt::NoPen);
        axis->setSubTicks(false);
        axis->grid()->setZeroLinePen(Qt::NoPen);
        axis->setTickLengthIn(0);
        axis->setTickLengthOut(0);
    }
    xAxis->setTicks(false);
    xAxis->setTickLabels(false);
    xAxis->grid()->setVisible(false);
    yAxis->setTickLabelPadding(8);
    yAxis->setTicker(QSharedPointer<QCPAxisTickerText>::create());
    m_used = addGraph();
    m_waste = addGraph();
    m_cached = addGraph();
    m_reserved = addGraph();
    m_capacity = addGraph();
    for (QCPGraph* graph : {m_used, m_waste, m_cached, m_reserved, m_capacity}) {
        graph->setAdaptiveSampling(true);
        graph->setLineStyle(QCPGraph::lsStepRight); // a step is as wide as its bar and as high as the state after it
        graph->setPen(Qt::NoPen);
    }
    m_waste->setChannelFillGraph(m_used);
    m_cached->setChannelFillGraph(m_waste);
    m_reserved->setChannelFillGraph(m_cached);
}

void MemoryChart::setTheme(const Theme& theme, bool vector) {
    setBackground(theme.panel);
    yAxis->grid()->setPen(QPen(theme.line, 0));
    yAxis->setTickPen(QPen(theme.lineStrong, 0));
    yAxis->setTickLabelFont(theme.monoFont(theme.type.micro));
    yAxis->setTickLabelColor(theme.text3);
    m_used->setBrush(theme.state.active);
    m_waste->setBrush(vector ? QBrush(Qt::NoBrush) : hatchBrush(theme.state.waste, theme.panel));
    m_cached->setBrush(mixed(theme.state.cached, theme.panel, 0.35));
    m_reserved->setBrush(vector ? QBrush(Qt::NoBrush) : hatchBrush(theme.state.reserved, theme.panel));
    m_cached->setPen(QPen(theme.state.cached, 1));
    m_capacity->setPen(QPen(theme.text, 0));
    replot(QCustomPlot::rpQueuedReplot);
}

void MemoryChart::hatchAreas(QPainter& painter, const QRect& plot, const Theme& theme,
                             const source::HistoryAnswer& history, const TimelineScale& scale) {
    std::vector<query::MemoryPoint> points = query::memorySeries(history.steps, scale.axis());
    double capacity = 0;
    for (const query::MemoryPoint& point : points)
        capacity = std::max(capacity, point.capacity);
    if (points.empty() || capacity <= 0)
        return;
    points.insert(points.begin(), points.front()); // where its step begins
    points.front().x = scale.xOf(double(points.front().step) - 1);
    const double range = capacity * kHeadroom, bottom = plot.y() + plot.height() - kBottom;
    const double height = plot.height() - kTop - kBottom;
    const auto hatch = [&](double query::MemoryPoint::*lower, double query::MemoryPoint::*upper, const QColor& ink) {
        // The band at each whole x: of the step that lies there.
        const int left = static_cast<int>(std::ceil(points.front().x));
        const int right = static_cast<int>(std::floor(points.back().x));
        std::vector<std::pair<double, double>> band; // top, bottom
        std::size_t at = 0;
        for (int x = left; x <= right; ++x) {
            while (at + 1 < points.size() && points[at].x < x)
                ++at;
            const auto y = [&](double query::MemoryPoint::*value) {
                return bottom - points[at].*value / range * height;
            };
            band.emplace_back(y(upper), y(lower));
        }
        painter.setPen(QPen(ink, 1.3));
        constexpr int kPitch = 6;
        for (int sum = kPitch; sum < right + plot.height() + plot.y(); sum += kPitch) { // lines x + y = sum
            int from = -1;
            for (int x = left; x <= right + 1; ++x) {
                const double y = sum - x;
                const bool inside = x <= right && y >= band[static_cast<std::size_t>(x - left)].first &&
                                    y <= band[static_cast<std::size_t>(x - left)].second;
                if (inside && from < 0)
                    from = x;
                if (!inside && from >= 0) {
                    painter.drawLine(QPointF(plot.x() + from - 0.5, sum - from + 0.5),
                                     QPointF(plot.x() + x - 0.5, sum - x + 0.5));
                    from = -1;
                }
            }
        }
    };
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    hatch(&query::MemoryPoint::usedTop, &query::MemoryPoint::activeTop, theme.state.waste);
    hatch(&query::MemoryPoint::cachedTop, &query::MemoryPoint::reservedTop, theme.state.reserved);
    painter.restore();
}

void MemoryChart::setHistory(const source::HistoryAnswer& history, const TimelineScale& scale) {
    const std::vector<query::MemoryPoint> points = query::memorySeries(history.steps, scale.axis());
    QVector<QCPGraphData> used, waste, cached, reserved, capacity;
    for (auto* series : {&used, &waste, &cached, &reserved})
        series->reserve(static_cast<qsizetype>(points.size()));
    m_capacityBytes = 0;
    bool cachedEver = false;
    for (const query::MemoryPoint& point : points) {
        m_capacityBytes = std::max(m_capacityBytes, point.capacity);
        cachedEver = cachedEver || point.cachedTop > point.activeTop;
    }
    const double least = m_capacityBytes * kHeadroom * kLeastPx / std::max(1, height() - kTop - kBottom);
    const auto stack = [&](double at, const query::MemoryPoint& point) {
        const double usedTop = point.usedTop > 0 ? std::max(point.usedTop, least) : 0;
        const double activeTop = std::max(point.activeTop, usedTop), cachedTop = std::max(point.cachedTop, activeTop);
        used.push_back({at, usedTop});
        waste.push_back({at, activeTop});
        cached.push_back({at, cachedTop});
        reserved.push_back({at, std::max(point.reservedTop, cachedTop)});
    };
    if (!points.empty())
        stack(double(points.front().step) - 1, points.front());
    for (const query::MemoryPoint& point : points)
        stack(point.step, point);
    capacity.push_back({-1, m_capacityBytes});
    capacity.push_back({double(scale.lastStep), m_capacityBytes});
    const auto put = [](QCPGraph* graph, const QVector<QCPGraphData>& series) {
        auto container = QSharedPointer<QCPGraphDataContainer>::create();
        container->set(series, true);
        graph->setData(container);
    };
    put(m_used, used);
    put(m_waste, waste);
    put(m_cached, cached);
    put(m_reserved, reserved);
    put(m_capacity, capacity);
    m_cached->setVisible(cachedEver);
    m_capacity->setVisible(m_capacityBytes > 0);
    xAxis->setRange(-1, scale.lastStep);
    yAxis->setRange(0, m_capacityBytes > 0 ? m_capacityBytes * kHeadroom : kMiB);
    fitTicks();
    replot(QCustomPlot::rpQueuedReplot);
}

void MemoryChart::fitTicks() {
    const int most = std::clamp((height() - kTop - kBottom) / 18, 2, 4);
    const query::ByteTicks ticks = query::byteTicks(static_cast<std::uint64_t>(m_capacityBytes * kHeadroom), most);
    auto ticker = QSharedPointer<QCPAxisTickerText>::create();
    for (const query::Tick& tick : ticks.ticks)
        ticker->addTick(tick.value, QString::fromStdString(tick.text));
    m_unit = m_capacityBytes > 0 ? QString::fromStdString(ticks.unit) : QString();
    yAxis->setTickLabels(m_capacityBytes > 0);
    yAxis->setTicker(ticker);
}

void MemoryChart::resizeEvent(QResizeEvent* event) {
    setBufferDevicePixelRatio(devicePixelRatioF());
    fitTicks();
    QCustomPlot::resizeEvent(event);
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Full width at the bottom: memory over time and the request bars on one step axis, with the scrubber. Drag anywhere to
// scrub, click a bar to select its request. Two pictures: "memory-over-time" and "requests". GUI thread.
#pragma once

#include "ui/views/memory_chart.h"
#include "ui/views/picture.h"
#include "ui/views/request_bars.h"
#include "ui/workbench.h"

#include <QWidget>

class QLabel;

namespace kvatlas::ui {

class LegendBar;

class TimelineView : public QWidget {
    Q_OBJECT
public:
    explicit TimelineView(const Workbench& bench, QWidget* parent = nullptr);
    ~TimelineView() override;

    Picture& memoryPicture() { return *m_memoryPicture; }
    Picture& requestsPicture() { return *m_requestsPicture; }
    const TimelineScale& scale() const { return m_scale; }
    const query::RequestBars& bars() const { return m_bars; }
    MemoryChart& chart() { return *m_chart; }
    QRect barsRect() const;
    QString notRecorded() const; // what is missing; empty: nothing

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    class Overlay;
    class MemoryPicture;
    class RequestsPicture;

    void refreshHistory();
    void restyle();
    void layOut();
    void movePlayhead();
    void scrub(double x);
    void paintAxis(QPainter& painter, const QRect& rect, const TimelineScale& scale) const;
    void paintUnit(QPainter& painter, QPoint at) const;
    void paintVeil(QPainter& painter, const QRect& rect, const TimelineScale& scale) const;
    void paintPlayhead(QPainter& painter, const QRect& rect, const TimelineScale& scale) const;
    std::vector<LegendEntry> memoryLegend() const;
    std::vector<LegendEntry> requestsLegend() const;
    void paintBarsMargin(QPainter& painter, const QRect& bars) const;
    void paintLeftOut(QPainter& painter, const QRect& rect, const query::RequestBars& bars) const;
    Lane* lane() const { return m_bench.lanes.lane(0); }
    HistoryPtr history() const;

    const Workbench m_bench;
    MemoryChart* m_chart;
    LegendBar* m_legend;
    QLabel* m_title;
    Overlay* m_overlay;
    TimelineScale m_scale;
    query::RequestBars m_bars;
    std::unique_ptr<Picture> m_memoryPicture, m_requestsPicture;
    bool m_scrubbing = false;
    int m_playheadX = 0; // where it was painted last
};

} // namespace kvatlas::ui

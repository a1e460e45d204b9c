// SPDX-License-Identifier: Apache-2.0
// Memory over time as a QCustomPlot: stacked areas of active, wasted inside blocks, cached and reserved bytes, the
// capacity as a line. No legend and no playhead of its own. GUI thread.
#pragma once

#include "ui/bridge/lane.h"
#include "ui/theme/theme.h"
#include "ui/views/timeline_scale.h"

#include <qcustomplot.h>

namespace kvatlas::ui {

class MemoryChart : public QCustomPlot {
    Q_OBJECT
public:
    explicit MemoryChart(QWidget* parent = nullptr);

    // `vector`: hatched areas are left empty, since SVG knows no textures; hatchAreas fills them with lines.
    void setTheme(const Theme& theme, bool vector = false);
    static void hatchAreas(QPainter& painter, const QRect& plot, const Theme& theme,
                           const source::HistoryAnswer& history, const TimelineScale& scale);
    void setHistory(const source::HistoryAnswer& history, const TimelineScale& scale);
    static constexpr int kTop = 17, kBottom = 7; // the step number of the playhead lies over the capacity

    QString unit() const { return m_unit; } // of the numbers at the left, "MiB"

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fitTicks();
    QCPGraph *m_used, *m_waste, *m_cached, *m_reserved, *m_capacity;
    double m_capacityBytes = 0;
    QString m_unit;
};

} // namespace kvatlas::ui

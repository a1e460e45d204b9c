// SPDX-License-Identifier: Apache-2.0
// The head of a lane: letter badge, strategy name, what it is in words, the exact badge. GUI thread.
#pragma once

#include "ui/workbench.h"

#include <QWidget>

#include <optional>

namespace kvatlas::ui {

// Paints the letter badge of a lane into `box`.
void paintLaneBadge(QPainter& painter, const Theme& theme, const QRect& box, std::size_t lane);

// Its own name; layout and formats of one that has none.
QString strategyName(const trace::RunStarted& run);

class LaneHeader : public QWidget {
    Q_OBJECT
public:
    LaneHeader(const Workbench& bench, std::size_t laneIndex, QWidget* parent = nullptr);
    const QString& name() const { return m_name; }
    const QString& summary() const { return m_summary; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void refresh();
    const Workbench m_bench;
    std::size_t m_laneIndex;
    QString m_name, m_summary;
    std::shared_ptr<const trace::RunStarted> m_run;
    std::optional<bool> m_known; // whether there was a lane at the last refresh
    bool m_damaged = false;
};

} // namespace kvatlas::ui

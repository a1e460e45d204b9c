// SPDX-License-Identifier: Apache-2.0
// The status bar: step, tokens per second, KV of limit, active, waste, requests at the cursor; what of it is measured.
// GUI thread.
#pragma once

#include "core/query/status.h"
#include "ui/workbench.h"

#include <QStatusBar>

class QLabel;

namespace kvatlas::ui {

class StatusStrip : public QStatusBar {
    Q_OBJECT
public:
    explicit StatusStrip(const Workbench& bench, QWidget* parent = nullptr);
    QString text() const { return m_text; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void refresh();
    void restyle();
    const Workbench m_bench;
    std::vector<query::StatusItem> m_items;
    QString m_lead, m_text;
    bool m_measured = true;
};

// Tokens per second over about the second before `step`, from measured step times; none without them.
void addRates(query::StatusFigures& figures, const source::HistoryAnswer& history, Step step);

} // namespace kvatlas::ui

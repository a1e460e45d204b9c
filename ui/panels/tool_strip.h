// SPDX-License-Identifier: Apache-2.0
// The toolbar: model and scenario pickers, the lane chip, back, play, step, speed, follow, the backend. GUI thread.
#pragma once

#include "ui/workbench.h"

#include <QWidget>

#include <tuple>

class QHBoxLayout;
class QLabel;
class QMenu;
class QToolButton;

namespace kvatlas::ui {

class SetupPanel;

class ToolStrip : public QWidget {
    Q_OBJECT
public:
    ToolStrip(const Workbench& bench, SetupPanel& setup, QWidget* parent = nullptr);

    void changeSpeed(int by); // [ and ]
    QToolButton* playButton() const { return m_play; }
    QToolButton* followButton() const { return m_follow; }
    void setCompact(bool compact);

signals:
    void playRequested(); // nothing is open: run what the setup says

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    class LaneChip;
    void addSeparator();
    QToolButton* addButton(const QString& name, const QString& tip);
    void restyle();
    void refresh();
    void refreshPickers();
    void fitTexts(); // shortens names only where there is no room for them
    void showBackend(const QString& text);
    void togglePlay();

    const Workbench m_bench;
    SetupPanel& m_setup;
    QToolButton *m_model, *m_scenario, *m_back, *m_play, *m_step, *m_speed, *m_follow;
    QMenu *m_modelMenu, *m_scenarioMenu;
    QString m_modelText, m_scenarioText, m_backendText;
    QHBoxLayout* m_row;
    LaneChip* m_chip;
    QLabel* m_backend;
    std::size_t m_speedIndex;
    std::tuple<std::shared_ptr<const trace::RunStarted>, bool, bool, bool>
        m_seen; // run, ended, not at start, can replay
    bool m_compact = false;
};

} // namespace kvatlas::ui

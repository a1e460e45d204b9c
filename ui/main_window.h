// SPDX-License-Identifier: Apache-2.0
// The window: menu, toolbar, setup and requests at the left, the lane's views in the middle, the inspector at the
// right, the timeline below, the status. GUI thread; slow work (models, files) runs on one worker thread. Closing stops
// the sources first, so that a recording is finished. Errors are shown in the message bar, one sentence each.
#pragma once

#include "ui/bridge/lane_set.h"
#include "ui/bridge/mailbox.h"
#include "ui/bridge/worker.h"
#include "ui/panels/message_bar.h"
#include "ui/run_launcher.h"
#include "ui/views/picture.h"
#include "ui/workbench.h"

#include <QMainWindow>

#include <functional>
#include <map>

class QAction;
class QFocusFrame;
class QSplitter;
class QStackedWidget;
class QTabBar;

namespace kvatlas::ui {

class BlockTableView;
class InspectorPanel;
class LaneHeader;
class MemoryMapView;
class Rail;
class RequestsPanel;
class SetupPanel;
class StatusStrip;
class TimelineView;
class ToolStrip;

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    MainWindow(Appearance& appearance, RunLauncher& launcher, QWidget* parent = nullptr);
    ~MainWindow() override;

    void run();                         // what the setup says
    void openFile(const QString& file); // a session or a model
    void openSession(const QString& file);
    static bool isModelFile(const QString& file); // by its name
    bool busy() const { return m_working > 0; }
    static QSize defaultSize(QSize room); // of a window, title bar excluded, on a screen with this much room

    LaneSet& lanes() { return m_lanes; }
    LinkedState& linked() { return m_linked; }
    SetupPanel& setup() { return *m_setup; }
    TimelineView& timeline() { return *m_timeline; }
    MemoryMapView& memoryMap() { return *m_map; }
    BlockTableView& blockTables() { return *m_tables; }
    RequestsPanel& requests() { return *m_requests; }
    InspectorPanel& inspector() { return *m_inspector; }
    ToolStrip& toolbar() { return *m_toolbar; }
    StatusStrip& status() { return *m_status; }
    MessageBar& messages() { return *m_messages; }

    // Views that can be exported by name: memory-map, block-tables, memory-over-time, requests; and "window".
    static QStringList exportNames();
    Result<void> exportView(const QString& name, const QString& file, QSize size);
    QString footer() const;

    static constexpr int kCompactBelow = 1440;
    bool compact() const { return m_compact; }

signals:
    void workFinished(); // a run has started, a session is open, or it failed

protected:
    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool eventFilter(QObject* object, QEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void buildCentre();
    void buildLeft();
    void buildLane();
    void connectPanels();
    void buildMenus();
    void buildFileMenu();
    void buildViewMenu();
    void buildRunMenu();
    QAction* menuAction(QMenu* menu, const QString& text, const QKeySequence& key, std::function<void()> handler);
    QAction* menuHint(QMenu* menu, const QString& text, const QString& key, std::function<void()> handler);
    void shareOutSpace();
    void applySizeClass(bool force);
    void restyle();
    void showLeftPanel(int index);
    void toggleInspectorOverlay(bool on);
    void refreshTitle();
    void adoptRecorded();
    void nameRun();
    void refreshEmpty();
    void focusPane(int direction);
    void showKeys();
    void askExport(const QString& name);
    void browseSession();
    void browseModel();
    void loadChoices();
    void work(const QString& what, std::function<std::function<void()>()> job);
    void takeRun(Result<OpenedRun> run);
    void takeModel(const QString& file);
    bool isTypedInto() const;             // the widget with the focus
    bool takeKey(const QKeyEvent& event); // the keys of the whole window; false: it is none of them

    Appearance& m_appearance;
    RunLauncher& m_launcher;
    LinkedState m_linked;
    LaneSet m_lanes;
    Workbench m_bench;
    Mailbox m_mailbox; // what the worker delivers
    Worker m_worker;
    int m_working = 0;
    bool m_compact = false, m_closing = false;

    SetupPanel* m_setup;
    RequestsPanel* m_requests;
    MemoryMapView* m_map;
    BlockTableView* m_tables;
    TimelineView* m_timeline;
    InspectorPanel* m_inspector;
    LaneHeader* m_laneHeader;
    ToolStrip* m_toolbar;
    StatusStrip* m_status;
    MessageBar* m_messages;
    Rail* m_rail;
    QTabBar* m_leftTabs;
    QStackedWidget* m_leftStack;
    QWidget *m_left, *m_centre, *m_upper;
    QSplitter *m_columns, *m_rows, *m_views;
    QMenu* m_samplesMenu;
    QAction* m_runAction;
    const Lane* m_adopted = nullptr; // the lane whose choices Setup has taken
    QFocusFrame* m_focusFrame;
    std::map<QString, Picture*> m_pictures;
};

} // namespace kvatlas::ui

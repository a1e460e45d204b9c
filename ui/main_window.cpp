// SPDX-License-Identifier: Apache-2.0
#include "ui/main_window.h"

#include "ui/panels/setup_panel.h"
#include "ui/panels/surface.h"
#include "ui/views/empty_note.h"
#include "ui/views/memory_map_view.h"

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QFocusFrame>
#include <QMenuBar>
#include <QScreen>
#include <QTabBar>

namespace kvatlas::ui {

namespace {

// A control whose focus shows by the ring of the proxy style; views draw their own.
bool wantsFocusFrame(const QWidget* widget) {
    for (const char* name :
         {"QAbstractButton", "QComboBox", "QLineEdit", "QAbstractSpinBox", "QPlainTextEdit", "QTabBar", "QTableView"})
        if (widget->inherits(name))
            return true;
    return false;
}

} // namespace

MainWindow::MainWindow(Appearance& appearance, RunLauncher& launcher, QWidget* parent)
    : QMainWindow(parent)
    , m_appearance(appearance)
    , m_launcher(launcher)
    , m_lanes(m_linked)
    , m_bench{appearance, m_linked, m_lanes}
    , m_focusFrame(new QFocusFrame(this)) {
    resize(defaultSize(screen()->availableSize()));
    setAcceptDrops(true);
    setAccessibleName(QStringLiteral("KVAtlas"));
    buildCentre();
    buildMenus();
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
        m_focusFrame->setWidget(now && isAncestorOf(now) && wantsFocusFrame(now) ? now : nullptr);
    });
    connect(&m_appearance, &Appearance::changed, this, &MainWindow::restyle);
    connect(&m_lanes, &LaneSet::lanesChanged, this, &MainWindow::refreshTitle);
    connect(&m_lanes, &LaneSet::infoChanged, this, &MainWindow::refreshTitle);
    connect(&m_lanes, &LaneSet::shownChanged, this, &MainWindow::adoptRecorded);
    connect(&m_lanes, &LaneSet::shownChanged, this, &MainWindow::refreshEmpty);
    connect(&m_lanes, &LaneSet::lanesChanged, this, [this] { m_adopted = nullptr; });
    connect(&m_lanes, &LaneSet::problemFound, this,
            [this](const QString& sentence) { m_messages->tell(MessageBar::Kind::Problem, sentence); });
    connect(&m_lanes, &LaneSet::problemPassed, this,
            [this](const QString& sentence) { m_messages->withdraw(sentence); });
    refreshTitle();
    restyle();
    loadChoices();
}

MainWindow::~MainWindow() {
    m_closing = true;
    disconnect(qApp, nullptr, this, nullptr); // the focus changes once more while the widgets go
    m_worker.finish();
    m_lanes.closeAll();
    // The widgets use the lanes and the cursor to the last: they go first.
    delete m_focusFrame;
    delete takeCentralWidget();
    setStatusBar(nullptr);
}

void MainWindow::restyle() {
    const Theme& theme = m_appearance.theme();
    menuBar()->setFixedHeight(m_appearance.heights().menu);
    m_leftTabs->setFont(theme.textFont(theme.type.body));
    m_leftTabs->setFixedHeight(m_appearance.heights().dockTab);
}

void MainWindow::showLeftPanel(int index) {
    m_leftTabs->setCurrentIndex(index);
}

// Ctrl+R repeats what a recording shows, where it can.
void MainWindow::adoptRecorded() {
    const Lane* lane = m_lanes.lane(0);
    if (!lane || lane == m_adopted || lane->capabilities().live || !lane->shown()->run)
        return;
    m_adopted = lane;
    m_setup->adopt(QString::fromStdString(lane->info().title), lane->shown()->run->strategyJson);
}

void MainWindow::refreshTitle() {
    QString title = QStringLiteral("KVAtlas"), recording;
    if (const Lane* lane = m_lanes.lane(0)) {
        const QString location = QString::fromStdString(lane->info().location);
        const QString file = location.section(QLatin1Char('/'), -1);
        title = QString::fromStdString(lane->info().title);
        if (title.isEmpty())
            title = QStringLiteral("KVAtlas");
        if (!file.isEmpty() && file != title)
            title += QStringLiteral(" — ") + file;
        if (lane->capabilities().live)
            recording = file;
    }
    m_setup->setRecordingName(recording);
    setWindowTitle(title);
    refreshEmpty();
}

void MainWindow::refreshEmpty() {
    EmptyNote& note = m_map->emptyNote();
    const Lane* lane = m_lanes.lane(0);
    if (busy())
        note.setText(tr("Loading…"), {});
    else if (lane && lane->damagedHere())
        note.setText(tr("This step cannot be shown, because its part of the file is damaged; go to another step."), {});
    else if (lane)
        note.setText(tr("Starting…"), {});
    else if (m_setup->blockedBy().isEmpty())
        note.setText(tr("Nothing runs yet. The blocks of the KV-cache fill here as soon as a scenario runs."),
                     tr("Run “%1”").arg(m_setup->scenarioName()));
    else if (!m_setup->choices().samples.empty())
        note.setText(tr("No model was found. Look at a recorded run instead; it needs none."),
                     tr("Open a sample session"));
    else
        note.setText(tr("No model was found. Open a recorded session, or choose a model file."), tr("Open session…"));
}

void MainWindow::closeEvent(QCloseEvent* event) {
    m_closing = true;
    m_lanes.closeAll(); // the last delivery, the end marker of the recording
    event->accept();
}

} // namespace kvatlas::ui

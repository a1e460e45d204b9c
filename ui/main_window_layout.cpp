// SPDX-License-Identifier: Apache-2.0
// The window's widgets, and how they share its room.
#include "ui/main_window.h"

#include "ui/panels/inspector_panel.h"
#include "ui/panels/lane_header.h"
#include "ui/panels/rail.h"
#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/status_strip.h"
#include "ui/panels/surface.h"
#include "ui/panels/tool_strip.h"
#include "ui/views/block_table_view.h"
#include "ui/views/empty_note.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QResizeEvent>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>

#include <algorithm>

namespace kvatlas::ui {

namespace {

constexpr int kMinWidth = 1024, kMinHeight = 700;
constexpr int kLeftWide = 296, kLeftCompact = 272, kRight = 280, kTimelineWide = 222, kTimelineCompact = 134;

QWidget* plainColumn(QWidget* parent, const QString& name, QVBoxLayout*& column) {
    auto* box = new QWidget(parent);
    box->setAccessibleName(name);
    column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return box;
}

QSplitter* plainSplitter(Qt::Orientation orientation, QWidget* parent, const QString& name) {
    auto* splitter = new QSplitter(orientation, parent);
    splitter->setAccessibleName(name);
    splitter->setHandleWidth(1);
    splitter->setChildrenCollapsible(false);
    return splitter;
}

} // namespace

QSize MainWindow::defaultSize(QSize room) {
    constexpr QSize kWanted(1600, 1000), kDecoration(8, 40); // the window manager's, unknown before it has shown one
    return kWanted.boundedTo(room - kDecoration).expandedTo({kMinWidth, kMinHeight});
}

void MainWindow::buildCentre() {
    setMinimumSize(kMinWidth, kMinHeight);
    m_status = new StatusStrip(m_bench, this);
    setStatusBar(m_status);

    QVBoxLayout* column = nullptr;
    QWidget* whole = plainColumn(this, tr("Window body"), column);
    m_messages = new MessageBar(m_appearance, whole);
    column->addWidget(m_messages);
    m_rows = plainSplitter(Qt::Vertical, whole, tr("Views and timeline"));
    column->addWidget(m_rows, 1);
    setCentralWidget(whole);

    QVBoxLayout* upperColumn = nullptr;
    m_upper = plainColumn(m_rows, tr("Panels and views"), upperColumn);
    auto* across = new QHBoxLayout;
    across->setSpacing(0);
    upperColumn->addLayout(across, 1);
    m_columns = plainSplitter(Qt::Horizontal, m_upper, tr("Panels"));
    across->addWidget(m_columns, 1);
    buildLeft();
    m_toolbar = new ToolStrip(m_bench, *m_setup, whole);
    column->insertWidget(0, m_toolbar);
    buildLane();
    m_inspector = new InspectorPanel(m_bench, m_columns);
    m_columns->addWidget(m_left);
    m_columns->addWidget(m_centre);
    m_columns->addWidget(m_inspector);
    m_columns->setStretchFactor(1, 1);

    m_rail = new Rail(m_appearance, tr("Inspector"), m_upper);
    across->addWidget(m_rail);
    connect(m_rail, &Rail::toggled, this, &MainWindow::toggleInspectorOverlay);

    m_timeline = new TimelineView(m_bench, m_rows);
    m_rows->addWidget(m_upper);
    m_rows->addWidget(m_timeline);
    m_rows->setStretchFactor(0, 1);
    m_rows->setStretchFactor(1, 0);
    m_upper->setMinimumHeight(300);
    m_timeline->setMinimumHeight(kTimelineCompact);

    m_pictures = {{m_map->key(), m_map},
                  {m_tables->key(), m_tables},
                  {QStringLiteral("memory-over-time"), &m_timeline->memoryPicture()},
                  {QStringLiteral("requests"), &m_timeline->requestsPicture()}};
    connectPanels();
}

void MainWindow::buildLeft() {
    m_left = new Surface(m_appearance, m_columns);
    m_left->setAccessibleName(tr("Left panel"));
    auto* leftColumn = new QVBoxLayout(m_left);
    leftColumn->setContentsMargins(0, 0, 0, 0);
    leftColumn->setSpacing(0);
    m_leftTabs = new QTabBar(m_left);
    m_leftTabs->setAccessibleName(tr("Left panels"));
    m_leftTabs->setDrawBase(false);
    m_leftTabs->setExpanding(false);
    m_leftTabs->addTab(tr("Setup"));
    m_leftTabs->addTab(tr("Requests"));
    leftColumn->addWidget(m_leftTabs);
    m_leftStack = new QStackedWidget(m_left);
    m_leftStack->setAccessibleName(tr("Left panel"));
    m_setup = new SetupPanel(m_bench, m_leftStack);
    m_requests = new RequestsPanel(m_bench, m_leftStack);
    for (QWidget* widget : m_requests->readOnlyWidgets())
        widget->installEventFilter(this);
    m_leftStack->addWidget(m_setup);
    m_leftStack->addWidget(m_requests);
    leftColumn->addWidget(m_leftStack, 1);
    connect(m_leftTabs, &QTabBar::currentChanged, m_leftStack, &QStackedWidget::setCurrentIndex);
}

void MainWindow::buildLane() {
    QVBoxLayout* centreColumn = nullptr;
    m_centre = plainColumn(m_columns, tr("Lane A"), centreColumn);
    m_laneHeader = new LaneHeader(m_bench, 0, m_centre);
    centreColumn->addWidget(m_laneHeader);
    m_views = plainSplitter(Qt::Vertical, m_centre, tr("Views"));
    m_map = new MemoryMapView(m_bench, 0, m_views);
    m_tables = new BlockTableView(m_bench, 0, m_views);
    m_views->addWidget(m_map);
    m_views->addWidget(m_tables);
    centreColumn->addWidget(m_views, 1);
}

void MainWindow::connectPanels() {
    for (ViewFrame* view : {static_cast<ViewFrame*>(m_map), static_cast<ViewFrame*>(m_tables)})
        connect(view, &ViewFrame::exportRequested, this, &MainWindow::askExport);
    connect(m_setup, &SetupPanel::runRequested, this, &MainWindow::run);
    connect(m_setup, &SetupPanel::browseForModel, this, &MainWindow::browseModel);
    connect(m_setup, &SetupPanel::choiceChanged, this, &MainWindow::refreshEmpty);
    connect(m_setup, &SetupPanel::promptAdded, this, [this](const QString& json) {
        if (Lane* lane = m_lanes.lane(0)) {
            m_requests->awaitNext();
            lane->send(source::Submit{json.toStdString()});
        }
        showLeftPanel(1);
    });
    connect(m_toolbar, &ToolStrip::playRequested, this, &MainWindow::run);
    connect(&m_map->emptyNote(), &EmptyNote::triggered, this, [this] {
        if (m_setup->blockedBy().isEmpty())
            run();
        else if (!m_setup->choices().samples.empty())
            openSession(QString::fromStdString(m_setup->choices().samples.front().json));
        else
            browseSession();
    });
}

void MainWindow::applySizeClass(bool force) {
    const bool compact = width() < kCompactBelow;
    if (!force && compact == m_compact)
        return;
    m_compact = compact;
    m_toolbar->setCompact(compact);
    toggleInspectorOverlay(false);
    m_rail->setOn(false);
    m_rail->setVisible(compact);
    if (compact) {
        m_inspector->setParent(m_upper);
        m_inspector->hide();
    } else {
        m_columns->addWidget(m_inspector);
        m_inspector->show();
    }
    m_appearance.setCompact(compact); // after the inspector has moved: a new parent takes its fonts away
    m_left->setMinimumWidth(240);
    m_inspector->setMinimumWidth(240);
    shareOutSpace();
    // And once more when the splitters have taken on the window's new size, which shrinks them in proportion.
    QMetaObject::invokeMethod(this, &MainWindow::shareOutSpace, Qt::QueuedConnection);
}

void MainWindow::shareOutSpace() {
    const int left = m_compact ? kLeftCompact : kLeftWide, timeline = m_compact ? kTimelineCompact : kTimelineWide;
    QList<int> sizes{left, std::max(200, width() - left - (m_compact ? 0 : kRight + 1) - 1)};
    if (!m_compact)
        sizes << kRight;
    m_columns->setSizes(sizes);
    m_rows->setSizes({std::max(300, m_rows->height() - timeline - 1), timeline});
    m_views->setSizes({1000, 1000});
}

void MainWindow::toggleInspectorOverlay(bool on) {
    if (!m_compact)
        return;
    m_inspector->setVisible(on);
    if (on) {
        m_inspector->setGeometry(m_upper->width() - m_rail->width() - kRight, 0, kRight, m_upper->height());
        m_inspector->raise();
    }
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    applySizeClass(!event->oldSize().isValid() || event->oldSize().width() <= 0);
    if (m_compact && m_inspector->isVisible())
        toggleInspectorOverlay(true);
}

} // namespace kvatlas::ui

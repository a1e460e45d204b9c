// SPDX-License-Identifier: Apache-2.0
#include "ui/main_window.h"

#include "ui/export/picture_export.h"
#include "ui/panels/inspector_panel.h"
#include "ui/panels/key_sheet.h"
#include "ui/panels/lane_header.h"
#include "ui/panels/rail.h"
#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/status_strip.h"
#include "ui/panels/surface.h"
#include "ui/panels/tool_strip.h"
#include "ui/theme/plain_text.h"
#include "ui/views/block_table_view.h"
#include "ui/views/empty_note.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QFileDialog>
#include <QFocusFrame>
#include <QMenuBar>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QScreen>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QToolButton>
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
    , m_bench{appearance, m_linked, m_lanes} {
    setMinimumSize(kMinWidth, kMinHeight);
    resize(defaultSize(screen()->availableSize()));
    setAcceptDrops(true);
    setAccessibleName(QStringLiteral("KVAtlas"));
    buildCentre();
    buildMenus();
    m_focusFrame = new QFocusFrame(this);
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
        m_focusFrame->setWidget(now && isAncestorOf(now) && wantsFocusFrame(now) ? now : nullptr);
    });
    connect(&m_appearance, &Appearance::changed, this, &MainWindow::restyle);
    connect(&m_lanes, &LaneSet::lanesChanged, this, &MainWindow::refreshTitle);
    connect(&m_lanes, &LaneSet::infoChanged, this, &MainWindow::refreshTitle);
    connect(&m_lanes, &LaneSet::shownChanged, this, &MainWindow::adoptRecorded);
    connect(&m_lanes, &LaneSet::numbersChanged, this, &MainWindow::refreshEmpty);
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

QSize MainWindow::defaultSize(QSize room) {
    constexpr QSize kWanted(1600, 1000), kDecoration(8, 40); // the window manager's, unknown before it has shown one
    return kWanted.boundedTo(room - kDecoration).expandedTo({kMinWidth, kMinHeight});
}

void MainWindow::buildCentre() {
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
    m_toolbar = new ToolStrip(m_bench, *m_setup, whole);
    column->insertWidget(0, m_toolbar);

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
    m_inspector = new InspectorPanel(m_bench, m_columns);
    m_columns->addWidget(m_left);
    m_columns->addWidget(m_centre);
    m_columns->addWidget(m_inspector);
    m_columns->setStretchFactor(1, 1);

    auto* rail = new Rail(m_appearance, tr("Inspector"), m_upper);
    m_rail = rail;
    across->addWidget(rail);
    connect(rail, &Rail::toggled, this, &MainWindow::toggleInspectorOverlay);

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

void MainWindow::buildMenus() {
    const auto add = [this](QMenu* menu, const QString& text, const QKeySequence& key, auto handler) {
        QAction* action = menu->addAction(text, this, handler);
        action->setShortcut(key);
        return action;
    };
    // A key that only acts while a view has the focus is shown, not bound (keyPressEvent has it).
    const auto hint = [this](QMenu* menu, const QString& text, const QString& key, auto handler) {
        return menu->addAction(text + QLatin1Char('\t') + key, this, handler);
    };
    QMenu* file = menuBar()->addMenu(tr("&File"));
    add(file, tr("&Open session…"), QKeySequence::Open, [this] { browseSession(); });
    m_samplesMenu = file->addMenu(tr("Open &sample"));
    m_samplesMenu->setEnabled(false);
    add(file, tr("Open &model…"), QKeySequence(), [this] { browseModel(); });
    file->addSeparator();
    QMenu* exports = file->addMenu(tr("&Export picture"));
    for (const QString& name : exportNames()) {
        QString text = name;
        text.replace(QLatin1Char('-'), QLatin1Char(' '));
        text[0] = text[0].toUpper();
        QAction* action = exports->addAction(text + QStringLiteral("…"), this, [this, name] { askExport(name); });
        if (name == QLatin1String("memory-map"))
            action->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_E));
    }
    file->addSeparator();
    add(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });

    QMenu* view = menuBar()->addMenu(tr("&View"));
    auto* themes = new QActionGroup(this);
    for (const auto& [choice, text] :
         {std::pair{ThemeChoice::System, tr("System theme")}, std::pair{ThemeChoice::Light, tr("Light")},
          std::pair{ThemeChoice::Dark, tr("Dark")}, std::pair{ThemeChoice::Contrast, tr("High contrast")}}) {
        QAction* action = view->addAction(text, this, [this, c = choice] { m_appearance.choose(c); });
        action->setCheckable(true);
        action->setChecked(m_appearance.choice() == choice);
        connect(&m_appearance, &Appearance::changed, action,
                [this, action, c = choice] { action->setChecked(m_appearance.choice() == c); });
        themes->addAction(action);
    }
    hint(view, tr("Toggle light and dark"), QStringLiteral("T"), [this] { m_appearance.toggle(); });
    QAction* patterns = view->addAction(tr("Patterns"));
    patterns->setCheckable(true);
    connect(patterns, &QAction::toggled, this, [this](bool on) { m_appearance.setPatterns(on); });
    view->addSeparator();
    QAction* left = view->addAction(tr("Left panel"));
    left->setCheckable(true);
    left->setChecked(true);
    connect(left, &QAction::toggled, this, [this](bool on) { m_left->setVisible(on); });
    QAction* timeline = view->addAction(tr("Timeline"));
    timeline->setCheckable(true);
    timeline->setChecked(true);
    connect(timeline, &QAction::toggled, this, [this](bool on) { m_timeline->setVisible(on); });
    add(view, tr("Full screen"), QKeySequence(Qt::Key_F11),
        [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    add(view, tr("Next pane"), QKeySequence(Qt::Key_F6), [this] { focusPane(1); });
    add(view, tr("Previous pane"), QKeySequence(Qt::SHIFT | Qt::Key_F6), [this] { focusPane(-1); });

    QMenu* runMenu = menuBar()->addMenu(tr("&Run"));
    m_runAction = add(runMenu, tr("&Run"), QKeySequence(Qt::CTRL | Qt::Key_R), [this] { run(); });
    connect(m_setup, &SetupPanel::choiceChanged, this, &MainWindow::nameRun);
    nameRun();
    hint(runMenu, tr("Play or pause"), tr("Space"), [this] { m_toolbar->playButton()->click(); });
    hint(runMenu, tr("Step forward"), QStringLiteral("→"), [this] { m_lanes.stepBy(1); });
    hint(runMenu, tr("Step back"), QStringLiteral("←"), [this] { m_lanes.stepBy(-1); });
    hint(runMenu, tr("Follow the newest step"), QStringLiteral("F"), [this] { m_lanes.setFollowing(true); });

    QMenu* help = menuBar()->addMenu(tr("&Help"));
    add(help, tr("&Keys"), QKeySequence(Qt::Key_F1), [this] { showKeys(); });
}

void MainWindow::restyle() {
    const Theme& theme = m_appearance.theme();
    menuBar()->setFixedHeight(m_appearance.heights().menu);
    m_leftTabs->setFont(theme.textFont(theme.type.body));
    m_leftTabs->setFixedHeight(m_appearance.heights().dockTab);
}

void MainWindow::applySizeClass(bool force) {
    const bool compact = width() < kCompactBelow;
    if (!force && compact == m_compact)
        return;
    m_compact = compact;
    m_toolbar->setCompact(compact);
    toggleInspectorOverlay(false);
    static_cast<Rail*>(m_rail)->setOn(false);
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

void MainWindow::showLeftPanel(int index) {
    m_leftTabs->setCurrentIndex(index);
}

void MainWindow::nameRun() {
    m_runAction->setText(
        tr("&Run “%1” with “%2”").arg(labelText(m_setup->scenarioName()), labelText(m_setup->strategyName())));
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

// Runs `job` on the worker, then what it returns on the GUI thread.
void MainWindow::work(const QString& what, std::function<std::function<void()>()> job) {
    ++m_working;
    if (!what.isEmpty())
        m_setup->setBusy(what);
    refreshEmpty();
    m_worker.run([this, job = std::move(job)] {
        m_mailbox.post([this, done = job()] {
            --m_working;
            if (m_working == 0)
                m_setup->setBusy({});
            if (!m_closing)
                done();
            refreshEmpty();
            if (m_working == 0)
                emit workFinished();
        });
    });
}

void MainWindow::loadChoices() {
    work({}, [this]() -> std::function<void()> {
        auto choices = std::make_shared<Choices>(m_launcher.choices());
        return [this, choices] {
            m_setup->setChoices(*choices);
            m_samplesMenu->clear();
            for (const FileChoice& sample : choices->samples) {
                const QString path = QString::fromStdString(sample.json);
                m_samplesMenu->addAction(labelText(QString::fromStdString(sample.name)), this,
                                         [this, path] { openSession(path); });
            }
            m_samplesMenu->setEnabled(!choices->samples.empty());
        };
    });
}

void MainWindow::run() {
    if (const QString why = m_setup->blockedBy(); !why.isEmpty()) {
        m_messages->tell(MessageBar::Kind::Note, why);
        return;
    }
    m_messages->clearSeen();
    const bool went = m_lanes.playing();
    m_lanes.setPlaying(false); // it stays until the next is there, but does not compete with it
    const RunOrder order = m_setup->order();
    work(tr("Loading %1…").arg(m_setup->modelName()), [this, order, went]() -> std::function<void()> {
        auto run = std::make_shared<Result<OpenedRun>>(m_launcher.launch(order));
        return [this, run, went] {
            const bool refused = !*run;
            takeRun(std::move(*run));
            if (refused && went)
                m_lanes.setPlaying(true);
        };
    });
}

void MainWindow::openSession(const QString& file) {
    m_messages->clearSeen();
    work(tr("Opening %1…").arg(file.section(QLatin1Char('/'), -1)), [this, file]() -> std::function<void()> {
        auto run = std::make_shared<Result<OpenedRun>>(m_launcher.openSession(file.toStdString()));
        return [this, run] { takeRun(std::move(*run)); };
    });
}

void MainWindow::openFile(const QString& file) {
    if (file.endsWith(QLatin1String(".gguf"), Qt::CaseInsensitive)) {
        takeModel(file);
    } else {
        openSession(file);
    }
}

void MainWindow::takeRun(Result<OpenedRun> run) {
    if (!run) {
        m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(run.error().message));
        return;
    }
    const QString note = QString::fromStdString(run->reportText);
    if (auto started = m_lanes.replaceAll(std::move(*run)); !started) {
        m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(started.error().message));
        return;
    }
    if (!note.isEmpty())
        m_messages->tell(MessageBar::Kind::Note, note);
    showLeftPanel(1);
    m_map->focusTarget()->setFocus(Qt::OtherFocusReason);
}

void MainWindow::browseSession() {
    auto* dialog =
        new QFileDialog(this, tr("Open session"), QString(), tr("KVAtlas sessions (*.kvatlas);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openSession);
    dialog->open();
}

void MainWindow::browseModel() {
    auto* dialog = new QFileDialog(this, tr("Choose a model"), QString(), tr("Models (*.gguf);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::takeModel);
    dialog->open();
}

// Looked into first: a file that cannot be used is not chosen.
void MainWindow::takeModel(const QString& file) {
    m_messages->clearSeen();
    work(tr("Checking %1…").arg(file.section(QLatin1Char('/'), -1)), [this, file]() -> std::function<void()> {
        auto checked = std::make_shared<Result<void>>(m_launcher.checkModel(file.toStdString()));
        return [this, file, checked] {
            if (!*checked) {
                m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(checked->error().message));
                return;
            }
            m_setup->chooseModel(file);
            showLeftPanel(0);
        };
    });
}

void MainWindow::askExport(const QString& name) {
    auto* dialog = new QFileDialog(this, tr("Export picture"), name + QStringLiteral(".png"),
                                   tr("PNG picture (*.png);;SVG picture (*.svg)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("png"));
    connect(dialog, &QFileDialog::fileSelected, this, [this, name](const QString& file) {
        if (auto done = exportView(name, file, QSize(1600, 1000)); !done)
            m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(done.error().message));
        else
            m_messages->tell(MessageBar::Kind::Note, tr("Wrote %1.").arg(file));
    });
    dialog->open();
}

QStringList MainWindow::exportNames() {
    return {QStringLiteral("memory-map"), QStringLiteral("block-tables"), QStringLiteral("memory-over-time"),
            QStringLiteral("requests"), QStringLiteral("window")};
}

QString MainWindow::footer() const {
    const Lane* lane = m_lanes.lane(0);
    if (!lane || !lane->shown()->run)
        return tr("KVAtlas · no run");
    const trace::RunStarted& run = *lane->shown()->run;
    return tr("%1 · %2 · step %3 · %4, %5 arithmetic · %6")
        .arg(QString::fromStdString(run.model.name), strategyName(run))
        .arg(lane->shown()->step)
        .arg(QString::fromStdString(run.backend), QString::fromStdString(run.arithmetic),
             QString::fromStdString(run.programVersion));
}

Result<void> MainWindow::exportView(const QString& name, const QString& file, QSize size) {
    if (name == QLatin1String("window"))
        return exportWidget(*this, file);
    const auto at = m_pictures.find(name);
    if (at == m_pictures.end())
        return makeError(ErrorKind::Usage, "There is no view {}; choose one of {}.", name.toStdString(),
                         exportNames().join(QStringLiteral(", ")).toStdString());
    return exportPicture(*at->second, m_appearance.theme(), footer(), size, file);
}

bool MainWindow::isTypedInto() const {
    const QWidget* focus = focusWidget();
    const auto* text = qobject_cast<const QPlainTextEdit*>(focus);
    return focus && ((text && !text->isReadOnly()) || focus->inherits("QLineEdit") ||
                     focus->inherits("QAbstractSpinBox") || focus->inherits("QComboBox"));
}

// The list and the text of the requests take letters, Space and Home for themselves; here they are the window's keys.
bool MainWindow::eventFilter(QObject* object, QEvent* event) {
    return (event->type() == QEvent::KeyPress && takeKey(*static_cast<QKeyEvent*>(event))) ||
           QMainWindow::eventFilter(object, event);
}

void MainWindow::focusPane(int direction) {
    const std::array<QWidget*, 5> panes{m_leftTabs, m_map->focusTarget(), m_tables->focusTarget(), m_timeline,
                                        m_toolbar->playButton()};
    const QWidget* focus = focusWidget();
    int at = -1;
    for (std::size_t i = 0; i < panes.size(); ++i)
        if (focus && (panes[i] == focus || panes[i]->isAncestorOf(focus)))
            at = static_cast<int>(i);
    const int count = static_cast<int>(panes.size());
    for (int tries = 0; tries < count; ++tries) {
        at = (at + direction + count) % count;
        QWidget* pane = panes[static_cast<std::size_t>(at)];
        if (pane->isVisible() && pane->isEnabled()) {
            pane->setFocus(Qt::TabFocusReason);
            return;
        }
    }
}

void MainWindow::showKeys() {
    auto* sheet = new KeySheet(m_appearance, this);
    sheet->setAttribute(Qt::WA_DeleteOnClose);
    sheet->show();
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
    if (takeKey(*event))
        event->accept();
    else
        QMainWindow::keyPressEvent(event);
}

bool MainWindow::takeKey(const QKeyEvent& event) {
    const auto modifiers = event.modifiers() & ~Qt::KeypadModifier;
    const bool shift = modifiers == Qt::ShiftModifier;
    if (isTypedInto() || (modifiers != Qt::NoModifier && !shift))
        return false;
    switch (event.key()) {
    case Qt::Key_Space:
        m_toolbar->playButton()->click();
        break;
    case Qt::Key_Left:
        m_lanes.stepBy(shift ? -10 : -1);
        break;
    case Qt::Key_Right:
        m_lanes.stepBy(shift ? 10 : 1);
        break;
    case Qt::Key_Home:
        m_lanes.goTo(0);
        break;
    case Qt::Key_End:
        if (m_lanes.lane(0) && m_lanes.lane(0)->capabilities().seek)
            m_lanes.goTo(m_lanes.lastStep());
        else
            m_lanes.setFollowing(true);
        break;
    case Qt::Key_BracketLeft:
        m_toolbar->changeSpeed(-1);
        break;
    case Qt::Key_BracketRight:
        m_toolbar->changeSpeed(1);
        break;
    case Qt::Key_F:
        m_lanes.setFollowing(!m_linked.following());
        break;
    case Qt::Key_1:
        m_map->focusTarget()->setFocus(Qt::ShortcutFocusReason);
        break;
    case Qt::Key_2:
        m_tables->focusTarget()->setFocus(Qt::ShortcutFocusReason);
        break;
    case Qt::Key_3:
        m_timeline->setFocus(Qt::ShortcutFocusReason);
        break;
    case Qt::Key_Escape:
        m_linked.clearSelection();
        break;
    case Qt::Key_O:
        m_linked.setColourBy(static_cast<ColourBy>((static_cast<int>(m_linked.colourBy()) + 1) % 4));
        break;
    case Qt::Key_I:
        m_linked.setIsolating(!m_linked.isolating());
        break;
    case Qt::Key_T:
        m_appearance.toggle();
        break;
    case Qt::Key_Question:
        showKeys();
        break;
    default:
        return false;
    }
    return true;
}

void MainWindow::closeEvent(QCloseEvent* event) {
    m_closing = true;
    m_lanes.closeAll(); // the last delivery, the end marker of the recording
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile())
            event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) {
            openFile(url.toLocalFile());
            event->acceptProposedAction();
            return;
        }
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// The window's menus and keys.
#include "ui/main_window.h"

#include "ui/panels/key_sheet.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/surface.h"
#include "ui/panels/tool_strip.h"
#include "ui/theme/plain_text.h"
#include "ui/views/block_table_view.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAction>
#include <QActionGroup>
#include <QKeyEvent>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QTabBar>
#include <QToolButton>

#include <array>

namespace kvatlas::ui {

void MainWindow::buildMenus() {
    buildFileMenu();
    buildViewMenu();
    buildRunMenu();
    QMenu* help = menuBar()->addMenu(tr("&Help"));
    menuAction(help, tr("&Keys"), QKeySequence(Qt::Key_F1), [this] { showKeys(); });
}

QAction* MainWindow::menuAction(QMenu* menu, const QString& text, const QKeySequence& key,
                                std::function<void()> handler) {
    QAction* action = menu->addAction(text, this, std::move(handler));
    action->setShortcut(key);
    return action;
}

// A key that only acts while a view has the focus is shown, not bound (keyPressEvent has it).
QAction* MainWindow::menuHint(QMenu* menu, const QString& text, const QString& key, std::function<void()> handler) {
    return menu->addAction(text + QLatin1Char('\t') + key, this, std::move(handler));
}

void MainWindow::buildFileMenu() {
    QMenu* file = menuBar()->addMenu(tr("&File"));
    menuAction(file, tr("&Open session…"), QKeySequence::Open, [this] { browseSession(); });
    m_samplesMenu = file->addMenu(tr("Open &sample"));
    m_samplesMenu->setEnabled(false);
    menuAction(file, tr("Open &model…"), QKeySequence(), [this] { browseModel(); });
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
    menuAction(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::buildViewMenu() {
    QMenu* view = menuBar()->addMenu(tr("&View"));
    auto* themes = new QActionGroup(this);
    for (const auto& [choice, text] :
         {std::pair{ThemeChoice::System, tr("System theme")}, std::pair{ThemeChoice::Light, tr("Light")},
          std::pair{ThemeChoice::Dark, tr("Dark")}, std::pair{ThemeChoice::Contrast, tr("High contrast")}}) {
        QAction* action = themes->addAction(text);
        connect(action, &QAction::triggered, this, [this, c = choice] { m_appearance.choose(c); });
        action->setCheckable(true);
        action->setChecked(m_appearance.choice() == choice);
        connect(&m_appearance, &Appearance::changed, action,
                [this, action, c = choice] { action->setChecked(m_appearance.choice() == c); });
    }
    view->addActions(themes->actions());
    menuHint(view, tr("Toggle light and dark"), QStringLiteral("T"), [this] { m_appearance.toggle(); });
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
    menuAction(view, tr("Full screen"), QKeySequence(Qt::Key_F11),
               [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    menuAction(view, tr("Next pane"), QKeySequence(Qt::Key_F6), [this] { focusPane(1); });
    menuAction(view, tr("Previous pane"), QKeySequence(Qt::SHIFT | Qt::Key_F6), [this] { focusPane(-1); });
}

void MainWindow::buildRunMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&Run"));
    m_runAction = menuAction(menu, tr("&Run"), QKeySequence(Qt::CTRL | Qt::Key_R), [this] { run(); });
    connect(m_setup, &SetupPanel::choiceChanged, this, &MainWindow::nameRun);
    nameRun();
    menuHint(menu, tr("Play or pause"), tr("Space"), [this] { m_toolbar->playButton()->click(); });
    menuHint(menu, tr("Step forward"), QStringLiteral("→"), [this] { m_lanes.stepBy(1); });
    menuHint(menu, tr("Step back"), QStringLiteral("←"), [this] { m_lanes.stepBy(-1); });
    menuHint(menu, tr("Follow the newest step"), QStringLiteral("F"), [this] { m_lanes.setFollowing(true); });
}

void MainWindow::nameRun() {
    m_runAction->setText(
        tr("&Run “%1” with “%2”").arg(labelText(m_setup->scenarioName()), labelText(m_setup->strategyName())));
}

void MainWindow::showKeys() {
    auto* sheet = new KeySheet(m_appearance, this);
    sheet->setAttribute(Qt::WA_DeleteOnClose);
    sheet->show();
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

} // namespace kvatlas::ui

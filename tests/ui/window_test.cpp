// SPDX-License-Identifier: Apache-2.0
// The window over synthetic sources: live, replayed, scrubbed, selected, exported, closed. Offscreen.
#include "tests/support/scripted_launcher.h"

#include "ui/main_window.h"
#include "ui/panels/inspector_panel.h"
#include "ui/panels/key_sheet.h"
#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/status_strip.h"
#include "ui/panels/tool_strip.h"
#include "ui/views/block_table_view.h"
#include "ui/views/empty_note.h"
#include "ui/views/hover_tip.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>

#include <map>
#include <memory>
#include <set>

namespace kvatlas::ui {

namespace {

struct Stage {
    Appearance appearance;
    test::ScriptedLauncher launcher;
    std::unique_ptr<MainWindow> window;

    explicit Stage(QSize size = {1600, 1000}) {
        launcher.options.run.steps = 120;
        launcher.options.run.poolBlocks = 182;
        appearance.choose(ThemeChoice::Light);
        window = std::make_unique<MainWindow>(appearance, launcher);
        window->resize(size);
        window->show();
        settle();
    }
    void settle() {
        const bool idle = QTest::qWaitFor([this] { return !window->busy(); }, 10'000);
        QVERIFY(idle);
    }
    void openRecorded() {
        window->openSession("/nowhere/sample.kvatlas");
        settle();
        QVERIFY(window->lanes().lane(0));
        QVERIFY(QTest::qWaitFor([this] { return window->lanes().lane(0)->history()->lastStep == 119; }, 10'000));
    }
    void goTo(Step step) {
        window->lanes().goTo(step);
        QVERIFY(QTest::qWaitFor([&] { return window->lanes().lane(0)->shown()->step == step; }, 10'000));
    }
    void runLive() {
        window->run();
        settle();
        QVERIFY(window->lanes().lane(0));
        QVERIFY(QTest::qWaitFor([this] { return window->lanes().lane(0)->latest()->ended; }, 20'000));
        QVERIFY(QTest::qWaitFor([this] { return window->lanes().lane(0)->history()->steps.size() == 120; }, 10'000));
    }
};

// Visible labels and buttons that are smaller than what they say. What ends in "…" was shortened on purpose.
QStringList cutTexts(const QWidget& window) {
    QStringList cut;
    for (const auto* label : window.findChildren<QLabel*>()) {
        if (!label->isVisibleTo(&window) || label->text().isEmpty() || label->text().endsWith(QChar(0x2026)))
            continue;
        const bool fits = label->wordWrap() ? label->heightForWidth(label->width()) <= label->height()
                                            : label->sizeHint().width() <= label->width();
        if (!fits)
            cut << label->text();
    }
    for (const auto* button : window.findChildren<QAbstractButton*>())
        if (button->isVisibleTo(&window) && !button->text().isEmpty() &&
            button->minimumSizeHint().width() > button->width())
            cut << button->text();
    for (const auto* table : window.findChildren<QTableView*>())
        for (int column = 0; column < table->model()->columnCount(); ++column)
            if (!table->isColumnHidden(column) &&
                static_cast<const QAbstractItemView*>(table)->sizeHintForColumn(column) > table->columnWidth(column))
                cut << QStringLiteral("column %1").arg(column);
    return cut;
}

} // namespace

class WindowTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void emptyWindowSaysWhatToDoAndOffersOneButton() {
        Stage stage;
        EmptyNote& note = stage.window->memoryMap().emptyNote();
        QVERIFY(note.isVisible());
        auto* button = note.findChild<QPushButton*>();
        QVERIFY(button && button->isVisible());
        QCOMPARE(button->text(), QStringLiteral("Run “Synthetic chats”"));
        QCOMPARE(stage.window->status().text(), QStringLiteral("No run"));
        QVERIFY(stage.window->toolbar().playButton()->isEnabled());
    }

    void withoutAModelASampleIsOffered() {
        Stage stage;
        test::ScriptedLauncher bare;
        bare.hasModel = false;
        bare.options.run.steps = 10;
        MainWindow window(stage.appearance, bare);
        window.show();
        QVERIFY(QTest::qWaitFor([&] { return !window.busy(); }));
        auto* button = window.memoryMap().emptyNote().findChild<QPushButton*>();
        QCOMPARE(button->text(), QStringLiteral("Open a sample session"));
        QVERIFY(!window.setup().findChild<QPushButton*>("runButton")->isEnabled());
        window.run();
        QCOMPARE(window.messages().sentence(), QStringLiteral("No model was found."));
        button->click();
        QVERIFY(QTest::qWaitFor([&] { return window.lanes().lane(0) != nullptr; }));
        window.close();
    }

    void runStartsWhatTheSetupSaysAndShowsItToItsEnd() {
        Stage stage;
        QVERIFY(stage.window->setup().chooseStrategy("contiguous"));
        stage.launcher.options.run.contiguous = true;
        stage.runLive();
        QCOMPARE(stage.launcher.orders.size(), std::size_t(1));
        QCOMPARE(stage.launcher.orders.front().model.string(), std::string("/nowhere/synthetic.gguf"));
        QVERIFY(stage.launcher.orders.front().strategyJson.find("contiguous") != std::string::npos);
        QVERIFY(stage.launcher.orders.front().record);
        Lane* lane = stage.window->lanes().lane(0);
        QVERIFY(stage.launcher.newest->error().empty());
        QCOMPARE(lane->shown()->step, Step(119));
        QCOMPARE(stage.window->linked().cursor(), Step(119)); // followed
        QVERIFY(stage.window->linked().following());
        QVERIFY(stage.window->status().text().contains("step"));
        QCOMPARE(stage.window->windowTitle(), QStringLiteral("Synthetic chats — synthetic.kvatlas"));
        QVERIFY(stage.window->messages().sentence().isEmpty());
        // The legend counts what the snapshot holds.
        const auto legend = stage.window->memoryMap().legend();
        QCOMPARE(legend.front().value, QString::number(lane->shown()->pools[0].counts.active));
        QCOMPARE(legend.back().text, QStringLiteral("reserved"));
    }

    void refusedRunIsOneSentenceInTheBar() {
        Stage stage;
        stage.launcher.refusal = "The model cannot be read: it ends at byte 12; fetch it again.";
        stage.window->run();
        stage.settle();
        QCOMPARE(stage.window->messages().sentence().toStdString(), stage.launcher.refusal);
        QVERIFY(!stage.window->lanes().lane(0));
        QVERIFY(stage.window->setup().findChild<QPushButton*>("runButton")->isEnabled());
    }

    void refusedRunLeavesWhatIsOnTheScreen() {
        Stage stage;
        stage.runLive();
        const Lane* lane = stage.window->lanes().lane(0);
        stage.launcher.refusal = "The model cannot be read: it ends at byte 12; fetch it again.";
        stage.window->run();
        stage.settle();
        QCOMPARE(stage.window->lanes().lane(0), lane);
        QCOMPARE(lane->shown()->step, Step(119));
        stage.window->openSession("/nowhere/sample.kvatlas");
        stage.settle();
        QCOMPARE(stage.window->lanes().lane(0), lane);
    }

    void refusedRunLetsTheOneBeforeGoOn() {
        Stage stage;
        stage.launcher.options.run.steps = 2000;
        stage.window->run();
        stage.settle();
        stage.window->lanes().setSpeed(50);
        const Lane* lane = stage.window->lanes().lane(0);
        QVERIFY(lane->playing());
        stage.launcher.refusal = "The model cannot be read: it ends at byte 12; fetch it again.";
        stage.window->run();
        QVERIFY(!lane->playing());
        stage.settle();
        QVERIFY(lane->playing());
    }

    void modelThatCannotBeUsedIsNotChosen() {
        Stage stage;
        stage.launcher.refusal = "'/nowhere/short.gguf' ends at byte 12; fetch it again.";
        stage.window->openFile("/nowhere/short.gguf");
        stage.settle();
        QCOMPARE(stage.window->messages().sentence().toStdString(), stage.launcher.refusal);
        QCOMPARE(stage.window->setup().order().model.string(), std::string("/nowhere/synthetic.gguf"));
    }

    void runKeepsAProblemThatNobodyHasRead() {
        Stage stage;
        stage.window->messages().tell(MessageBar::Kind::Problem, "There is no strategy “nope”; choose one in Setup.");
        stage.window->run();
        stage.settle();
        QCOMPARE(stage.window->messages().sentence(),
                 QStringLiteral("There is no strategy “nope”; choose one in Setup."));
        QTest::qWait(1600);
        stage.window->run();
        stage.settle();
        QVERIFY(stage.window->messages().sentence().isEmpty());
    }

    void recordingIsNamedOnlyWhileItIsShown() {
        Stage stage;
        const auto says = [&](const QString& words) {
            for (const QLabel* label : stage.window->setup().findChildren<QLabel*>())
                if (label->text().contains(words))
                    return true;
            return false;
        };
        QVERIFY(!says(".kvatlas"));
        stage.runLive();
        QVERIFY(says("synthetic.kvatlas"));
        stage.openRecorded();
        QVERIFY(!says(".kvatlas"));
    }

    void runThatIsNotRecordedAnyMoreSaysSo() {
        Stage stage;
        stage.launcher.options.recording = "The disk is full; free some space.";
        stage.launcher.options.recordedTo = 14;
        stage.window->run();
        stage.settle();
        Lane* lane = stage.window->lanes().lane(0);
        QTRY_VERIFY_WITH_TIMEOUT(lane->latest()->ended, 20'000);
        QTRY_COMPARE(stage.window->messages().sentence(), QStringLiteral("The disk is full; free some space."));
        QTRY_COMPARE(lane->history()->lastStep, Step(14));
        QCOMPARE(stage.window->timeline().notRecorded(), QStringLiteral("not recorded after step 14"));
        QVERIFY(!stage.window->status().text().contains("tok/s") ||
                stage.window->status().text().contains(QStringLiteral("tok/s –")));
        RequestsModel& model = stage.window->requests().model();
        QTRY_VERIFY(model.rowCount() > 0);
        QTest::qWait(150);
        for (int row = 0; row < model.rowCount(); ++row) {
            const bool alive = lane->alive(model.rowAt(row)->request);
            const QString status = model.data(model.index(row, RequestsModel::Status), Qt::DisplayRole).toString();
            QVERIFY2(alive || (status != "decode" && status != "prefill" && status != "waiting"), qPrintable(status));
        }
        bool said = false;
        for (const QLabel* label : stage.window->requests().findChildren<QLabel*>())
            said = said || (label->isVisible() && label->text().startsWith("Not recorded after step 14"));
        QVERIFY(said);
        const QString shots = qEnvironmentVariable("KVATLAS_SHOTS");
        if (!shots.isEmpty())
            stage.window->grab().save(QDir(shots).filePath("not-recorded.png"));
    }

    void stepThatIsDamagedIsNotInvented() {
        Stage stage;
        stage.launcher.options.silent = true;
        stage.launcher.options.recording = "Left out in the replay: chunk 1 is damaged.";
        stage.window->openSession("/nowhere/damaged.kvatlas");
        stage.settle();
        QTRY_COMPARE(stage.window->messages().sentence(),
                     QStringLiteral("Left out in the replay: chunk 1 is damaged."));
        QTRY_VERIFY(stage.window->requests().model().rowCount() > 0);
        RequestsModel& model = stage.window->requests().model();
        QCOMPARE(model.data(model.index(0, RequestsModel::Status), Qt::DisplayRole).toString(),
                 QStringLiteral("not known"));
        QCOMPARE(stage.window->status().text(), QStringLiteral("This step cannot be shown"));
        auto* button = stage.window->memoryMap().emptyNote().findChild<QPushButton*>();
        QVERIFY(!button->isVisible()); // nothing to run here
        const QString shots = qEnvironmentVariable("KVATLAS_SHOTS");
        if (!shots.isEmpty())
            stage.window->grab().save(QDir(shots).filePath("damaged.png"));
    }

    void scrubbingALiveRunShowsTheStateOfThatStep() {
        Stage stage;
        stage.runLive();
        Lane* lane = stage.window->lanes().lane(0);
        test::ScriptedOptions same = stage.launcher.options;
        state::CacheState folded;
        std::map<Step, std::uint64_t> hashes;
        for (const trace::Event& event : test::SyntheticRun::all(same.run)) {
            QVERIFY(folded.apply(event));
            if (std::holds_alternative<trace::StepEnded>(event.body))
                hashes[event.step] = folded.stateHash();
        }
        for (Step step : {Step(0), Step(17), Step(60), Step(118), Step(3)}) {
            stage.goTo(step);
            QCOMPARE(lane->shown()->stateHash, hashes[step]);
            QVERIFY(!stage.window->linked().following());
            QCOMPARE(lane->latest()->step, Step(119)); // the run itself is where it was
        }
        QTRY_VERIFY(stage.window->status().text().startsWith("Looking back,"));
        stage.window->toolbar().followButton()->click();
        QVERIFY(stage.window->linked().following());
        QCOMPARE(lane->shown(), lane->latest());
    }

    void runRepeatsWhatAReplayShows() {
        Stage stage;
        QAction* run = nullptr;
        for (QAction* action : stage.window->findChildren<QAction*>())
            if (action->shortcut() == QKeySequence(Qt::CTRL | Qt::Key_R))
                run = action;
        QVERIFY(run);
        QVERIFY(stage.window->setup().chooseScenario("Own prompts"));
        QVERIFY(stage.window->setup().chooseStrategy("contiguous"));
        QCOMPARE(run->text(), QStringLiteral("&Run “Own prompts” with “Contiguous”"));
        stage.openRecorded();
        stage.goTo(10);
        QTRY_COMPARE(run->text(), QStringLiteral("&Run “Synthetic chats” with “Paged f16”"));
        QVERIFY(stage.window->setup().chooseStrategy("contiguous")); // chosen meanwhile: stays
        stage.goTo(20);
        QCOMPARE(stage.window->setup().strategyName(), QStringLiteral("Contiguous"));
    }

    void replaySeeksStepsAndPlaysToItsEnd() {
        Stage stage;
        stage.openRecorded();
        Lane* lane = stage.window->lanes().lane(0);
        QVERIFY(!stage.window->toolbar().followButton()->isEnabled());
        stage.goTo(40);
        stage.window->memoryMap().focusTarget()->setFocus();
        stage.window->lanes().stepBy(1);
        QVERIFY(QTest::qWaitFor([&] { return lane->shown()->step == 41; }));
        QCOMPARE(stage.window->linked().cursor(), Step(41));
        stage.window->lanes().stepBy(-1);
        QVERIFY(QTest::qWaitFor([&] { return lane->shown()->step == 40; }));
        stage.window->lanes().setPlaying(true);
        QVERIFY(lane->playing());
        QVERIFY(QTest::qWaitFor([&] { return lane->shown()->step == 119; }));
        QVERIFY(QTest::qWaitFor([&] { return !lane->playing(); }));
        QCOMPARE(stage.window->linked().cursor(), Step(119));
    }

    void draggingTheTimelineScrubs() {
        Stage stage;
        stage.openRecorded();
        TimelineView& timeline = stage.window->timeline();
        const int y = timeline.chart().geometry().center().y();
        const auto x = [&](Step step) { return qRound(timeline.scale().xOf(step)); };
        QTest::mousePress(&timeline, Qt::LeftButton, {}, {x(20), y});
        QTest::mouseMove(&timeline, {x(70), y});
        QTest::mouseRelease(&timeline, Qt::LeftButton, {}, {x(70), y});
        QCOMPARE(stage.window->linked().cursor(), Step(70));
        QVERIFY(QTest::qWaitFor([&] { return stage.window->lanes().lane(0)->shown()->step == 70; }));
    }

    void clickingABlockSelectsItInEveryView() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        Lane* lane = stage.window->lanes().lane(0);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        std::optional<BlockId> used;
        for (std::uint32_t i = 0; i < lane->shown()->pools[0].shape.blocks && !used; ++i)
            if (lane->shown()->pools[0].block(i).kind == state::BlockKind::Active)
                used = BlockId(PoolId(0), i);
        QVERIFY(used);
        QTest::mouseClick(map.viewport(), Qt::LeftButton, {}, map.layout().rectOf(*used).center());
        QCOMPARE(stage.window->linked().selection().block, used);
        const RequestId owner = lane->shown()->pools[0].block(used->index()).request;
        QCOMPARE(stage.window->linked().selection().request, owner);
        const auto& content = stage.window->inspector().body().content();
        QCOMPARE(content.title, QStringLiteral("Block %1").arg(used->index()));
        QCOMPARE(content.chips.size(), std::size_t(16));
        QVERIFY(stage.window->blockTables().canvas().scene().selection.block == used);
        QVERIFY(!stage.window->requests().shownText().isEmpty());
        // The lock keeps it.
        stage.window->inspector().setLocked(true);
        stage.window->linked().clearSelection();
        QCOMPARE(stage.window->inspector().body().content().title, QStringLiteral("Block %1").arg(used->index()));
        stage.window->inspector().setLocked(false);
        QVERIFY(stage.window->inspector().body().content().title.isEmpty());
    }

    void arrowsMoveInTheMapAndNameTheCell() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        map.setFocus();
        stage.window->linked().select({RequestId(), BlockId(PoolId(0), 31), {}});
        const int columns = map.layout().bands().front().columns;
        QTest::keyClick(&map, Qt::Key_Right);
        QCOMPARE(stage.window->linked().selection().block, std::optional(BlockId(PoolId(0), 32)));
        QTest::keyClick(&map, Qt::Key_Down);
        QCOMPARE(stage.window->linked().selection().block,
                 std::optional(BlockId(PoolId(0), 32u + static_cast<unsigned>(columns))));
        QTest::keyClick(&map, Qt::Key_Up);
        QTest::keyClick(&map, Qt::Key_Left);
        QCOMPARE(stage.window->linked().selection().block, std::optional(BlockId(PoolId(0), 31)));
        QVERIFY(map.focusedCellName().startsWith("Block 31, "));
        QTest::keyClick(stage.window.get(), Qt::Key_Escape);
        QVERIFY(stage.window->linked().selection().empty());
    }

    void tooltipTellsWhatLiesUnderARestingPointerNow() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(1);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        auto* tip = map.findChild<HoverTip*>();
        QVERIFY(tip);
        const BlockId never(PoolId(0), 181);
        const auto pointTo = [&](QPoint at) {
            QMouseEvent move(QEvent::MouseMove, at, map.viewport()->mapToGlobal(at), Qt::NoButton, Qt::NoButton, {});
            QApplication::sendEvent(map.viewport(), &move);
        };
        pointTo(map.layout().rectOf(never).center());
        QTRY_VERIFY(tip->isVisible());
        const auto row = [&](const QString& name) {
            for (const HoverTip::Row& one : tip->rows())
                if (one.name == name)
                    return one.value;
            return QString();
        };
        QCOMPARE(row("freed"), QStringLiteral("never used"));
        // Another step, by keys alone.
        Lane* lane = stage.window->lanes().lane(0);
        const BlockId first(PoolId(0), 0);
        pointTo(map.layout().rectOf(first).center());
        for (Step step : {Step(20), Step(60), Step(119)}) {
            stage.goTo(step);
            QCOMPARE(row("state"), blockStateText(lane->shown()->pools[0].block(0)));
        }
        // Another zoom: another block, or none.
        map.setFocus();
        const QPoint at = map.layout().rectOf(BlockId(PoolId(0), 40)).center();
        pointTo(at);
        for (int i = 0; i < 4; ++i) {
            QTest::keyClick(&map, Qt::Key_Plus);
            const auto under = map.layout().blockAt(at + QPoint(0, map.verticalScrollBar()->value()));
            QCOMPARE(stage.window->linked().hovered(), under);
            if (under && tip->isVisible())
                QCOMPARE(tip->head(), QStringLiteral("Block %1").arg(under->index()));
            else
                QVERIFY(!tip->isVisible() || under);
        }
        stage.window->lanes().closeAll();
        QVERIFY(!tip->isVisible());
    }

    void legendOfAgeAndReferencesShowsTheScale() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        for (ColourBy way : {ColourBy::Age, ColourBy::References}) {
            stage.window->linked().setColourBy(way);
            const auto legend = stage.window->memoryMap().legend();
            QCOMPARE(legend.front().mark, LegendEntry::Mark::Scale);
            QVERIFY(!legend.front().text.isEmpty() && !legend.front().value.isEmpty());
            QCOMPARE(legend.back().text, QStringLiteral("free"));
            const QString shots = qEnvironmentVariable("KVATLAS_SHOTS");
            if (!shots.isEmpty())
                stage.window->grab().save(QDir(shots).filePath(QString("legend-%1.png").arg(int(way))));
        }
        stage.window->linked().setColourBy(ColourBy::Owner);
        QCOMPARE(stage.window->memoryMap().legend().front().text, QStringLiteral("active"));
    }

    void controlWheelZoomsAboutThePointerAndZeroFits() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        const int fitted = map.cell();
        QVERIFY(map.fitting());
        const QPoint at = map.viewport()->rect().center();
        QWheelEvent wheel(at, map.viewport()->mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::ControlModifier,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(map.viewport(), &wheel);
        QVERIFY(map.cell() > fitted);
        QVERIFY(!map.fitting());
        map.setFocus();
        for (int i = 0; i < 30; ++i)
            QTest::keyClick(&map, Qt::Key_Plus);
        QCOMPARE(map.cell(), MapLayout::kMaxCell);
        for (int i = 0; i < 60; ++i)
            QTest::keyClick(&map, Qt::Key_Minus);
        QCOMPARE(map.cell(), MapLayout::kMinCell);
        QTest::keyClick(&map, Qt::Key_0);
        QCOMPARE(map.cell(), fitted);
    }

    void zoomByKeysKeepsTheSelectedBlockInSight() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        map.setFocus();
        for (std::uint32_t index : {0u, 35u, 140u, 181u}) {
            QTest::keyClick(&map, Qt::Key_0);
            const BlockId block(PoolId(0), index);
            stage.window->linked().select({RequestId(), block, {}});
            for (int i = 0; i < 30; ++i) {
                QTest::keyClick(&map, Qt::Key_Plus);
                const QRect seen(QPoint(0, map.verticalScrollBar()->value()), map.viewport()->size());
                QVERIFY2(seen.contains(map.layout().rectOf(block).center()),
                         qPrintable(QStringLiteral("block %1 at %2 px").arg(index).arg(map.cell())));
            }
        }
    }

    void singleLettersActOnViewsButNotInTextFields() {
        Stage stage;
        stage.openRecorded();
        stage.window->memoryMap().focusTarget()->setFocus();
        const ThemeName before = stage.appearance.theme().name;
        QTest::keyClick(stage.window->focusWidget(), Qt::Key_T);
        QVERIFY(stage.appearance.theme().name != before);
        QTest::keyClick(stage.window->focusWidget(), Qt::Key_O);
        QCOMPARE(stage.window->linked().colourBy(), ColourBy::State);
        auto* prompt = stage.window->setup().findChild<QPlainTextEdit*>();
        const ThemeName now = stage.appearance.theme().name;
        QTest::keyClicks(prompt, "to it");
        QCOMPARE(prompt->toPlainText(), QStringLiteral("to it"));
        QCOMPARE(stage.appearance.theme().name, now);
        QVERIFY(KeySheet::keys().size() > 10);
    }

    void keysOfTheWindowWorkInTheListAndTheTextToo() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(60);
        auto* table = stage.window->requests().findChild<QTableView*>();
        auto* text = stage.window->requests().findChild<QPlainTextEdit*>();
        table->selectRow(1);
        for (QWidget* widget : {static_cast<QWidget*>(table), static_cast<QWidget*>(text)}) {
            widget->setFocus();
            const RequestId before = stage.window->linked().selection().request;
            QTest::keyClicks(widget, QStringLiteral("xz2"));
            QCOMPARE(stage.window->linked().selection().request, before); // no search
            widget->setFocus();
            QTest::keyClick(widget, Qt::Key_Home);
            QCOMPARE(stage.window->linked().cursor(), Step(0));
            QTest::keyClick(widget, Qt::Key_End);
            QCOMPARE(stage.window->linked().cursor(), Step(119));
            QTest::keyClick(widget, Qt::Key_Left);
            QCOMPARE(stage.window->linked().cursor(), Step(118));
            QTest::keyClick(widget, Qt::Key_Space);
            QVERIFY(stage.window->lanes().playing());
            QTRY_VERIFY(!stage.window->lanes().playing());
        }
        const int row = table->currentIndex().row();
        table->setFocus();
        QTest::keyClick(table, Qt::Key_Down); // the list's own
        QCOMPARE(table->currentIndex().row(), row + 1);
    }

    void finishedLiveRunPlaysItsPast() {
        Stage stage;
        stage.runLive();
        QToolButton* play = stage.window->toolbar().playButton();
        QVERIFY(!play->isEnabled());
        stage.goTo(20);
        QVERIFY(play->isEnabled());
        stage.window->lanes().setSpeed(20);
        play->click();
        QVERIFY(stage.window->lanes().replaying());
        QTRY_VERIFY(stage.window->linked().cursor() >= 22);
        play->click(); // pauses
        const Step paused = stage.window->linked().cursor();
        QTest::qWait(200);
        QCOMPARE(stage.window->linked().cursor(), paused);
        QTRY_COMPARE(stage.window->lanes().lane(0)->shown()->step, paused);
        stage.window->lanes().setSpeed(5000);
        play->click();
        QTRY_COMPARE(stage.window->linked().cursor(), Step(119));
        QTRY_VERIFY(stage.window->linked().following());
        QVERIFY(!stage.window->lanes().replaying());
        QVERIFY(!play->isEnabled());
    }

    void ownPromptGoesToTheRunThatGoesOn() {
        Stage stage;
        stage.launcher.options.paused = true; // it does not end by itself
        stage.window->run();
        stage.settle();
        auto* prompt = stage.window->setup().findChild<QPlainTextEdit*>();
        prompt->setPlainText("Why \"blocks\"?");
        QPushButton* add = nullptr;
        for (QPushButton* button : stage.window->setup().findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Add prompt"))
                add = button;
        QVERIFY(add && add->isEnabled());
        add->click();
        std::string sent;
        for (const source::Command& command : stage.launcher.newest->commands())
            if (const auto* submit = std::get_if<source::Submit>(&command))
                sent = submit->requestJson;
        QVERIFY(sent.find(R"(Why \"blocks\"?)") != std::string::npos);
        QVERIFY(sent.find("\"at\"") == std::string::npos);
        QVERIFY(!add->isEnabled()); // the field is empty again
    }

    void newRequestIsShownWhenItArrives() {
        Stage stage;
        stage.launcher.options.paused = true;
        stage.window->run();
        stage.settle();
        stage.window->lanes().stepBy(4);
        Lane* lane = stage.window->lanes().lane(0);
        QTRY_VERIFY(!lane->latest()->requests.empty());
        QTest::qWait(300);
        const RequestId before = lane->latest()->requests.back().request;
        stage.window->setup().findChild<QPlainTextEdit*>()->setPlainText("And the sea?");
        for (QPushButton* button : stage.window->setup().findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Add prompt"))
                button->click();
        QVERIFY(stage.window->linked().selection().request == RequestId());
        stage.window->lanes().stepBy(40); // the script has no ear for prompts; its next request stands for it
        QTRY_VERIFY(before < stage.window->linked().selection().request);
    }

    void cancellingLeavesTheFocusInTheList() {
        Stage stage;
        stage.launcher.options.paused = true;
        stage.window->run();
        stage.settle();
        stage.window->lanes().stepBy(4);
        Lane* lane = stage.window->lanes().lane(0);
        QTRY_VERIFY(!lane->latest()->requests.empty());
        stage.window->linked().select({lane->latest()->requests.front().request, {}, {}});
        auto* cancel = stage.window->requests().findChild<QPushButton*>();
        QTRY_VERIFY(cancel->isEnabled());
        cancel->setFocus();
        stage.window->lanes().setPlaying(true); // it ends by itself
        QTRY_VERIFY(!cancel->isEnabled());
        QCOMPARE(stage.window->focusWidget(), stage.window->requests().findChild<QTableView*>());
    }

    void requestsModelKeepsTheRulesOfItemModels() {
        RequestsModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        std::vector<trace::RequestRow> rows(3);
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i].request = RequestId(i + 1);
        rows[0].admittedStep = 1;
        rows[0].firstTokenStep = 4;
        rows[0].finishedStep = 9;
        rows[0].finishReason = trace::FinishReason::MaxTokens;
        model.setRows({rows.begin(), rows.begin() + 2}, 20);
        model.setRows(rows, 20);
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.rowOf(RequestId(2)), 1);
        QCOMPARE(model.rowOf(RequestId(9)), -1);
        const auto status = [&](Step cursor) {
            model.setRows(rows, cursor);
            return model.data(model.index(0, RequestsModel::Status), Qt::DisplayRole).toString();
        };
        QCOMPARE(status(0), QStringLiteral("waiting"));
        QCOMPARE(status(2), QStringLiteral("prefill"));
        QCOMPARE(status(5), QStringLiteral("decode"));
        QCOMPARE(status(9), QStringLiteral("token limit"));
        // What had not happened at the cursor is not shown.
        rows[0].firstTokenNs = 12'000'000;
        rows[0].finishedNs = 62'000'000;
        rows[0].outputTokens = 6;
        const auto cell = [&](Step cursor, RequestsModel::Column column) {
            model.setRows(rows, cursor);
            return model.data(model.index(0, column), Qt::DisplayRole).toString();
        };
        QCOMPARE(cell(3, RequestsModel::FirstToken), QStringLiteral("–"));
        QCOMPARE(cell(4, RequestsModel::FirstToken), QStringLiteral("12.0 ms"));
        QCOMPARE(cell(8, RequestsModel::Interval), QStringLiteral("–"));
        QCOMPARE(cell(9, RequestsModel::Interval), QStringLiteral("10.0 ms"));
        // The state that is shown knows better than a history that lags.
        rows[0].firstTokenStep = 4;
        rows[0].finishedStep.reset();
        auto shown = std::make_shared<state::Snapshot>();
        const auto stateOf = [&](std::size_t row) {
            model.setRows(rows, 30, shown);
            return model.data(model.index(static_cast<int>(row), RequestsModel::Status), Qt::DisplayRole).toString();
        };
        QCOMPARE(stateOf(0), QStringLiteral("not known")); // there is no run in it
        QCOMPARE(model.data(model.index(0, RequestsModel::Tokens), Qt::DisplayRole).toString(), QStringLiteral("–"));
        shown->run = std::make_shared<trace::RunStarted>();
        QCOMPARE(stateOf(0), QStringLiteral("finished"));
        state::RequestState waiting;
        waiting.request = RequestId(2);
        state::RequestState later = waiting;
        later.request = RequestId(7);
        later.status = state::RequestStatus::Running;
        later.outputTokens = 3;
        shown->requests = {waiting, later};
        QCOMPARE(stateOf(1), QStringLiteral("waiting"));
        QCOMPARE(stateOf(3), QStringLiteral("decode"));
        QCOMPARE(model.rowCount(), 4);
        model.setRows({}, 0);
        QCOMPARE(model.rowCount(), 0);
    }

    void statusListAndMapShowTheSameStep() {
        Stage stage;
        stage.launcher.options.paused = true;
        stage.window->run();
        stage.settle();
        Lane* lane = stage.window->lanes().lane(0);
        for (int i = 0; i < 12; ++i) {
            QTest::qWait(110);
            const Step before = lane->latest()->step;
            stage.window->lanes().stepBy(1);
            for (int tries = 0; tries < 200 && lane->shown()->step == before; ++tries)
                QTest::qWait(1);
            // At once: no timer stands between.
            const QString step = QStringLiteral("step %1").arg(lane->shown()->step);
            QVERIFY2(stage.window->status().text().contains(step), qPrintable(stage.window->status().text()));
            RequestsModel& model = stage.window->requests().model();
            for (const state::RequestState& alive : lane->shown()->requests) {
                const int row = model.rowOf(alive.request);
                QVERIFY(row >= 0);
                QCOMPARE(model.data(model.index(row, RequestsModel::Tokens), Qt::DisplayRole).toString(),
                         QStringLiteral("%1 + %2").arg(alive.promptTokens).arg(alive.outputTokens));
            }
        }
    }

    void textOfAFinishedRequestStopsAtTheCursor() {
        Stage stage;
        stage.openRecorded();
        Lane* lane = stage.window->lanes().lane(0);
        const auto history = lane->history();
        const auto& rows = history->requests;
        const auto done = std::find_if(rows.begin(), rows.end(), [](const trace::RequestRow& row) {
            return row.finishedStep && row.outputTokens >= 3 && *row.finishedStep < 100;
        });
        QVERIFY(done != rows.end());
        stage.goTo(*done->finishedStep);
        lane->requestText(done->request); // asks
        QVERIFY(QTest::qWaitFor([&] { return !lane->requestText(done->request).promptTokens.empty(); }));
        QCOMPARE(lane->requestText(done->request).outputTokens.size(), std::size_t(done->outputTokens));
        stage.goTo(*done->firstTokenStep);
        QCOMPARE(lane->requestText(done->request).outputTokens.size(), std::size_t(1));
    }

    void requestListCountsTheTokensAtTheCursor() {
        Stage stage;
        stage.openRecorded();
        Lane* lane = stage.window->lanes().lane(0);
        const auto history = lane->history(); // kept: a newer one replaces it while events are processed
        const auto& rows = history->requests;
        const auto longest = std::max_element(
            rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.outputTokens < b.outputTokens; });
        QVERIFY(longest != rows.end() && longest->firstTokenStep && longest->outputTokens > 3);
        RequestsModel& model = stage.window->requests().model();
        const auto tokensShown = [&] {
            return model.data(model.index(model.rowOf(longest->request), RequestsModel::Tokens), Qt::DisplayRole)
                .toString();
        };
        for (const Step step : {*longest->firstTokenStep, *longest->firstTokenStep + 2}) {
            stage.goTo(step);
            const auto shown = lane->shown();
            const auto& alive = shown->requests;
            const auto at = std::find_if(alive.begin(), alive.end(),
                                         [&](const auto& request) { return request.request == longest->request; });
            QVERIFY(at != alive.end());
            QTRY_COMPARE(tokensShown(), QStringLiteral("%1 + %2").arg(at->promptTokens).arg(at->outputTokens));
        }
        if (longest->arrivedStep > 0) {
            stage.goTo(longest->arrivedStep - 1);
            QTRY_COMPARE(tokensShown(), QStringLiteral("%1 + 0").arg(longest->promptTokens));
        }
    }

    void askingTheHistoryStaysRare() {
        Stage stage;
        stage.runLive();
        QTest::qWait(300);
        const int asked = stage.launcher.newest->questions();
        QTest::qWait(500);
        QVERIFY(stage.launcher.newest->questions() <= asked + 1); // nothing new: nothing asked
    }

    void everyVisibleControlHasANameAndTabReachesThem() {
        for (QSize size : {QSize(1600, 1000), QSize(1366, 768)}) {
            Stage stage(size);
            stage.openRecorded();
            stage.goTo(80);
            for (QWidget* widget : stage.window->findChildren<QWidget*>()) {
                if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus)
                    continue;
                QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
                QVERIFY(face);
                QVERIFY2(!face->text(QAccessible::Name).isEmpty(), widget->metaObject()->className());
            }
            stage.window->activateWindow();
            stage.window->memoryMap().focusTarget()->setFocus();
            std::set<QWidget*> reached;
            for (int i = 0; i < 60; ++i) {
                QTest::keyClick(stage.window->focusWidget(), Qt::Key_Tab);
                QVERIFY(stage.window->focusWidget());
                reached.insert(stage.window->focusWidget());
            }
            QVERIFY(reached.count(stage.window->memoryMap().focusTarget()));
            QVERIFY(reached.count(stage.window->blockTables().focusTarget()));
            QVERIFY(reached.count(&stage.window->timeline()));
            QVERIFY(reached.count(stage.window->toolbar().playButton()));
        }
    }

    void screenReadersGetTheFocusedCell() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        MemoryMapCanvas& map = stage.window->memoryMap().canvas();
        map.setFocus();
        stage.window->linked().select({RequestId(), BlockId(PoolId(0), 55), {}});
        QAccessibleInterface* face = QAccessible::queryAccessibleInterface(&map);
        QVERIFY(face && face->childCount() == 1);
        QCOMPARE(face->role(), QAccessible::Table);
        QAccessibleInterface* cell = face->child(0);
        QCOMPARE(cell->role(), QAccessible::Cell);
        QVERIFY(cell->text(QAccessible::Name).startsWith("Block 55, "));
        QVERIFY(cell->rect().width() > 10);
        QCOMPARE(cell->parent()->object(), static_cast<QObject*>(&map));
        BlockTableCanvas& tables = stage.window->blockTables().canvas();
        tables.setFocus();
        QTest::keyClick(&tables, Qt::Key_Right);
        QAccessibleInterface* row = QAccessible::queryAccessibleInterface(&tables);
        QVERIFY(row->child(0)->text(QAccessible::Name).startsWith("Request "));
    }

    void exportsEveryViewAsPngAndSvgWithTitleLegendAndFooter() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        QTemporaryDir folder;
        for (const QString& name : MainWindow::exportNames())
            for (const char* suffix : {"png", "svg"}) {
                const QString file = folder.filePath(name + '.' + suffix);
                const auto done = stage.window->exportView(name, file, {1200, 700});
                QVERIFY2(done, done ? "" : done.error().message.c_str());
                QVERIFY(QFileInfo(file).size() > 2000);
                if (name == QLatin1String("window"))
                    continue;
                if (QLatin1String(suffix) == QLatin1String("png")) {
                    const QImage image(file);
                    QCOMPARE(image.size(), QSize(2400, 1400));
                    QVERIFY(image.pixelColor(2, 2) == stage.appearance.theme().panel);
                    std::set<QRgb> colours;
                    for (int y = 0; y < image.height(); y += 3)
                        for (int x = 0; x < image.width(); x += 3)
                            colours.insert(image.pixel(x, y));
                    QVERIFY2(colours.size() > 10, qPrintable(file));
                } else {
                    QFile svg(file);
                    QVERIFY(svg.open(QIODevice::ReadOnly));
                    const QByteArray text = svg.readAll();
                    QVERIFY2(text.contains("step 80"), qPrintable(file));
                    for (const char* word :
                         {"memory-map:free", "block-tables:full", "memory-over-time:capacity", "requests:prefill"})
                        if (QString(word).startsWith(name + ':'))
                            QVERIFY2(text.contains(QString(word).section(':', 1).toUtf8()), word);
                }
            }
        QVERIFY(!stage.window->exportView("memory-map", folder.filePath("map.gif"), {800, 600}));
        QVERIFY(!stage.window->exportView("memory-map", "/nowhere/at/all/map.png", {800, 600}));
        QVERIFY(!stage.window->exportView("sunrise", folder.filePath("map.png"), {800, 600}));
    }

    void opensInTheFontsThatAThemeSwitchGives() {
        for (QSize size : {QSize(1600, 1000), QSize(1366, 768)}) {
            Stage stage(size);
            const auto looks = [&] {
                QStringList out;
                for (const QWidget* widget : stage.window->findChildren<QWidget*>())
                    if (widget->inherits("QLabel") || widget->inherits("QAbstractButton") ||
                        widget->inherits("QTabBar") || widget->inherits("QTableView"))
                        out << QStringLiteral("%1 %2 %3 %4")
                                   .arg(widget->metaObject()->className(), widget->accessibleName(),
                                        widget->font().toString(), widget->palette().windowText().color().name());
                return out;
            };
            const QStringList fresh = looks();
            stage.appearance.choose(ThemeChoice::Dark);
            stage.appearance.choose(ThemeChoice::Light);
            const QStringList again = looks();
            for (int i = 0; i < std::min(fresh.size(), again.size()); ++i)
                QCOMPARE(fresh[i], again[i]);
            // Wide, narrow and wide again moves the inspector.
            stage.window->resize(size == QSize(1600, 1000) ? QSize(1366, 768) : QSize(1600, 1000));
            stage.window->resize(size);
            QCOMPARE(looks().join('\n'), again.join('\n'));
        }
    }

    void runIsInSightWhateverTheScenarioSays() {
        for (QSize size : {QSize(1600, 1000), QSize(1440, 900), QSize(1366, 768), QSize(1024, 700)}) {
            Stage stage(size);
            Choices choices = stage.launcher.choices();
            choices.scenarios.front().description = std::string(600, 'x');
            for (std::size_t i = 4; i < 600; i += 5)
                choices.scenarios.front().description[i] = ' ';
            stage.window->setup().setChoices(choices);
            stage.window->messages().tell(MessageBar::Kind::Problem, QString(300, QLatin1Char('m')));
            QTest::qWait(20);
            const auto* run = stage.window->setup().findChild<QPushButton*>("runButton");
            QCOMPARE(run->visibleRegion().boundingRect(), run->rect());
        }
    }

    void focusRingIsWholeAroundEveryField() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        const auto whole = [&](QWidget* field) {
            field->setFocus(Qt::TabFocusReason);
            QTest::qWait(20);
            const QImage picture = stage.window->grab().toImage();
            const QRect ring = QRect(field->mapTo(stage.window.get(), QPoint()), field->size()).adjusted(-4, -4, 3, 3);
            const QColor accent = stage.appearance.theme().accent;
            for (const QPoint at :
                 {QPoint(ring.left() + 1, ring.center().y()), QPoint(ring.right(), ring.center().y()),
                  QPoint(ring.center().x(), ring.top() + 1), QPoint(ring.center().x(), ring.bottom())})
                if (picture.pixelColor(at) != accent)
                    return false;
            return true;
        };
        QVERIFY(whole(stage.window->requests().findChild<QTableView*>()));
        stage.window->findChild<QTabBar*>()->setCurrentIndex(0);
        QVERIFY(whole(stage.window->setup().findChild<QPlainTextEdit*>()));
        for (QComboBox* combo : stage.window->setup().findChildren<QComboBox*>())
            QVERIFY2(whole(combo), qPrintable(combo->accessibleName()));
        QVERIFY(whole(stage.window->setup().findChild<QPushButton*>("runButton")));
    }

    void namesAreShortenedOnlyWithoutRoom() {
        for (QSize size : {QSize(1600, 1000), QSize(1366, 768)}) {
            Stage stage(size);
            Choices choices = stage.launcher.choices();
            choices.models.front().name = "SmolLM2-135M-Instruct.Q4_1";
            choices.scenarios.front().name = "Long and short together";
            choices.strategies[1].name = "Contiguous, reserves what the longest request asks for";
            stage.window->setup().setChoices(choices);
            QTest::qWait(20);
            QStringList texts;
            for (const QToolButton* button : stage.window->toolbar().findChildren<QToolButton*>())
                texts << button->text();
            QVERIFY2(texts.contains("SmolLM2-135M-Instruct.Q4_1"), qPrintable(texts.join("; ")));
            QVERIFY2(texts.contains("Long and short together"), qPrintable(texts.join("; ")));
            QVERIFY(stage.window->toolbar().width() <= size.width());
            for (QComboBox* combo : stage.window->setup().findChildren<QComboBox*>()) {
                combo->showPopup();
                QVERIFY(combo->view()->sizeHintForColumn(0) <= combo->view()->viewport()->width());
                QVERIFY(combo->view()->sizeHintForRow(0) >= 24);
                combo->hidePopup();
            }
        }
    }

    void opensNoLargerThanTheScreen() {
        QCOMPARE(MainWindow::defaultSize({2560, 1440}), QSize(1600, 1000));
        QVERIFY(MainWindow::defaultSize({1600, 1000}).height() < 970); // the title bar has room
        QCOMPARE(MainWindow::defaultSize({1280, 800}), QSize(1272, 760));
        QCOMPARE(MainWindow::defaultSize({800, 500}), QSize(1024, 700)); // the least that can be laid out
    }

    void narrowWindowTurnsTheInspectorIntoARail() {
        Stage stage({1366, 768});
        QVERIFY(stage.window->compact());
        QVERIFY(!stage.window->inspector().isVisible());
        auto* rail = stage.window->findChild<QAbstractButton*>("rail");
        QVERIFY(rail && rail->isVisible());
        QCOMPARE(rail->width(), 32);
        rail->click();
        QVERIFY(stage.window->inspector().isVisible());
        QCOMPARE(stage.window->inspector().width(), 280);
        stage.appearance.choose(ThemeChoice::Dark);
        rail->click();
        rail->click();
        const QImage over = stage.window->inspector().grab().toImage();
        for (const QPoint at : {QPoint(6, 6), QPoint(6, 200), QPoint(276, 300)})
            QCOMPARE(over.pixelColor(at).name(), stage.appearance.theme().panel.name());
        stage.window->resize(1600, 1000);
        QVERIFY(!stage.window->compact());
        QVERIFY(!rail->isVisible());
        QVERIFY(stage.window->inspector().isVisible());
        QCOMPARE(stage.window->timeline().height(), 222);
    }

    void closingWhileRunningStopsTheSourceWithinThreeSeconds() {
        Stage stage;
        stage.launcher.options.run.steps = 2000;
        stage.window->run();
        stage.settle();
        stage.window->lanes().setSpeed(50); // it goes on for long
        QTest::qWait(100);
        QElapsedTimer timer;
        timer.start();
        QVERIFY(stage.window->close());
        QVERIFY(!stage.window->lanes().lane(0));
        stage.window.reset();
        QVERIFY(timer.elapsed() < 3000);
    }

    void openingAnotherFileReplacesTheRun() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(50);
        stage.window->linked().select({RequestId(3), {}, {}});
        stage.openRecorded();
        QCOMPARE(stage.window->lanes().size(), std::size_t(1));
        QVERIFY(stage.window->linked().selection().empty());
        stage.window->openFile("/nowhere/other.gguf"); // a model is chosen, not opened
        stage.settle();
        QCOMPARE(stage.window->setup().order().model.string(), std::string("/nowhere/other.gguf"));
    }

    void themeSwitchRepaintsEveryPartInItsColours() {
        Stage stage;
        stage.openRecorded();
        stage.goTo(80);
        for (const auto& [choice, name] :
             {std::pair{ThemeChoice::Dark, ThemeName::Dark}, std::pair{ThemeChoice::Contrast, ThemeName::Contrast},
              std::pair{ThemeChoice::Light, ThemeName::Light}}) {
            stage.appearance.choose(choice);
            QTest::qWait(20);
            const Theme theme = loadTheme(name);
            const QImage picture = stage.window->grab().toImage();
            const auto at = [&](QWidget* widget, QPoint point) {
                return picture.pixelColor(widget->mapTo(stage.window.get(), point)).name();
            };
            QCOMPARE(at(&stage.window->memoryMap(), {5, 60}), theme.panel.name());
            QCOMPARE(at(&stage.window->timeline(), {5, 60}), theme.panel.name());
            QCOMPARE(at(&stage.window->inspector(), {5, 300}), theme.panel.name());
            QCOMPARE(at(&stage.window->toolbar(), {3, 20}), theme.raised.name());
            QCOMPARE(at(&stage.window->requests(), {8, 420}), theme.panel.name());
            QCOMPARE(at(stage.window->requests().findChild<QPlainTextEdit*>(), {4, 4}), theme.panel.name());
        }
    }

    // Whether any text is cut; KVATLAS_SHOTS=folder keeps the pictures for people to look at.
    void cutsNoTextAtAnySizeInAnyTheme() {
        const QTemporaryDir passing;
        const QString folder = qEnvironmentVariable("KVATLAS_SHOTS", passing.path());
        for (const auto& [name, choice, size] : {std::tuple{"light", ThemeChoice::Light, QSize(1600, 1000)},
                                                 std::tuple{"dark", ThemeChoice::Dark, QSize(1600, 1000)},
                                                 std::tuple{"contrast", ThemeChoice::Contrast, QSize(1600, 1000)},
                                                 std::tuple{"compact", ThemeChoice::Light, QSize(1366, 768)},
                                                 std::tuple{"small", ThemeChoice::Dark, QSize(1024, 700)}}) {
            Stage stage(size);
            stage.appearance.choose(choice);
            QVERIFY(stage.window->grab().save(QDir(folder).filePath(QString("empty-%1.png").arg(name))));
            QTRY_COMPARE(cutTexts(*stage.window).join("; "), QString()); // once laid out
            stage.openRecorded();
            stage.goTo(80);
            stage.window->linked().select({RequestId(), BlockId(PoolId(0), 40), {}});
            QTest::qWait(50);
            QVERIFY(stage.window->grab().save(QDir(folder).filePath(QString("%1.png").arg(name))));
            QTRY_COMPARE(cutTexts(*stage.window).join("; "), QString()); // once laid out
        }
        Stage stage;
        stage.appearance.choose(ThemeChoice::Dark);
        stage.openRecorded();
        stage.goTo(30);
        for (int cell : {10, 36, 64, 120}) {
            stage.window->memoryMap().canvas().zoomTo(cell, {});
            QTest::qWait(30);
            stage.window->grab().save(QDir(folder).filePath(QString("zoom-%1.png").arg(cell)));
        }
        stage.window->memoryMap().canvas().zoomTo(0, {});
        stage.window->linked().select({stage.window->blockTables().canvas().rows().front().request, {}, {}});
        QTest::qWait(30);
        stage.window->grab().save(QDir(folder).filePath("selected.png"));
        stage.launcher.options.run.contiguous = true;
        stage.launcher.options.run.poolBlocks = 65'536;
        stage.openRecorded();
        stage.goTo(80);
        QTest::qWait(30);
        stage.window->grab().save(QDir(folder).filePath("contiguous.png"));
        stage.window->messages().tell(MessageBar::Kind::Problem,
                                      "Recording stopped: the disk is full; the run goes on, what was recorded stays.");
        KeySheet sheet(stage.appearance, stage.window.get());
        sheet.show();
        sheet.grab().save(QDir(folder).filePath("keys.png"));
        HoverTip tip(stage.window.get());
        tip.present(stage.appearance.theme(), "Block 131",
                    {{"state", "active"}, {"request", "16"}, {"slots", "16 of 16"}, {"last written", "step 476"}},
                    QRect(100, 100, 20, 20));
        QTest::qWait(500);
        tip.grab().save(QDir(folder).filePath("tip.png"));
        for (QMenu* menu : stage.window->menuBar()->findChildren<QMenu*>())
            if (menu->title().contains("View")) {
                menu->popup({0, 0});
                menu->grab().save(QDir(folder).filePath("menu.png"));
                menu->close();
            }
        stage.window->resize(1366, 768);
        stage.window->findChild<QTabBar*>()->setCurrentIndex(0);
        stage.window->linked().select({RequestId(), BlockId(PoolId(0), 16), {}});
        stage.window->findChild<QAbstractButton*>("rail")->click();
        stage.window->setup().findChild<QPushButton*>("runButton")->setFocus(Qt::TabFocusReason);
        QTest::qWait(50);
        stage.window->grab().save(QDir(folder).filePath("compact-overlay.png"));
    }
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::WindowTest)
#include "window_test.moc"

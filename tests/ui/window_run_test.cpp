// SPDX-License-Identifier: Apache-2.0
// The window over synthetic sources: runs, recordings, replays, the list of requests. Offscreen.
#include "tests/support/stage.h"

#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/status_strip.h"
#include "ui/panels/tool_strip.h"
#include "ui/views/empty_note.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAbstractItemModelTester>
#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QToolButton>

#include <map>

namespace kvatlas::ui {

using test::Stage;

class WindowRunTest : public QObject {
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
        stage.beginLive(4);
        Lane* lane = stage.window->lanes().lane(0);
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
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::WindowRunTest)
#include "window_run_test.moc"

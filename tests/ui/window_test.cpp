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
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QDir>
#include <QElapsedTimer>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include <memory>

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

} // namespace

class WindowTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // Pictures for people: KVATLAS_SHOTS=folder writes them.
    void writesItsPortraits() {
        const QString folder = qEnvironmentVariable("KVATLAS_SHOTS");
        if (folder.isEmpty())
            QSKIP("KVATLAS_SHOTS names no folder");
        for (const auto& [name, choice, size] : {std::tuple{"light", ThemeChoice::Light, QSize(1600, 1000)},
                                                 std::tuple{"dark", ThemeChoice::Dark, QSize(1600, 1000)},
                                                 std::tuple{"contrast", ThemeChoice::Contrast, QSize(1600, 1000)},
                                                 std::tuple{"compact", ThemeChoice::Light, QSize(1366, 768)},
                                                 std::tuple{"small", ThemeChoice::Dark, QSize(1024, 700)}}) {
            Stage stage(size);
            stage.appearance.choose(choice);
            stage.window->grab().save(QDir(folder).filePath(QString("empty-%1.png").arg(name)));
            stage.openRecorded();
            stage.goTo(80);
            stage.window->linked().select({RequestId(), BlockId(PoolId(0), 40), {}});
            QTest::qWait(50);
            stage.window->grab().save(QDir(folder).filePath(QString("%1.png").arg(name)));
        }
    }
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::WindowTest)
#include "window_test.moc"

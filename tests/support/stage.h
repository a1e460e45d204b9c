// SPDX-License-Identifier: Apache-2.0
// A window over a scripted source, on the light theme. A wait that takes too long fails the test.
#pragma once

#include "tests/support/scripted_launcher.h"
#include "ui/main_window.h"

#include <QTest>

#include <memory>

namespace kvatlas::test {

struct Stage {
    ui::Appearance appearance;
    ScriptedLauncher launcher;
    std::unique_ptr<ui::MainWindow> window;

    explicit Stage(QSize size = {1600, 1000}) {
        launcher.options.run.steps = 120;
        launcher.options.run.poolBlocks = 182;
        appearance.choose(ui::ThemeChoice::Light);
        window = std::make_unique<ui::MainWindow>(appearance, launcher);
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
    void beginLive(int steps) { // and stay there; it does not end by itself
        launcher.options.paused = true;
        window->run();
        settle();
        window->lanes().stepBy(steps);
        QVERIFY(QTest::qWaitFor([this] { return !window->lanes().lane(0)->latest()->requests.empty(); }, 10'000));
    }
    void runLive() {
        window->run();
        settle();
        QVERIFY(window->lanes().lane(0));
        QVERIFY(QTest::qWaitFor([this] { return window->lanes().lane(0)->latest()->ended; }, 20'000));
        QVERIFY(QTest::qWaitFor([this] { return window->lanes().lane(0)->history()->steps.size() == 120; }, 10'000));
    }
};

} // namespace kvatlas::test

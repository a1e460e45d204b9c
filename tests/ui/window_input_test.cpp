// SPDX-License-Identifier: Apache-2.0
// The window under pointer, keys and screen reader. Offscreen.
#include "tests/support/stage.h"

#include "ui/panels/inspector_panel.h"
#include "ui/panels/key_sheet.h"
#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/panels/tool_strip.h"
#include "ui/views/block_table_view.h"
#include "ui/views/hover_tip.h"
#include "ui/views/memory_map_view.h"
#include "ui/views/timeline_view.h"

#include <QAccessible>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <QWheelEvent>

#include <set>

namespace kvatlas::ui {

using test::Stage;

class WindowInputTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
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
        // A click on its request's row, which is the current one already, shows the request.
        auto* table = stage.window->requests().findChild<QTableView*>();
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->currentIndex()).center());
        QCOMPARE(content.title, QStringLiteral("Request %1").arg(owner.value));
        QTest::mouseClick(map.viewport(), Qt::LeftButton, {}, map.layout().rectOf(*used).center());
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

    void cancellingLeavesTheFocusInTheList() {
        Stage stage;
        stage.beginLive(4);
        Lane* lane = stage.window->lanes().lane(0);
        stage.window->linked().select({lane->latest()->requests.front().request, {}, {}});
        auto* cancel = stage.window->requests().findChild<QPushButton*>();
        QTRY_VERIFY(cancel->isEnabled());
        cancel->setFocus();
        stage.window->lanes().setPlaying(true); // it ends by itself
        QTRY_VERIFY(!cancel->isEnabled());
        QCOMPARE(stage.window->focusWidget(), stage.window->requests().findChild<QTableView*>());
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
            QVERIFY(reached.contains(stage.window->memoryMap().focusTarget()));
            QVERIFY(reached.contains(stage.window->blockTables().focusTarget()));
            QVERIFY(reached.contains(&stage.window->timeline()));
            QVERIFY(reached.contains(stage.window->toolbar().playButton()));
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
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::WindowInputTest)
#include "window_input_test.moc"

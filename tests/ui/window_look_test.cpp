// SPDX-License-Identifier: Apache-2.0
// How the window looks: fonts, colours, sizes, texts that fit, pictures it exports. Offscreen.
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

#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTabBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QToolButton>

#include <set>

namespace kvatlas::ui {

using test::Stage;

namespace {

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

class WindowLookTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
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

QTEST_MAIN(kvatlas::ui::WindowLookTest)
#include "window_look_test.moc"

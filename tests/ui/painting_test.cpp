// SPDX-License-Identifier: Apache-2.0
// The painters on known snapshots: where cells lie, which colour each state takes, what zoom and scrolling show.
#include "core/state/cache_state.h"
#include "tests/support/synthetic_run.h"
#include "ui/theme/theme.h"
#include "ui/views/block_table_painter.h"
#include "ui/views/memory_map_layout.h"
#include "ui/views/memory_map_painter.h"
#include "ui/views/picture.h"
#include "ui/views/request_bars.h"
#include "ui/views/timeline_scale.h"

#include <QImage>
#include <QTest>

namespace kvatlas::ui {

namespace {

using state::BlockKind;
using state::BlockState;

// A pool of `blocks` blocks, all free but those that `change` sets.
std::shared_ptr<state::Snapshot> poolOf(std::uint32_t blocks,
                                        const std::function<void(std::uint32_t, BlockState&)>& change) {
    auto snapshot = std::make_shared<state::Snapshot>();
    state::PoolState pool;
    pool.shape = {PoolId(0), trace::Tier::Device, "f16", "f16", blocks, 16, 368'640};
    for (std::uint32_t first = 0; first < blocks; first += state::kChunkBlocks) {
        auto chunk = std::make_shared<state::BlockChunk>();
        for (std::uint32_t i = 0; i < state::kChunkBlocks && first + i < blocks; ++i)
            change(first + i, (*chunk)[i]);
        pool.chunks.push_back(chunk);
    }
    snapshot->pools.push_back(pool);
    return snapshot;
}

BlockState active(std::uint64_t request, std::uint32_t used = 16, std::uint32_t references = 1) {
    BlockState block;
    block.kind = BlockKind::Active;
    block.references = references;
    block.usedSlots = used;
    block.request = RequestId(request);
    block.owner = SequenceId(static_cast<std::uint32_t>(request));
    return block;
}

BlockState of(BlockKind kind, std::uint64_t request = 0) {
    BlockState block;
    block.kind = kind;
    block.request = RequestId(request);
    return block;
}

struct Painted {
    QImage image;
    MapLayout layout;
    QColor centre(std::uint32_t block, int scroll = 0) const {
        const QRect cell = layout.rectOf(BlockId(PoolId(0), block));
        return image.pixelColor(cell.center().x(), cell.y() + 3 - scroll);
    }
};

Painted paintMap(const std::shared_ptr<state::Snapshot>& snapshot, QSize size, int cell, MapScene scene = {},
                 int scroll = 0, double ratio = 1, const Theme& theme = loadTheme(ThemeName::Light)) {
    Painted painted;
    painted.image = QImage(size * ratio, QImage::Format_RGB32);
    painted.image.setDevicePixelRatio(ratio);
    painted.image.fill(theme.panel);
    painted.layout = MapLayout::make(snapshot->pools, painted.image.size(), ratio, cell);
    scene.theme = &theme;
    scene.snapshot = snapshot;
    MemoryMapPainter painter;
    QPainter qpainter(&painted.image);
    DeviceSpace space(qpainter);
    const QRect view(QPoint(), painted.image.size());
    painter.paint(qpainter, view, view, scroll, painted.layout, scene, false);
    return painted;
}

int near(const QColor& a, const QColor& b) {
    return std::max({std::abs(a.red() - b.red()), std::abs(a.green() - b.green()), std::abs(a.blue() - b.blue())});
}

} // namespace

class PaintingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void frameOfASelectedBarKeepsOffItsNeighbours() {
        const Theme theme = loadTheme(ThemeName::Light);
        std::vector<trace::RequestRow> rows(8);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i].request = RequestId(i + 1);
            rows[i].arrivedStep = 0;
            rows[i].admittedStep = rows[i].firstTokenStep = 1;
        }
        TimelineScale scale;
        scale.lastStep = 40;
        scale.width = 600;
        const query::RequestBars bars = query::requestBars(rows, scale.axis(), 30, {});
        const auto painted = [&](RequestId selected) {
            QImage image(600, 82, QImage::Format_RGB32);
            image.fill(theme.panel);
            QPainter painter(&image);
            RequestBarPainter::paint(painter, image.rect(), theme, bars, {selected, {}, {}});
            return image;
        };
        const QImage image = painted(RequestId(5));
        int top = -1, bottom = -1;
        const int x = 300;
        for (int y = 0; y < image.height(); ++y)
            if (image.pixelColor(x, y) == theme.select) {
                top = top < 0 ? y : top;
                bottom = y;
            }
        constexpr int kBar = 8; // of eight lanes in 82 px; a pixel on each side, of a gap of one or two
        QVERIFY(top > 0);
        QCOMPARE(bottom - top + 1, kBar + 2);
    }

    void fitShowsTheWholeDefaultPool() {
        const auto snapshot = poolOf(182, [](auto, auto&) {});
        const MapLayout layout = MapLayout::make(snapshot->pools, {536, 297}, 1, 0);
        QVERIFY(layout.contentHeight() <= 297);
        QVERIFY2(layout.cellLogical() >= 20 && layout.cellLogical() <= 24,
                 qPrintable(QString::number(layout.cellLogical())));
        QCOMPARE(layout.level(), 3);
        QVERIFY(layout.rectOf(BlockId(PoolId(0), 181)).right() <= 536);
        QVERIFY(layout.rectOf(BlockId(PoolId(0), 182)).isNull());
    }

    void everyCellIsFoundAgainUnderItsOwnCentre() {
        const auto snapshot = poolOf(1000, [](auto, auto&) {});
        for (int cell : {2, 5, 6, 15, 16, 33, 48, 120})
            for (double ratio : {1.0, 1.5, 2.0}) {
                const MapLayout layout = MapLayout::make(snapshot->pools, {900, 600}, ratio, cell);
                for (std::uint32_t block : {0u, 1u, 99u, 500u, 999u}) {
                    const BlockId id(PoolId(0), block);
                    QCOMPARE(layout.blockAt(layout.rectOf(id).center()), std::optional(id));
                }
            }
    }

    void levelsChangeAtTheStatedSizes() {
        const auto snapshot = poolOf(64, [](auto, auto&) {});
        for (const auto& [cell, level] : {std::pair{5, 1}, {6, 2}, {15, 2}, {16, 3}, {47, 3}, {48, 4}})
            QCOMPARE(MapLayout::make(snapshot->pools, {900, 600}, 1, cell).level(), level);
    }

    void poolsAreDrawnInEqualAreaForEqualBytes() {
        auto snapshot = poolOf(64, [](auto, auto&) {});
        state::PoolState quarter = snapshot->pools.front();
        quarter.shape.pool = PoolId(1);
        quarter.shape.blockBytes /= 4;
        snapshot->pools.push_back(quarter);
        const MapLayout layout = MapLayout::make(snapshot->pools, {900, 600}, 1, 24);
        QCOMPARE(layout.rectOf(BlockId(PoolId(0), 0)).width(), 24);
        QCOMPARE(layout.rectOf(BlockId(PoolId(1), 0)).width(), 12);
        QCOMPARE(layout.blockAt(layout.rectOf(BlockId(PoolId(1), 5)).center()), std::optional(BlockId(PoolId(1), 5)));
    }

    void statesTakeTheirColours() {
        for (ThemeName name : kThemeNames) {
            const Theme theme = loadTheme(name);
            const auto snapshot = poolOf(6, [](std::uint32_t i, BlockState& block) {
                const BlockState kinds[] = {active(3),           active(3, 16, 4),           of(BlockKind::Cached),
                                            of(BlockKind::Free), of(BlockKind::Reserved, 3), active(3, 5)};
                block = kinds[i];
            });
            const Painted map = paintMap(snapshot, {400, 100}, 20, {}, 0, 1, theme);
            QCOMPARE(map.centre(0).name(), theme.seq[2].name());
            QCOMPARE(map.centre(1).name(), theme.shared().name());
            QCOMPARE(map.centre(2).name(), mixed(theme.state.cached, theme.well, 0.15).name());
            QCOMPARE(map.centre(3).name(), theme.panel.name());
            QCOMPARE(map.centre(5).name(), mixed(theme.seq[2], theme.well, 0.34).name());
            // A hatch is both: the hue and the ground.
            const QRect reserved = map.layout.rectOf(BlockId(PoolId(0), 4)).adjusted(2, 2, -2, -2);
            int ground = 0, ink = 0;
            for (int y = reserved.top(); y <= reserved.bottom(); ++y)
                for (int x = reserved.left(); x <= reserved.right(); ++x) {
                    ground += near(map.image.pixelColor(x, y), theme.well) < 8;
                    ink += near(map.image.pixelColor(x, y), theme.well) > 40;
                }
            QVERIFY(ground > 20 && ink > 20);
            // Outlines: the edge of a free cell is its line, its inside the panel.
            const QRect free = map.layout.rectOf(BlockId(PoolId(0), 3));
            QCOMPARE(map.image.pixelColor(free.topLeft()).name(), theme.state.freeLine.name());
        }
    }

    void levelBarOfAPartFilledBlockIsAsWideAsItsSlots() {
        const Theme theme = loadTheme(ThemeName::Light);
        const auto snapshot = poolOf(1, [](auto, BlockState& block) { block = active(1, 4); });
        const Painted map = paintMap(snapshot, {200, 100}, 34);
        const QRect cell = map.layout.rectOf(BlockId(PoolId(0), 0));
        const int y = cell.bottom() - 2;
        int filled = 0;
        for (int x = cell.left() + 1; x < cell.right(); ++x)
            filled += map.image.pixelColor(x, y) == theme.seq[0];
        QCOMPARE(filled, 8); // 4 of 16 slots of 32 px
    }

    void selectedRequestDimsTheOthersAndOnlyThem() {
        const Theme theme = loadTheme(ThemeName::Light);
        const auto snapshot = poolOf(2, [](std::uint32_t i, BlockState& block) { block = active(i + 1); });
        MapScene scene;
        scene.selection.request = RequestId(2);
        for (int cell : {4, 20}) {
            Painted map = paintMap(snapshot, {200, 100}, cell, scene);
            const auto at = [&](std::uint32_t block) {
                return map.image.pixelColor(map.layout.rectOf(BlockId(PoolId(0), block)).topLeft() +
                                            QPoint(cell / 2, cell > 4 ? 3 : 1));
            };
            QVERIFY(near(at(0), mixed(theme.seq[0], theme.panel, 0.30)) <= 1);
            QCOMPARE(at(1).name(), theme.seq[1].name());
            scene.isolate = false;
            map = paintMap(snapshot, {200, 100}, cell, scene);
            QCOMPARE(at(0).name(), theme.seq[0].name());
            scene.isolate = true;
        }
    }

    void overviewPaintsOneColourPerBlockWithGaps() {
        const Theme theme = loadTheme(ThemeName::Light);
        const auto snapshot = poolOf(65'536, [](std::uint32_t i, BlockState& block) {
            if (i % 3 == 0)
                block = active(i % 7 + 1);
            else if (i % 3 == 1)
                block = of(BlockKind::Cached);
        });
        const Painted map = paintMap(snapshot, {1600, 1000}, 0);
        QCOMPARE(map.layout.level(), 1);
        QVERIFY(map.layout.contentHeight() <= 1000);
        for (std::uint32_t i : {0u, 1u, 2u, 3u, 4'001u, 30'000u, 65'535u}) {
            const QRect cell = map.layout.rectOf(BlockId(PoolId(0), i));
            const QColor want = i % 3 == 0   ? theme.seq[i % 7]
                                : i % 3 == 1 ? mixed(theme.state.cached, theme.panel, 0.42)
                                             : mixed(theme.state.freeLine, theme.panel, 0.55);
            QCOMPARE(map.image.pixelColor(cell.topLeft()).name(), want.name());
            QCOMPARE(map.image.pixelColor(cell.right() + 1, cell.top()).name(), theme.panel.name()); // the gap
        }
    }

    void scrollingShowsTheSameCellsHigherUp() {
        const auto snapshot = poolOf(20'000, [](std::uint32_t i, BlockState& block) { block = active(i % 7 + 1); });
        for (int cell : {4, 12, 20}) {
            const Painted top = paintMap(snapshot, {600, 400}, cell);
            const int scroll = 5 * top.layout.bands().front().pitchY;
            const Painted moved = paintMap(snapshot, {600, 400}, cell, {}, scroll);
            const QRect seen(0, scroll + 10, 600, 200);
            if (cell == 4) {
                QCOMPARE(moved.image.copy(seen.translated(0, -scroll)), top.image.copy(seen));
            } else { // row labels move too; without the gutter
                const QRect cells = seen.adjusted(top.layout.originX(), 0, 0, 0);
                QCOMPARE(moved.image.copy(cells.translated(0, -scroll)), top.image.copy(cells));
            }
        }
    }

    void onlyChangedChunksAreCodedAgain() {
        const Theme theme = loadTheme(ThemeName::Light);
        const auto before = poolOf(2'000, [](std::uint32_t, BlockState& block) { block = active(1); });
        auto after = std::make_shared<state::Snapshot>(*before);
        auto chunk = std::make_shared<state::BlockChunk>(*after->pools[0].chunks[2]);
        (*chunk)[7] = active(2);
        after->pools[0].chunks[2] = chunk;
        MemoryMapPainter painter;
        QImage image(600, 200, QImage::Format_RGB32);
        const MapLayout layout = MapLayout::make(before->pools, image.size(), 1, 4);
        for (const auto& snapshot : {before, after}) {
            QPainter qpainter(&image);
            MapScene scene;
            scene.theme = &theme;
            scene.snapshot = snapshot;
            painter.paint(qpainter, image.rect(), image.rect(), 0, layout, scene, false);
        }
        const QRect changed = layout.rectOf(BlockId(PoolId(0), 2 * 256 + 7));
        QCOMPARE(image.pixelColor(changed.topLeft()).name(), theme.seq[1].name());
        QCOMPARE(image.pixelColor(changed.left() - 5, changed.top()).name(), theme.seq[0].name());
    }

    void outlinesAreWholeDevicePixelsAtEveryRatio() {
        const Theme theme = loadTheme(ThemeName::Light);
        for (double ratio : {1.0, 1.25, 1.5, 2.0, 3.0}) {
            const auto snapshot = poolOf(40, [](auto, auto&) {});
            const Painted map = paintMap(snapshot, {400, 200}, 20, {}, 0, ratio);
            const int hair = std::max(1, qRound(ratio));
            for (std::uint32_t i = 0; i < 40; ++i) {
                const QRect cell = map.layout.rectOf(BlockId(PoolId(0), i));
                int edge = 0;
                for (int x = cell.left() - 1; x < cell.left() + 5; ++x) {
                    const QColor colour = map.image.pixelColor(x, cell.center().y());
                    QVERIFY(colour == theme.state.freeLine || colour == theme.panel); // nothing in between
                    edge += colour == theme.state.freeLine;
                }
                QCOMPARE(edge, hair);
            }
        }
    }

    void slotsShowTheTextOfTheirTokens() {
        const Theme theme = loadTheme(ThemeName::Light);
        auto snapshot = poolOf(1, [](auto, BlockState& block) {
            block = active(1, 3);
            block.logical = 1;
        });
        state::RequestState request;
        request.request = RequestId(1);
        std::vector<TokenId> tokens(32, 5);
        tokens[17] = 42;
        request.tokens = std::make_shared<const std::vector<TokenId>>(tokens);
        snapshot->requests.push_back(request);
        std::vector<TokenId> asked;
        MapScene scene;
        scene.tokenText = [&](TokenId token) {
            asked.push_back(token);
            return QString::number(token);
        };
        paintMap(snapshot, {400, 300}, 176, scene);
        QCOMPARE(asked, (std::vector<TokenId>{5, 42, 5})); // logical block 1, slots 0 to 2: positions 16, 17, 18
        asked.clear();
        paintMap(snapshot, {400, 300}, 64, scene);
        QVERIFY(asked.empty()); // below 96 px: squares only
    }

    void ageAndReferencesUseTheSequentialMap() {
        auto snapshot = poolOf(2, [](std::uint32_t i, BlockState& block) {
            block = active(1, 16, i == 0 ? 1 : 9);
            block.writtenStep = i == 0 ? 100 : 1;
        });
        snapshot->step = 100;
        for (ColourBy way : {ColourBy::Age, ColourBy::References}) {
            MapScene scene;
            scene.colourBy = way;
            const Painted map = paintMap(snapshot, {200, 100}, 20, scene);
            QVERIFY(luminance(map.centre(1)) > luminance(map.centre(0))); // bright = much
        }
    }

    void tableRowsFollowTheSequencesAndWaitersComeLast() {
        test::SyntheticOptions options;
        options.steps = 60;
        options.poolBlocks = 24;
        options.arrivalsPerStep = 0.6;
        state::CacheState folded;
        std::shared_ptr<const state::Snapshot> crowded;
        for (const trace::Event& event : test::SyntheticRun::all(options)) {
            QVERIFY(folded.apply(event));
            if (std::holds_alternative<trace::StepEnded>(event.body)) {
                const auto now = folded.snapshot();
                if (now->sequences.size() >= 2 && now->requests.size() > now->sequences.size())
                    crowded = now;
            }
        }
        QVERIFY(crowded);
        const auto rows = laneRows(*crowded, query::TableOrder::Arrival);
        QCOMPARE(rows.size(), crowded->requests.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            QCOMPARE(rows[i].table != nullptr, i < crowded->sequences.size());
            if (!rows[i].table)
                continue;
            const auto own = std::find_if(crowded->sequences.begin(), crowded->sequences.end(),
                                          [&](const auto& s) { return s.sequence == rows[i].sequence; });
            QVERIFY(own != crowded->sequences.end());
            QCOMPARE(*rows[i].table, *own->table);
            for (std::uint32_t logical = 0; logical < own->table->size(); ++logical) {
                const QRect cell = BlockTablePainter::cellRect(rows, {i, logical});
                QCOMPARE(BlockTablePainter::cellAt(rows, cell.center()), (std::optional(TableCell{i, logical})));
            }
        }
    }

    void tableCellsTakeTheHueOfTheirRequest() {
        const Theme theme = loadTheme(ThemeName::Dark);
        auto snapshot = poolOf(8, [](std::uint32_t i, BlockState& block) { block = active(i < 4 ? 1 : 2); });
        for (std::uint32_t r = 1; r <= 2; ++r) {
            state::SequenceState sequence;
            sequence.sequence = SequenceId(r);
            sequence.request = RequestId(r);
            sequence.slotsWritten = 64;
            std::vector<BlockId> table;
            for (std::uint32_t i = 0; i < 4; ++i)
                table.emplace_back(PoolId(0), (r - 1) * 4 + i);
            sequence.table = std::make_shared<const std::vector<BlockId>>(table);
            snapshot->sequences.push_back(sequence);
        }
        const auto rows = laneRows(*snapshot, query::TableOrder::Arrival);
        QImage image(400, 120, QImage::Format_RGB32);
        image.fill(theme.panel);
        QPainter painter(&image);
        TableScene scene;
        scene.theme = &theme;
        scene.snapshot = snapshot;
        scene.rows = &rows;
        BlockTablePainter tables;
        tables.paint(painter, image.rect(), 1, {}, scene, false);
        for (std::size_t row = 0; row < 2; ++row)
            for (std::uint32_t logical = 0; logical < 4; ++logical) {
                const QRect cell = BlockTablePainter::cellRect(rows, {row, logical});
                QCOMPARE(image.pixelColor(cell.left() + 4, cell.top() + 2).name(), theme.seq[row].name());
            }
        QCOMPARE(image.pixelColor(BlockTablePainter::cellRect(rows, {0, 3}).right() + 6, 30).name(),
                 theme.panel.name());
    }

    void barsShowWaitingPrefillAndDecode() {
        const Theme theme = loadTheme(ThemeName::Light);
        trace::RequestRow row;
        row.request = RequestId(1);
        row.arrivedStep = 10;
        row.admittedStep = 30;
        row.firstTokenStep = 50;
        row.finishedStep = 90;
        row.finishReason = trace::FinishReason::MaxTokens;
        const TimelineScale scale{100, 1128};
        const query::RequestBars bars = query::requestBars(std::vector{row}, scale.axis(), 99);
        QImage image(1128, 60, QImage::Format_RGB32);
        image.fill(theme.panel);
        QPainter painter(&image);
        RequestBarPainter::paint(painter, image.rect(), theme, bars, {});
        const auto at = [&](double step, int y) {
            return image.pixelColor(static_cast<int>(scale.xOf(step)), y).name();
        };
        QCOMPARE(at(20, 16), theme.seq[0].name()); // the waiting line in the middle
        QCOMPARE(at(20, 8), theme.panel.name());
        QCOMPARE(at(40, 8), theme.seq[0].name());
        QCOMPARE(at(80, 8), mixed(theme.seq[0], theme.panel, 0.30).name());
        QCOMPARE(at(95, 8), theme.panel.name());
        QCOMPARE(RequestBarPainter::barAt({static_cast<int>(scale.xOf(60)), 16}, image.rect(), bars),
                 std::optional(RequestId(1)));
        QVERIFY(!RequestBarPainter::barAt({static_cast<int>(scale.xOf(98)), 16}, image.rect(), bars));
    }

    void stepAxisKeepsItsMarginsAndGrowsInFewJumps() {
        const TimelineScale scale{64, 1128};
        QCOMPARE(scale.xOf(-1), 112.0);
        QCOMPARE(scale.xOf(64), 1112.0);
        QCOMPARE(scale.stepAt(112 + 500), Step(32));
        QCOMPARE(scale.stepAt(-5), Step(0));
        QCOMPARE(TimelineScale::endFor(10, true), Step(64));
        QCOMPARE(TimelineScale::endFor(65, true), Step(96));
        QCOMPARE(TimelineScale::endFor(100, true), Step(128));
        QCOMPARE(TimelineScale::endFor(896, false), Step(896));
    }

    void legendLeavesOutWhatDoesNotFit() {
        const Theme theme = loadTheme(ThemeName::Light);
        QImage image(400, 24, QImage::Format_RGB32);
        QPainter painter(&image);
        std::vector<LegendEntry> entries(
            10, {LegendEntry::Mark::Cell, {CellShape::Solid, theme.seq[0], 1, {}, 0, false}, "active", "42"});
        const int all = paintLegend(painter, QRect(0, 0, 4000, 24), theme, entries);
        const int some = paintLegend(painter, QRect(0, 0, 400, 24), theme, entries);
        QVERIFY(all > 600);
        QVERIFY(some <= 414 && some > 200);
    }
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::PaintingTest)
#include "painting_test.moc"

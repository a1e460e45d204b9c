// SPDX-License-Identifier: Apache-2.0
// Median times of painting, as JSON on stdout. ui_bench [--repeat N]; run it with QT_QPA_PLATFORM=offscreen.
//   memory_map_ms         65,536 blocks, all of them seen, 1600x1000, with every block's code renewed
//   memory_map_same_ms    the same, nothing changed since the last paint
//   memory_map_labels_ms  182 blocks with request numbers
//   window_ms             the whole window, 1600x1000, in the middle of a synthetic run
#include "core/state/cache_state.h"
#include "tests/support/scripted_launcher.h"
#include "ui/main_window.h"
#include "ui/views/memory_map_painter.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QImage>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

using namespace kvatlas;

std::shared_ptr<const state::Snapshot> poolOf(std::uint32_t blocks, std::uint32_t turn) {
    auto snapshot = std::make_shared<state::Snapshot>();
    state::PoolState pool;
    pool.shape = {PoolId(0), trace::Tier::Device, "f16", "f16", blocks, 16, 368'640};
    for (std::uint32_t first = 0; first < blocks; first += state::kChunkBlocks) {
        auto chunk = std::make_shared<state::BlockChunk>();
        for (std::uint32_t i = 0; i < state::kChunkBlocks; ++i) {
            state::BlockState& block = (*chunk)[i];
            const std::uint32_t pick = (first + i) * 2'654'435'761u + turn;
            block.kind = static_cast<state::BlockKind>(pick >> 28 & 3);
            block.references = block.kind == state::BlockKind::Active ? 1 + (pick >> 27 & 1) : 0;
            block.usedSlots = pick >> 20 & 15;
            block.request = RequestId(1 + (first + i) / 40);
        }
        pool.chunks.push_back(chunk);
    }
    snapshot->pools.push_back(pool);
    return snapshot;
}

template <class Work> double medianMs(int repeat, Work work) {
    std::vector<double> times;
    for (int i = 0; i < repeat; ++i) {
        QElapsedTimer timer;
        timer.start();
        work(i);
        times.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
}

double paintMap(int repeat, std::uint32_t blocks, bool renewed) {
    const ui::Theme theme = ui::loadTheme(ui::ThemeName::Dark);
    const std::shared_ptr<const state::Snapshot> turns[] = {poolOf(blocks, 0), poolOf(blocks, 0x9000'0000)};
    QImage image(1600, 1000, QImage::Format_RGB32);
    const auto layout = ui::MapLayout::make(turns[0]->pools, image.size(), 1, 0);
    ui::MemoryMapPainter painter;
    return medianMs(repeat, [&](int i) {
        ui::MapScene scene;
        scene.theme = &theme;
        scene.snapshot = turns[renewed ? i % 2 : 0];
        QPainter target(&image);
        target.fillRect(image.rect(), theme.panel);
        painter.paint(target, image.rect(), image.rect(), 0, layout, scene, false);
    });
}

double paintWindow(int repeat) {
    ui::Appearance appearance;
    test::ScriptedLauncher launcher;
    ui::MainWindow window(appearance, launcher);
    window.resize(1600, 1000);
    window.show();
    const auto settle = [&](auto done) {
        while (!done())
            QCoreApplication::processEvents(QEventLoop::AllEvents, 10);
    };
    settle([&] { return !window.busy(); });
    window.openSession(QStringLiteral("synthetic"));
    settle([&] { return !window.busy() && window.lanes().lane(0)->history()->lastStep > 0; });
    window.lanes().goTo(100);
    settle([&] { return window.lanes().lane(0)->shown()->step == 100; });
    QImage image(window.size(), QImage::Format_RGB32);
    const double ms = medianMs(repeat, [&](int) {
        QPainter painter(&image);
        window.render(&painter);
    });
    window.close();
    return ms;
}

} // namespace

int main(int argc, char** argv) {
    const QApplication application(argc, argv);
    int repeat = 25;
    for (int i = 1; i + 1 < argc; ++i)
        if (qstrcmp(argv[i], "--repeat") == 0)
            repeat = std::max(1, QByteArray(argv[i + 1]).toInt());
    std::printf(
        "{\"repeat\": %d, \"memory_map_ms\": %.3f, \"memory_map_same_ms\": %.3f, \"memory_map_labels_ms\": %.3f, "
        "\"window_ms\": %.3f}\n",
        repeat, paintMap(repeat, 65'536, true), paintMap(repeat, 65'536, false), paintMap(repeat, 182, true),
        paintWindow(repeat));
    return 0;
}

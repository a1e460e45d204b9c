// SPDX-License-Identifier: Apache-2.0
#include "app/window/headless_export.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>

namespace kvatlas::app {

namespace {

constexpr qint64 kPatienceMs = 60'000;
constexpr qint64 kSettleMs = 250;

template <class Condition> bool waitFor(Condition condition) {
    QElapsedTimer timer;
    timer.start();
    while (!condition()) {
        if (timer.elapsed() > kPatienceMs)
            return false;
        QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
        QThread::msleep(1);
    }
    return true;
}

} // namespace

Result<void> exportHeadless(ui::MainWindow& window, const WindowOptions& options) {
    const QString& file = options.files.front();
    const auto silent = [&]() -> Result<void> {
        return makeError(ErrorKind::Failed,
                         "{} did not answer within a minute; check it with kvatlas-cli session check.",
                         file.toStdString());
    };
    if (!waitFor([&] { return !window.busy(); })) // models and presets are looked for first
        return silent();
    window.openSession(file);
    if (!waitFor([&] { return !window.busy(); }))
        return silent();
    ui::Lane* lane = window.lanes().lane(0);
    if (!lane)
        return makeError(ErrorKind::Refused, "{}", window.messages().sentence().toStdString());
    if (!waitFor([&] { return lane->history()->lastStep > 0 || !lane->history()->steps.empty(); }))
        return silent();
    const Step last = lane->history()->lastStep, step = options.step.value_or(last);
    if (step > last)
        return makeError(ErrorKind::Usage, "{} has steps 0 to {}; --step {} is beyond them.", file.toStdString(), last,
                         step);
    window.lanes().goTo(step);
    if (!waitFor([&] { return lane->shown()->step == step && lane->shown()->stepEnded; }))
        return silent();
    if (QWidget* focus = window.focusWidget())
        focus->clearFocus(); // no ring in a picture
    QElapsedTimer settling;  // lists and numbers follow the cursor ten times a second
    settling.start();
    waitFor([&] { return settling.elapsed() > kSettleMs; });
    return window.exportView(options.exportView, options.out, options.size);
}

} // namespace kvatlas::app

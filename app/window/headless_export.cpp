// SPDX-License-Identifier: Apache-2.0
#include "app/window/headless_export.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>

#include <cstdio>
#include <string>

namespace kvatlas::app {

namespace {

constexpr qint64 kPatienceMs = 60'000;
constexpr qint64 kSettleMs = 250;
constexpr qint64 kGraceMs = 1'000; // for a step that is whole although another part of the file is not

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
    const QSize size = options.size.value_or(QSize(1600, 1000));
    window.resize(size);
    const auto silent = [&]() -> Result<void> {
        return makeError(ErrorKind::Failed,
                         "{} did not answer within a minute; check it with kvatlas-cli session check.",
                         file.toStdString());
    };
    if (!waitFor([&] { return !window.busy(); })) // models and presets are looked for first
        return silent();
    bool answered = false;
    std::string problem; // what of the file could not be read; the step may be whole nevertheless
    QElapsedTimer sinceProblem;
    const QObject receiver;
    QObject::connect(&window.lanes(), &ui::LaneSet::historyChanged, &receiver, [&] { answered = true; });
    QObject::connect(&window.lanes(), &ui::LaneSet::problemFound, &receiver, [&](const QString& sentence) {
        problem = sentence.toStdString();
        sinceProblem.start();
    });
    window.openSession(file);
    if (!waitFor([&] { return !window.busy(); }))
        return silent();
    ui::Lane* lane = window.lanes().lane(0);
    if (!lane)
        return makeError(ErrorKind::Refused, "{}", window.messages().sentence().toStdString());
    if (!waitFor([&] { return answered; }))
        return silent();
    if (lane->history()->steps.empty())
        return makeError(ErrorKind::Refused,
                         "{} holds no step: its run ended before the first one, so there is no picture.",
                         file.toStdString());
    const Step last = lane->history()->lastStep, step = options.step.value_or(last);
    if (step > last)
        return makeError(ErrorKind::Usage, "{} has steps 0 to {}; --step {} is beyond them.", file.toStdString(), last,
                         step);
    window.lanes().goTo(step);
    const auto reached = [&] { return lane->shown()->step == step && lane->shown()->stepEnded; };
    const auto given = [&] { return !problem.empty() && sinceProblem.elapsed() > kGraceMs; };
    if (!waitFor([&] { return reached() || given(); }))
        return silent();
    if (!reached())
        return makeError(ErrorKind::Refused, "{}: step {} cannot be painted. {}", file.toStdString(), step, problem);
    if (!problem.empty())
        std::fprintf(stderr, "kvatlas: %s: %s\n", file.toStdString().c_str(), problem.c_str());
    if (QWidget* focus = window.focusWidget())
        focus->clearFocus(); // no ring in a picture
    QElapsedTimer settling;  // lists and numbers follow the cursor ten times a second
    settling.start();
    waitFor([&] { return settling.elapsed() > kSettleMs; });
    return window.exportView(options.exportView, options.out, size);
}

} // namespace kvatlas::app

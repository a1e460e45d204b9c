// SPDX-License-Identifier: Apache-2.0
// kvatlas: the window, and pictures without one. Exit status as the command line's (README, "Exit status").
#include "app/exit_status.h"
#include "app/window/headless_export.h"
#include "app/window/options.h"
#include "app/window/program_launcher.h"
#include "core/base/process_guards.h"
#include "ui/main_window.h"
#include "ui/panels/setup_panel.h"

#include <QApplication>
#include <QSocketNotifier>

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace kvatlas;

int failed(const Error& error) {
    std::fprintf(stderr, "kvatlas: %s\n", error.message.c_str());
    return app::exitStatusOf(error.kind);
}

int signalPipe[2] = {-1, -1};

extern "C" void writeSignal(int number) {
    const auto byte = static_cast<char>(number);
    [[maybe_unused]] const ssize_t written = write(signalPipe[1], &byte, 1);
}

// SIGINT and SIGTERM close the window as a user would, so that the recording is finished.
void closeOnSignals(ui::MainWindow& window) {
    if (pipe2(signalPipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    auto* notifier = new QSocketNotifier(signalPipe[0], QSocketNotifier::Read, &window);
    QObject::connect(notifier, &QSocketNotifier::activated, &window, [&window] {
        char number = 0;
        if (read(signalPipe[0], &number, 1) != 1)
            return;
        window.close();
        QCoreApplication::exit(128 + number);
    });
    struct sigaction action {};
    action.sa_handler = writeSignal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

// What the command line asks for, once models and presets are known.
void obey(ui::MainWindow& window, const app::WindowOptions& options) {
    if (!options.model.isEmpty())
        window.setup().chooseModel(options.model);
    if (!options.strategy.isEmpty() && !window.setup().chooseStrategy(options.strategy))
        window.messages().tell(ui::MessageBar::Kind::Problem,
                               QStringLiteral("There is no strategy “%1”; choose one in Setup.").arg(options.strategy));
    if (!options.scenario.isEmpty() && !window.setup().chooseScenario(options.scenario))
        window.messages().tell(ui::MessageBar::Kind::Problem,
                               QStringLiteral("There is no scenario “%1”; choose one in Setup.").arg(options.scenario));
    for (const QString& file : options.files)
        window.openFile(file);
    if (options.run)
        window.run();
}

} // namespace

int main(int argc, char** argv) {
    guardFileSignals();
    guardStandardFiles();
    QStringList arguments;
    for (int i = 0; i < argc; ++i)
        arguments << QString::fromLocal8Bit(argv[i]);
    const auto options = app::parseOptions(arguments);
    if (!options)
        return failed(options.error());
    if (!options->message.isEmpty()) {
        std::fputs(options->message.toLocal8Bit().constData(), stdout);
        return 0;
    }
    if (!options->exportView.isEmpty() && !qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    const QApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("kvatlas"));
    QApplication::setApplicationDisplayName(QStringLiteral("KVAtlas"));
    QApplication::setDesktopFileName(QStringLiteral("org.kvatlas.KVAtlas"));
    ui::Appearance appearance;
    if (options->theme)
        appearance.choose(*options->theme);
    app::ProgramLauncher launcher;
    ui::MainWindow window(appearance, launcher);
    window.resize(options->size);
    if (!options->exportView.isEmpty()) {
        window.show();
        const auto done = app::exportHeadless(window, *options);
        window.close();
        return done ? 0 : failed(done.error());
    }
    closeOnSignals(window);
    QObject::connect(
        &window, &ui::MainWindow::workFinished, &window, [&] { obey(window, *options); }, Qt::SingleShotConnection);
    window.show();
    return QApplication::exec();
}

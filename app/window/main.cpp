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
#include <QFile>
#include <QSocketNotifier>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace {

using kvatlas::Error;
using kvatlas::guardFileSignals;
using kvatlas::guardStandardFiles;
namespace app = kvatlas::app;
namespace ui = kvatlas::ui;

int failed(const Error& error) {
    std::fprintf(stderr, "kvatlas: %s\n", error.message.c_str());
    return app::exitStatusOf(error.kind);
}

QtMessageHandler handleOthers = nullptr;

// Qt aborts, with advice about reinstalling, where there is no display that answers.
void endOnFatal(QtMsgType type, const QMessageLogContext& context, const QString& message) {
    if (type != QtFatalMsg)
        return handleOthers(type, context, message);
    const bool display = message.contains(QLatin1String("platform plugin"));
    std::fprintf(stderr, "kvatlas: %s\n",
                 display ? "The window finds no display that answers (DISPLAY, WAYLAND_DISPLAY); without one use "
                           "kvatlas --export, or kvatlas-cli."
                         : message.toLocal8Bit().constData());
    std::_Exit(app::kExitFailed);
}

int signalPipe[2] = {-1, -1};

extern "C" void writeSignal(int number) {
    const auto byte = static_cast<char>(number);
    [[maybe_unused]] const ssize_t written = write(signalPipe[1], &byte, 1);
}

// SIGHUP, SIGINT and SIGTERM close the window as a user would, so that the recording is finished.
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
    for (const int number : {SIGHUP, SIGINT, SIGTERM})
        sigaction(number, &action, nullptr);
}

// In the window, and on the terminal that it was started from.
void tell(ui::MainWindow& window, const QString& sentence) {
    window.messages().tell(ui::MessageBar::Kind::Problem, sentence);
    std::fprintf(stderr, "kvatlas: %s\n", sentence.toStdString().c_str());
}

// What the command line asks for, once models and presets are known.
void obey(ui::MainWindow& window, const app::WindowOptions& options) {
    if (!options.model.isEmpty())
        window.setup().chooseModel(options.model);
    if (!options.strategy.isEmpty() && !window.setup().chooseStrategy(options.strategy))
        return tell(window, QStringLiteral("There is no strategy “%1”; choose one in Setup.").arg(options.strategy));
    if (!options.scenario.isEmpty() && !window.setup().chooseScenario(options.scenario))
        return tell(window, QStringLiteral("There is no scenario “%1”; choose one in Setup.").arg(options.scenario));
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
    handleOthers = qInstallMessageHandler(endOnFatal);
    const QApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("kvatlas"));
    QApplication::setApplicationDisplayName(QStringLiteral("KVAtlas"));
    QApplication::setDesktopFileName(QStringLiteral("org.kvatlas.KVAtlas"));
    ui::Appearance appearance;
    if (const auto theme = options->theme)
        appearance.choose(*theme);
    app::ProgramLauncher launcher;
    const auto isFile = [](const QString& name) {
        return name.endsWith(QLatin1String(".json")) || QFile::exists(name);
    };
    if (isFile(options->scenario))
        if (const auto added = launcher.addScenario(options->scenario.toStdString()); !added)
            return failed(added.error());
    if (isFile(options->strategy))
        if (const auto added = launcher.addStrategy(options->strategy.toStdString()); !added)
            return failed(added.error());
    ui::MainWindow window(appearance, launcher);
    if (const auto size = options->size)
        window.resize(*size);
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

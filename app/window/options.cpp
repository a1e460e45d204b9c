// SPDX-License-Identifier: Apache-2.0
#include "app/window/options.h"

#include "app/version.h"
#include "ui/main_window.h"

#include <QCommandLineParser>

#include <algorithm>
#include <limits>

namespace kvatlas::app {

namespace {

constexpr int kLeastWidth = 200, kLeastHeight = 150, kMostPixels = 16384;

std::optional<ui::ThemeChoice> themeNamed(const QString& name) {
    if (name == QLatin1String("system"))
        return ui::ThemeChoice::System;
    if (name == QLatin1String("light"))
        return ui::ThemeChoice::Light;
    if (name == QLatin1String("dark"))
        return ui::ThemeChoice::Dark;
    if (name == QLatin1String("contrast"))
        return ui::ThemeChoice::Contrast;
    return {};
}

std::optional<QSize> sizeNamed(const QString& text) {
    const QStringList parts = text.split(QLatin1Char('x'));
    bool wide = false, high = false;
    if (parts.size() != 2)
        return {};
    const QSize size(parts[0].toInt(&wide), parts[1].toInt(&high));
    if (!wide || !high || size.width() < kLeastWidth || size.height() < kLeastHeight || size.width() > kMostPixels ||
        size.height() > kMostPixels)
        return {};
    return size;
}

} // namespace

Result<WindowOptions> parseOptions(const QStringList& arguments) {
    const QString views = ui::MainWindow::exportNames().join(QStringLiteral(", "));
    QCommandLineParser parser;
    parser.setApplicationDescription(QStringLiteral(
        "Shows an LLM's KV-cache while it works, live or from a recorded session.\n\n"
        "  kvatlas                                  the window, with the default model where there is one\n"
        "  kvatlas run.kvatlas                      replays a session\n"
        "  kvatlas --export memory-map --step 80 --out map.svg run.kvatlas    a picture, without a display"));
    const QCommandLineOption help(QStringList{"h", "help"}, "Shows this."), version("version", "Shows the version."),
        model("model", "Model file (.gguf).", "file"),
        scenario("scenario", "Scenario: the name of a shipped one, or a file.", "name"),
        strategy("strategy", "Strategy: the name of a preset, or a file.", "name"),
        theme("theme", "system, light, dark or contrast.", "name"),
        size("size",
             "Of the window (at least 1024x700) or of the picture of a view, which as PNG has two pixels for each.",
             "WxH"),
        run("run", "Starts the scenario at once."),
        picture("export", "Writes a picture and leaves: " + views + ".", "view"),
        step("step", "Step that the picture shows.", "n"), out("out", "File of the picture, .png or .svg.", "file");
    parser.addOptions({help, version, model, scenario, strategy, theme, size, run, picture, step, out});
    parser.addPositionalArgument("files", "A session (.kvatlas), a model (.gguf).", "[FILE]...");
    WindowOptions options;
    if (!parser.parse(arguments))
        return makeError(ErrorKind::Usage, "{} See kvatlas --help.", parser.errorText().toStdString());
    if (parser.isSet(help))
        options.message = parser.helpText().replace(QStringLiteral("<executable_name>"), QStringLiteral("kvatlas"));
    if (parser.isSet(version))
        options.message = QString::fromStdString(versionLine("kvatlas")) + QLatin1Char('\n');
    options.files = parser.positionalArguments();
    const auto models = std::count_if(options.files.begin(), options.files.end(), ui::MainWindow::isModelFile);
    if (models > 1 || options.files.size() - models > 1)
        return makeError(ErrorKind::Usage, "The window shows one run: give at most one session and one model.");
    options.model = parser.value(model);
    options.scenario = parser.value(scenario);
    options.strategy = parser.value(strategy);
    options.run = parser.isSet(run);
    if (parser.isSet(theme)) {
        options.theme = themeNamed(parser.value(theme));
        if (!options.theme)
            return makeError(ErrorKind::Usage, "--theme is one of system, light, dark, contrast, not {}.",
                             parser.value(theme).toStdString());
    }
    if (parser.isSet(size)) {
        const auto wanted = sizeNamed(parser.value(size));
        if (!wanted)
            return makeError(ErrorKind::Usage,
                             "--size is a width from {} and a height from {} to {} each, like 1600x1000, not {}.",
                             kLeastWidth, kLeastHeight, kMostPixels, parser.value(size).toStdString());
        options.size = *wanted;
    }
    if (parser.isSet(step)) {
        bool number = false;
        options.step = parser.value(step).toUInt(&number);
        if (!number)
            return makeError(ErrorKind::Usage, "--step is a whole number up to {}, not {}.",
                             std::numeric_limits<Step>::max(), parser.value(step).toStdString());
    }
    options.exportView = parser.value(picture);
    options.out = parser.value(out);
    if (parser.isSet(picture)) {
        if (!ui::MainWindow::exportNames().contains(options.exportView))
            return makeError(ErrorKind::Usage, "--export knows {}, not {}.", views.toStdString(),
                             options.exportView.toStdString());
        if (options.out.isEmpty() || options.files.size() != 1)
            return makeError(ErrorKind::Usage, "--export needs --out FILE and one session.");
        if (parser.isSet(model) || parser.isSet(scenario) || parser.isSet(strategy) || options.run)
            return makeError(ErrorKind::Usage,
                             "--export paints a recorded session: --model, --scenario, --strategy and "
                             "--run do not go with it.");
    }
    return options;
}

} // namespace kvatlas::app

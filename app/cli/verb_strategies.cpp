// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/resource_path.h"
#include "core/strategy/presets.h"

#include <CLI/CLI.hpp>

namespace kvatlas::app {

namespace {

struct StrategiesOptions {
    std::string validate; // a file or a preset
    bool json = false;
};

int listPresets(bool json) {
    const auto folder = resourceFolder();
    if (!folder)
        return fail(folder.error());
    const auto presets = strategy::loadPresets(*folder / "strategies");
    if (!presets)
        return fail(presets.error());
    if (json) {
        Json list = Json::array();
        for (const auto& preset : *presets)
            list.push_back({{"id", preset.id},
                            {"description", strategy::describe(preset.strategy)},
                            {"strategy", Json::parse(strategy::toJson(preset.strategy))}});
        writeJson({{"strategies", list}});
        return kExitOk;
    }
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& preset : *presets)
        rows.emplace_back(preset.id, fmt::format("{}: {}", preset.strategy.name, strategy::describe(preset.strategy)));
    writeData(listText(rows));
    return kExitOk;
}

int validate(const StrategiesOptions& options) {
    const auto folder = resourceFolder();
    const auto parsed = strategy::loadStrategy(options.validate, folder ? *folder / "strategies" : "");
    if (!parsed)
        return fail(parsed.error());
    if (options.json)
        writeJson(Json::parse(strategy::toJson(*parsed)));
    else
        writeData(fmt::format("{}\n", strategy::describe(*parsed)));
    return kExitOk;
}

} // namespace

void addStrategies(CLI::App& app, int& status) {
    auto options = std::make_shared<StrategiesOptions>();
    auto* verb = app.add_subcommand("strategies", "The presets, or what a strategy file means");
    verb->add_option("--validate", options->validate, "read this file or preset and say what it means");
    verb->add_flag("--json", options->json, "one JSON object on stdout, every key written out");
    verb->footer("Example: kvatlas-cli strategies --validate mine.json");
    verb->callback(
        [options, &status] { status = options->validate.empty() ? listPresets(options->json) : validate(*options); });
}

} // namespace kvatlas::app

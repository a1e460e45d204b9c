// SPDX-License-Identifier: Apache-2.0
#include "app/window/program_launcher.h"

#include "app/machine.h"
#include "app/model_finder.h"
#include "app/resource_path.h"
#include "app/run_composition.h"
#include "core/base/small_file.h"
#include "core/model/model.h"
#include "core/strategy/presets.h"
#include "core/workload/scenario.h"
#include "sessions/reader.h"

#include <algorithm>
#include <fmt/format.h>

namespace kvatlas::app {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxScenarioBytes = std::size_t{16} << 20;

std::vector<fs::path> filesIn(const fs::path& folder, const char* suffix) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == suffix)
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

ui::FileChoice choiceOf(const std::string& id, const std::string& nameless, const strategy::Strategy& strategy) {
    return {id, strategy.name.empty() ? nameless : strategy.name, strategy::describe(strategy),
            strategy::toJson(strategy)};
}

std::vector<ui::FileChoice> strategiesOf(const fs::path& resources) {
    std::vector<ui::FileChoice> out;
    const auto presets = strategy::loadPresets(resources / "strategies");
    if (!presets)
        return {{"paged-f16", "Paged f16", "", "{}"}};
    for (const strategy::Preset& preset : *presets)
        out.push_back(choiceOf(preset.id, preset.id, preset.strategy));
    // The plain paged cache first: it is what most runs start from.
    std::stable_partition(out.begin(), out.end(),
                          [](const ui::FileChoice& choice) { return choice.id == "paged-f16"; });
    return out;
}

Result<ui::FileChoice> readScenario(const fs::path& file) {
    const auto text = readSmallFile(file, kMaxScenarioBytes);
    if (!text)
        return tl::unexpected(text.error());
    const auto scenario = workload::parseScenario(*text, file.filename().string());
    if (!scenario)
        return tl::unexpected(scenario.error());
    const std::string stem = file.stem().string();
    return ui::FileChoice{stem, scenario->name.empty() ? stem : scenario->name, scenario->description, *text};
}

std::vector<ui::FileChoice> scenariosOf(const fs::path& resources) {
    std::vector<ui::FileChoice> out;
    for (const fs::path& file : filesIn(resources / "scenarios", ".json"))
        if (auto scenario = readScenario(file))
            out.push_back(std::move(*scenario));
    return out;
}

} // namespace

Result<void> ProgramLauncher::addScenario(const std::string& file) {
    auto scenario = readScenario(file);
    if (!scenario)
        return tl::unexpected(scenario.error());
    scenario->id = file;
    m_ownScenarios.push_back(std::move(*scenario));
    return {};
}

Result<void> ProgramLauncher::addStrategy(const std::string& file) {
    const auto strategy = strategy::loadStrategy(file, "");
    if (!strategy)
        return tl::unexpected(strategy.error());
    m_ownStrategies.push_back(choiceOf(file, fs::path(file).stem().string(), *strategy));
    return {};
}

ui::Choices ProgramLauncher::choices() {
    ui::Choices choices;
    const Machine machine = readMachine();
    choices.processors = std::max(1u, machine.cores);
    choices.defaultThreads = defaultThreads(machine, true);
    fs::path standard;
    if (const auto chosen = chooseModel({}))
        standard = *chosen;
    for (const FoundModel& model : findModels().models)
        choices.models.push_back({model.file.stem().string(), model.file, model.fileBytes});
    std::error_code error;
    std::stable_partition(choices.models.begin(), choices.models.end(), [&](const ui::ModelChoice& model) {
        return !standard.empty() && fs::equivalent(model.file, standard, error);
    });
    if (choices.models.empty())
        choices.modelHelp = "No model was found in the usual places; choose a .gguf file, or let scripts/run fetch the "
                            "default one.";
    const auto resources = resourceFolder();
    if (!resources) {
        choices.strategies.push_back({"paged-f16", "Paged f16", "", "{}"});
    } else {
        choices.strategies = strategiesOf(*resources);
        choices.scenarios = scenariosOf(*resources);
    }
    choices.strategies.insert(choices.strategies.end(), m_ownStrategies.begin(), m_ownStrategies.end());
    choices.scenarios.insert(choices.scenarios.end(), m_ownScenarios.begin(), m_ownScenarios.end());
    if (!resources)
        return choices;
    for (const fs::path& folder : {*resources / "samples", resources->parent_path() / "sessions" / "samples"})
        for (const fs::path& file : filesIn(folder, ".kvatlas")) {
            std::string name = file.stem().string();
            std::replace(name.begin(), name.end(), '-', ' ');
            choices.samples.push_back({file.stem().string(), name, "", file.string()});
        }
    return choices;
}

Result<ui::OpenedRun> ProgramLauncher::launch(const ui::RunOrder& order) {
    LiveRunOptions options;
    if (!order.scenarioJson.empty()) {
        auto scenario = workload::parseScenario(order.scenarioJson, "the scenario");
        if (!scenario)
            return tl::unexpected(scenario.error());
        options.scenario = std::move(*scenario);
    } else {
        options.scenario.name = "Own prompts";
    }
    auto strategy = strategy::parse(order.strategyJson, "the strategy");
    if (!strategy)
        return tl::unexpected(strategy.error());
    options.strategy = std::move(*strategy);
    const auto arithmetic = arithmeticNamed(order.arithmetic);
    if (!arithmetic)
        return tl::unexpected(arithmetic.error());
    options.arithmetic = *arithmetic;
    options.threads = order.threads;
    options.paused = order.paused;
    if (order.record)
        options.record = order.recording.empty() ? newSessionFile(options.scenario.name) : order.recording;
    if (!m_weights || m_model != order.model) {
        m_weights.reset(); // before the next: two models may not fit
        const auto backend = backendNamed("auto");
        if (!backend)
            return tl::unexpected(backend.error());
        auto weights = loadWeights(order.model, **backend);
        if (!weights)
            return tl::unexpected(weights.error());
        m_weights = std::move(*weights);
        m_model = order.model;
    }
    auto source = openLiveRun(m_weights, options);
    std::error_code error;
    if (!source && order.record && order.recording.empty() && fs::exists(options.record, error)) {
        options.record = newSessionFile(options.scenario.name); // another window took the name meanwhile
        source = openLiveRun(m_weights, std::move(options));
    }
    if (!source)
        return tl::unexpected(source.error());
    ui::OpenedRun run;
    run.source = std::move(*source);
    run.modelName = order.model.stem().string();
    run.paused = order.paused;
    return run;
}

Result<ui::OpenedRun> ProgramLauncher::openSession(const std::filesystem::path& file) {
    auto source = openReplay(file, true);
    if (!source)
        return tl::unexpected(source.error());
    ui::OpenedRun run;
    run.source = std::move(*source);
    run.paused = true;
    if (const auto reader = sessions::SessionReader::open(file.string()))
        run.reportText = (*reader)->info().endedCleanly
                             ? (*reader)->info().hint
                             : fmt::format("The recording of '{}' was not ended, by a crash or because it still goes "
                                           "on; it is shown as far as it was written.",
                                           file.filename().string());
    return run;
}

Result<void> ProgramLauncher::checkModel(const std::filesystem::path& file) {
    if (const auto opened = model::Model::open(file); !opened)
        return tl::unexpected(opened.error());
    return {};
}

} // namespace kvatlas::app

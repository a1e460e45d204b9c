// SPDX-License-Identifier: Apache-2.0
#include "app/backend.h"
#include "app/cli/checks.h"
#include "app/cli/interruption.h"
#include "app/cli/output.h"
#include "app/cli/run_report.h"
#include "app/cli/streamed_text.h"
#include "app/cli/verbs.h"
#include "app/machine.h"
#include "app/model_finder.h"
#include "app/resource_path.h"
#include "app/run_composition.h"
#include "app/scenario_run.h"
#include "app/version.h"
#include "core/base/counted.h"
#include "core/model/utf8.h"
#include "core/strategy/presets.h"
#include "sessions/recorder.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

namespace kvatlas::app {

namespace {

struct RunOptions {
    std::string model, scenario, strategy, record;
    std::vector<std::string> prompts;
    bool raw = false, ignoreEndToken = false, json = false;
    std::uint32_t maxTokens = 0; // 0: not given
    std::optional<std::uint64_t> seed;
    workload::Request sampling; // its sampling fields alone
    std::string backend = "auto", arithmetic = "fast";
    unsigned threads = 0;
};

constexpr std::size_t kMaxStdinBytes = std::size_t{4} << 20;

Result<std::string> readStdin() {
    std::string text(kMaxStdinBytes + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), stdin));
    if (std::ferror(stdin) != 0)
        return makeError(ErrorKind::Failed, "stdin could not be read: {}.", std::generic_category().message(errno));
    if (text.size() > kMaxStdinBytes)
        return makeError(ErrorKind::Refused, "What comes from stdin is longer than {} bytes.", kMaxStdinBytes);
    return text;
}

Result<workload::Scenario> scenarioOfPrompts(const RunOptions& options) {
    workload::Scenario scenario;
    scenario.name = options.prompts.size() == 1 ? "One prompt" : fmt::format("{} prompts", options.prompts.size());
    for (const auto& prompt : options.prompts) {
        workload::Request request = options.sampling;
        request.prompt = prompt;
        if (prompt == "-") {
            auto text = readStdin();
            if (!text)
                return tl::unexpected(text.error());
            request.prompt = std::move(*text);
            if (!model::isValidUtf8(request.prompt))
                return makeError(ErrorKind::Refused, "What comes from stdin is not text in UTF-8: convert it.");
        }
        request.raw = options.raw;
        request.ignoreEndToken = options.ignoreEndToken;
        if (options.maxTokens > 0)
            request.maxTokens = options.maxTokens;
        scenario.requests.push_back(std::move(request));
    }
    return scenario;
}

Result<workload::Scenario> readScenario(const RunOptions& options) {
    if (options.scenario == "-") {
        const auto text = readStdin();
        return text ? workload::parseScenario(*text, "stdin") : tl::unexpected(text.error());
    }
    const auto file = scenarioFile(options.scenario);
    return file ? workload::loadScenario(*file) : tl::unexpected(file.error());
}

Result<workload::Scenario> chooseScenario(const RunOptions& options) {
    if (options.scenario.empty() == options.prompts.empty())
        return makeError(ErrorKind::Usage, "run takes --scenario FILE or one --prompt TEXT or more, one of the two.");
    auto scenario = options.scenario.empty() ? scenarioOfPrompts(options) : readScenario(options);
    if (!scenario)
        return scenario;
    if (!options.scenario.empty() && options.maxTokens > 0)
        for (auto& request : scenario->requests)
            request.maxTokens = std::min(request.maxTokens, options.maxTokens);
    if (options.seed)
        scenario->seed = *options.seed;
    return scenario;
}

// The flag, else what the scenario brings, else the plain paged cache.
Result<strategy::Strategy> chooseStrategy(const RunOptions& options, const workload::Scenario& scenario) {
    if (options.strategy == "-") {
        const auto text = readStdin();
        return text ? strategy::parse(*text, "stdin") : tl::unexpected(text.error());
    }
    if (options.strategy.empty())
        return strategyOf(scenario);
    const auto folder = resourceFolder();
    return strategy::loadStrategy(options.strategy, folder ? *folder / "strategies" : "");
}

// Everything that a run is made of, in the order in which it is torn down from the end.
struct Composition {
    std::shared_ptr<const engine::Weights> weights;
    std::unique_ptr<sessions::SessionRecorder> recorder;
    StepSpeed speed;
    std::unique_ptr<StreamedText> streamed;
    trace::FanOut sinks;
    SteadyClock clock;
    std::unique_ptr<ScenarioRun> run;
};

Result<void> openRecorder(const std::string& file, Composition& made) {
    if (file.empty())
        return {};
    if (file == "-")
        return makeError(ErrorKind::Usage, "A session is a database and cannot be written to stdout: --record FILE.");
    sessions::RecorderOptions options;
    options.piece = [weights = made.weights](TokenId token) {
        return std::string(weights->model().tokenizer().piece(token));
    };
    auto recorder = sessions::SessionRecorder::create(file, std::move(options));
    if (!recorder)
        return tl::unexpected(recorder.error());
    made.recorder = std::move(*recorder);
    made.sinks.add(*made.recorder);
    return {};
}

Result<void> compose(const RunOptions& options, const workload::Scenario& scenario, const strategy::Strategy& strategy,
                     const std::filesystem::path& model, const kernels::Kernels& backend,
                     kernels::Arithmetic arithmetic, Composition& made) {
    auto weights = loadWeights(model, backend);
    if (!weights)
        return tl::unexpected(weights.error());
    made.weights = std::move(*weights);
    for (const auto& warning : made.weights->model().warnings())
        say(warning);
    if (const auto recording = openRecorder(options.record, made); !recording)
        return recording;
    made.sinks.add(made.speed);
    if (!options.json && scenario.requests.size() == 1 && stdoutIsTerminal()) {
        made.streamed = std::make_unique<StreamedText>(made.weights->model().tokenizer());
        made.sinks.add(*made.streamed);
    }
    const Machine machine = readMachine();
    engine::EngineOptions engineOptions;
    engineOptions.strategy = strategy;
    engineOptions.arithmetic = arithmetic;
    engineOptions.threads = options.threads > 0 ? options.threads : defaultThreads(machine, false);
    engineOptions.freeDeviceBytes = machine.freeMemoryBytes;
    engineOptions.programVersion = versionLine("kvatlas-cli");
    engineOptions.machine = describe(machine);
    auto run = ScenarioRun::create(made.weights, scenario, std::move(engineOptions), made.clock, made.sinks);
    if (!run) {
        if (made.recorder) { // nothing was recorded: leave no empty session behind
            const std::string file = made.recorder->path();
            made.recorder.reset();
            std::error_code ignored;
            std::filesystem::remove(file, ignored);
        }
        return tl::unexpected(run.error());
    }
    made.run = std::move(*run);
    return {};
}

// The end marker, and a sentence when the recording had to stop early or its file is odd. False when it stopped early.
bool closeRecording(Composition& made, bool runEnded) {
    if (!made.recorder)
        return true;
    if (runEnded)
        made.recorder->onEnd();
    const auto stopped = made.recorder->stop();
    const auto status = made.recorder->status();
    if (!status.note.empty())
        say(status.note);
    if (stopped && status.error.empty())
        return true;
    say(status.error.empty() ? stopped.error().message : status.error);
    return false;
}

int exitStatusOfRun(const std::vector<engine::RequestResult>& results) {
    int status = kExitOk;
    for (const auto& result : results) {
        if (result.finishReason != trace::FinishReason::Refused)
            continue;
        say(fmt::format("request {} was refused: {}", result.request.value, result.detail));
        status = exitStatusOf(result.refusal);
    }
    return status;
}

int runScenario(const RunOptions& options) {
    const auto scenario = chooseScenario(options);
    if (!scenario)
        return fail(scenario.error());
    const auto strategy = chooseStrategy(options, *scenario);
    if (!strategy)
        return fail(strategy.error());
    const auto backend = backendNamed(options.backend);
    if (!backend)
        return fail(backend.error());
    auto arithmetic = arithmeticNamed(options.arithmetic);
    if (!arithmetic)
        return fail(arithmetic.error());
    if (options.backend == "reference")
        arithmetic = kernels::Arithmetic::Exact; // it knows no other
    const auto model = chooseModel(options.model, scenario->model);
    if (!model)
        return fail(model.error());

    Interruption interruption;
    Composition made;
    if (const auto composed = compose(options, *scenario, *strategy, *model, **backend, *arithmetic, made); !composed)
        return fail(composed.error());
    made.run->run([&] { return interruption.wanted(); });
    if (made.streamed)
        made.streamed->finish();
    const bool recorded = closeRecording(made, !interruption.wanted());

    const RunReport report{made.weights->config().name,
                           describe(**backend),
                           std::string(kernels::nameOf(*arithmetic)),
                           made.recorder && recorded ? made.recorder->path()
                                                     : "", // else a sentence said what became of it
                           made.run->engine().threads(),
                           scenario->seed,
                           *strategy,
                           made.run->results(),
                           made.run->engine().totals(),
                           made.run->engine().layout(),
                           &made.speed};
    if (options.json)
        writeJson(toJson(report));
    else
        writeData(toText(report, made.streamed == nullptr));
    if (interruption.wanted()) {
        say(fmt::format("stopped after {}; what was running is cancelled.", counted(report.totals.steps, "step")));
        return interruption.exitStatus();
    }
    const int status = exitStatusOfRun(report.requests);
    return status == kExitOk && !recorded ? kExitFailed : status;
}

} // namespace

void addRun(CLI::App& app, int& status) {
    auto options = std::make_shared<RunOptions>();
    auto* verb = app.add_subcommand("run", "Run a scenario, or prompts, and report what it cost");
    verb->add_option("--model", options->model, "a .gguf file; without it the default model")->check(notEmpty());
    verb->add_option("--scenario", options->scenario, "a scenario file, the name of a shipped one, or - for stdin")
        ->check(notEmpty());
    auto* prompt =
        verb->add_option("--prompt", options->prompts, "a user message (again for several at once; - reads stdin)");
    prompt->check(utf8())->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    verb->add_flag("--raw", options->raw, "pass each --prompt as it is, without the model's chat template")
        ->needs(prompt);
    verb->add_option("--strategy", options->strategy, "a strategy file, the name of a preset, or - for stdin")
        ->check(notEmpty());
    verb->add_option("--max-tokens", options->maxTokens, "output tokens per request; in a scenario at most so many")
        ->check(wholeNumber(1, 16'777'216));
    verb->add_flag("--ignore-eos", options->ignoreEndToken, "a --prompt goes on after the end token")->needs(prompt);
    verb->add_option("--seed", options->seed, "seed of the run")
        ->check(wholeNumber(0, std::numeric_limits<std::uint64_t>::max()));
    verb->add_option("--temperature,--temp", options->sampling.temperature, "0 is greedy")
        ->check(number(0.0, 100.0))
        ->needs(prompt)
        ->capture_default_str();
    verb->add_option("--top-k", options->sampling.topK, "0 is off")
        ->check(wholeNumber(0, std::numeric_limits<std::uint32_t>::max()))
        ->needs(prompt)
        ->capture_default_str();
    verb->add_option("--top-p", options->sampling.topP, "1 is off")
        ->check(number(1e-9, 1.0))
        ->needs(prompt)
        ->capture_default_str();
    verb->add_option("--min-p", options->sampling.minP, "0 is off")
        ->check(number(0.0, 1.0))
        ->needs(prompt)
        ->capture_default_str();
    verb->add_option("--threads", options->threads, "threads; without it all cores")->check(wholeNumber(1, 1024));
    verb->add_option("--backend", options->backend, "auto, cpu or reference")->capture_default_str();
    verb->add_option("--arithmetic", options->arithmetic, "fast or exact")->capture_default_str();
    verb->add_option("--record", options->record, "write a session file (.kvatlas) that must not exist yet")
        ->check(notEmpty());
    verb->add_flag("--json", options->json, "one JSON object on stdout");
    verb->footer("Greedy unless told otherwise. Example:\n"
                 "  kvatlas-cli run --model model.gguf --prompt 'Why is the sky blue?' --max-tokens 64\n"
                 "  kvatlas-cli run --scenario long-and-short-together --strategy static-4 --record run.kvatlas");
    verb->callback([options, &status] { status = runScenario(*options); });
}

} // namespace kvatlas::app

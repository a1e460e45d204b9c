// SPDX-License-Identifier: Apache-2.0
#include "app/backend.h"
#include "app/cli/checks.h"
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/machine.h"
#include "app/model_finder.h"
#include "core/engine/logits.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kvatlas::app {

namespace {

struct LogitsOptions {
    std::string model, ids, prompt;
    bool promptGiven = false;
    bool parseSpecial = false;
    std::string backend = "auto", arithmetic = "exact", positions = "last", kvFormat = "f32";
    std::uint32_t top = 20;
    unsigned threads = 0;
    bool json = false;
};

struct PositionLogits {
    std::uint32_t position = 0;
    std::vector<std::pair<TokenId, float>> top; // by (logit descending, id ascending)
    double logsumexp = 0;
};

// "1,2,3" -> numbers; anything else is a Usage error that names the flag.
Result<std::vector<std::uint32_t>> numbersOf(std::string_view list, std::string_view flag) {
    std::vector<std::uint32_t> numbers;
    const char* at = list.data();
    const char* const end = list.data() + list.size();
    while (true) {
        while (at != end && *at == ' ')
            ++at;
        std::uint32_t number = 0;
        const auto [after, error] = std::from_chars(at, end, number);
        if (error != std::errc() || (after != end && *after != ','))
            return makeError(ErrorKind::Usage, "{} takes whole numbers with commas between, like 1,2,3.", flag);
        numbers.push_back(number);
        if (after == end)
            return numbers;
        at = after + 1;
    }
}

Result<std::vector<TokenId>> inputTokens(const LogitsOptions& options, const model::Model& model) {
    std::vector<TokenId> tokens;
    if (options.promptGiven) {
        tokens = model.tokenizer().encodePrompt(options.prompt, options.parseSpecial);
    } else {
        const auto ids = numbersOf(options.ids, "--ids");
        if (!ids)
            return tl::unexpected(ids.error());
        for (const auto id : *ids) {
            if (id >= model.config().vocabulary)
                return makeError(ErrorKind::Refused, "The token id {} is not in the vocabulary of {} tokens.", id,
                                 model.config().vocabulary);
            tokens.push_back(static_cast<TokenId>(id));
        }
    }
    if (tokens.empty())
        return makeError(ErrorKind::Refused, "The prompt has no tokens: there is nothing to run.");
    if (tokens.size() > model.config().contextTokens)
        return makeError(ErrorKind::Refused, "The prompt has {} tokens and the model's context is {}: shorten it.",
                         tokens.size(), model.config().contextTokens);
    return tokens;
}

// Ascending, each once.
Result<std::vector<Position>> wantedPositions(std::string_view text, std::size_t tokens) {
    const auto last = static_cast<Position>(tokens - 1);
    if (text == "last")
        return std::vector<Position>{last};
    if (text == "all") {
        std::vector<Position> all(tokens);
        std::iota(all.begin(), all.end(), 0u);
        return all;
    }
    auto numbers = numbersOf(text, "--positions (or last, or all)");
    if (!numbers)
        return numbers;
    std::sort(numbers->begin(), numbers->end());
    numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
    if (numbers->back() > last)
        return makeError(ErrorKind::Usage, "--positions names {} and the last position is {}.", numbers->back(), last);
    return numbers;
}

PositionLogits summarise(std::uint32_t position, std::span<const float> logits, std::uint32_t top) {
    std::vector<TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto value = [&](TokenId id) {
        const float x = logits[static_cast<std::size_t>(id)];
        return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x;
    };
    const auto count = std::min<std::size_t>(top, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                      [&](TokenId a, TokenId b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
    PositionLogits out{position, {}, 0};
    for (std::size_t i = 0; i < count; ++i)
        out.top.emplace_back(ids[i], logits[static_cast<std::size_t>(ids[i])]);
    out.logsumexp = engine::logSumExp(logits);
    return out;
}

Result<std::vector<PositionLogits>> compute(std::shared_ptr<const engine::Weights> weights,
                                            const std::vector<TokenId>& tokens, const std::vector<Position>& wanted,
                                            const engine::ForwardOptions& options, std::uint32_t top) {
    std::vector<PositionLogits> out;
    const auto take = [&](Position position, std::span<const float> logits) {
        out.push_back(summarise(position, logits, top));
    };
    const auto done = engine::forwardTokens(std::move(weights), tokens, wanted, options, take);
    if (!done)
        return tl::unexpected(done.error());
    return out;
}

Json logitsJson(const LogitsOptions& options, const kernels::Kernels& backend, std::size_t tokens,
                const std::vector<PositionLogits>& positions) {
    Json list = Json::array();
    for (const auto& position : positions) {
        Json top = Json::array();
        for (const auto& [id, logit] : position.top)
            top.push_back(Json::array({id, logit}));
        list.push_back({{"position", position.position}, {"top", top}, {"logsumexp", position.logsumexp}});
    }
    return {{"backend", describe(backend)},
            {"arithmetic", options.arithmetic},
            {"kv_format", options.kvFormat},
            {"tokens", tokens},
            {"positions", list}};
}

std::string logitsText(const model::Tokenizer& tokenizer, const std::vector<PositionLogits>& positions) {
    std::string text;
    for (const auto& position : positions) {
        std::vector<std::vector<std::string>> rows{
            {fmt::format("after position {}", position.position), "id", "logit", "probability"}};
        for (const auto& [id, logit] : position.top)
            rows.push_back({shortened(jsonText(Json(std::string(tokenizer.piece(id)))), 30), fmt::format("{}", id),
                            fmt::format("{:.4f}", logit), fmt::format("{:.4f}", std::exp(logit - position.logsumexp))});
        text += (text.empty() ? "" : "\n") + tableText(rows);
    }
    return text;
}

int showLogits(const LogitsOptions& options) {
    if (options.promptGiven == !options.ids.empty())
        return fail({ErrorKind::Usage, "logits takes --ids or --prompt, one of the two."});
    const auto backend = backendNamed(options.backend);
    const auto arithmetic = arithmeticNamed(options.arithmetic);
    const auto kvFormat = kernels::storageFormatNamed(options.kvFormat);
    const auto file = chooseModel(options.model);
    if (!backend)
        return fail(backend.error());
    if (!arithmetic)
        return fail(arithmetic.error());
    if (!kvFormat)
        return fail({ErrorKind::Usage, "--kv-format is f32 or f16."});
    if (!file)
        return fail(file.error());
    const auto weights = loadWeights(*file, **backend);
    if (!weights)
        return fail(weights.error());
    const auto& model = (*weights)->model();
    const auto tokens = inputTokens(options, model);
    if (!tokens)
        return fail(tokens.error());
    const auto wanted = wantedPositions(options.positions, tokens->size());
    if (!wanted)
        return fail(wanted.error());
    engine::ForwardOptions forward;
    forward.arithmetic = *arithmetic;
    forward.kFormat = forward.vFormat = *kvFormat;
    forward.threads = options.threads > 0 ? options.threads : defaultThreads(readMachine(), false);
    const auto positions = compute(*weights, *tokens, *wanted, forward, options.top);
    if (!positions)
        return fail(positions.error());
    if (options.json)
        writeJson(logitsJson(options, **backend, tokens->size(), *positions));
    else
        writeData(logitsText(model.tokenizer(), *positions));
    return kExitOk;
}

} // namespace

void addLogits(CLI::App& app, int& status) {
    auto options = std::make_shared<LogitsOptions>();
    auto* verb = app.add_subcommand("logits", "What the model expects after a text, or after token ids");
    verb->add_option("--model", options->model, "a .gguf file; without it the default model")->check(notEmpty());
    verb->add_option("--ids", options->ids, "token ids: 1,2,3")->check(notEmpty());
    auto* prompt = verb->add_option("--prompt", options->prompt, "a text, as it is (no chat template)")->check(utf8());
    verb->add_flag("--parse-special", options->parseSpecial, "text that spells a control token becomes that token");
    verb->add_option("--backend", options->backend, "auto, cpu or reference")->capture_default_str();
    verb->add_option("--arithmetic", options->arithmetic, "exact or fast")->capture_default_str();
    verb->add_option("--kv-format", options->kvFormat, "f32 or f16: how K and V are kept")->capture_default_str();
    verb->add_option("--positions", options->positions, "last, all, or 0,5,7")
        ->check(notEmpty())
        ->capture_default_str();
    verb->add_option("--top", options->top, "how many of the best logits")
        ->check(wholeNumber(1, 4'194'304))
        ->capture_default_str();
    verb->add_option("--threads", options->threads, "threads; without it all cores")->check(wholeNumber(1, 1024));
    verb->add_flag("--json", options->json, "one JSON object on stdout");
    verb->footer("Example: kvatlas-cli logits --model model.gguf --prompt 'The tide comes in' --top 5");
    verb->callback([options, prompt, &status] {
        options->promptGiven = prompt->count() > 0;
        status = showLogits(*options);
    });
}

} // namespace kvatlas::app

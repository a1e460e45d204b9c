// SPDX-License-Identifier: Apache-2.0
// Speed of prefill and decode against the speed at which this machine reads memory, all in one run.
#include "app/backend.h"
#include "app/cli/checks.h"
#include "app/cli/interruption.h"
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/machine.h"
#include "app/model_finder.h"
#include "core/engine/kv_store.h"
#include "core/engine/runner.h"
#include "kernels/cpu/raw_read.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace kvatlas::app {

namespace {

// The buffer is read as often as decoding reads the weights, at most this often: a cache of the machine that holds both
// takes some 30 passes to take either in (15 GB/s in the first passes, 28 after them, on Sapphire Rapids).
constexpr std::uint32_t kMaxRawPasses = 128;

struct BenchOptions {
    std::string model, backend = "auto", arithmetic = "fast", kvFormat = "f16";
    unsigned threads = 1;
    std::uint32_t prompt = 512, generate = 128, depth = 0, repeat = 5, chunk = 512, batch = 1;
    bool json = false;
};

struct Measured {
    std::vector<double> prefillPerSecond, decodePerSecond, rawBytesPerSecond;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The sequences of a benchmark, side by side in one arena. Token ids are arbitrary: the work does not depend on them.
class Bench {
public:
    static Result<std::unique_ptr<Bench>> create(const BenchOptions& options,
                                                 std::shared_ptr<const engine::Weights> weights,
                                                 kernels::Arithmetic arithmetic, kernels::StorageFormat kvFormat) {
        std::unique_ptr<Bench> bench(new Bench(options, std::move(weights)));
        const auto& config = bench->m_weights->config();
        const std::uint64_t positions =
            std::max<std::uint64_t>(options.prompt, std::uint64_t{options.depth} + options.generate);
        if (positions > config.contextTokens)
            return makeError(ErrorKind::Usage, "{} tokens are more than the model's context of {}.", positions,
                             config.contextTokens);
        bench->m_layout = {config.layers, config.kvHeads, config.headDim, kBlockTokens, kvFormat, kvFormat};
        bench->m_blocks = static_cast<std::uint32_t>((positions + kBlockTokens - 1) / kBlockTokens);
        auto store = engine::KvStore::allocate(bench->m_layout, bench->m_blocks * options.batch);
        if (!store)
            return tl::unexpected(store.error());
        bench->m_store = std::make_unique<engine::KvStore>(std::move(*store));
        auto runner = engine::Runner::create(bench->m_weights, arithmetic, options.threads,
                                             static_cast<std::uint32_t>(positions), bench->m_clock);
        if (!runner)
            return tl::unexpected(runner.error());
        bench->m_runner = std::move(*runner);
        return bench;
    }

    // Seconds for the prompt of one sequence, its last logits included.
    double prefill() { return fill(0, m_options.prompt, 1); }

    // Seconds for `generate` steps of `batch` sequences that hold `depth` tokens already.
    double decode() {
        for (std::uint32_t s = 0; s < m_options.batch; ++s)
            if (m_options.depth > 0)
                fill(0, m_options.depth, 0, s);
        const std::int64_t beforeNs = m_clock.nowNs();
        for (std::uint32_t i = 0; i < m_options.generate; ++i)
            decodeStep(m_options.depth + i);
        return seconds(m_clock.nowNs() - beforeNs);
    }

    // What decoding one token has to read: every weight once per step, K and V of the tokens before it. The embedding
    // gives one row, unless it is the output matrix too.
    double decodeBytesPerToken() const {
        const double untied =
            m_weights->model().outputIsTied() ? 0 : static_cast<double>(m_weights->tokenEmbedding().bytes);
        const double weights = static_cast<double>(weightBytes()) - untied;
        const double meanTokens = m_options.depth + (m_options.generate + 1) / 2.0;
        return weights / m_options.batch + meanTokens * static_cast<double>(m_layout.bytesPerToken());
    }
    std::size_t weightBytes() const { return m_weights->bytes(); }

private:
    static constexpr std::uint32_t kBlockTokens = 16;

    Bench(const BenchOptions& options, std::shared_ptr<const engine::Weights> weights)
        : m_options(options)
        , m_weights(std::move(weights)) {}

    static double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

    std::vector<std::uint32_t> table(std::uint32_t sequence) const {
        std::vector<std::uint32_t> blocks(m_blocks);
        std::iota(blocks.begin(), blocks.end(), sequence * m_blocks);
        return blocks;
    }
    TokenId tokenAt(std::uint32_t position) const {
        constexpr std::uint32_t kPrime = 7919;
        return static_cast<TokenId>((std::uint64_t{position} * kPrime + 17) % m_weights->config().vocabulary);
    }

    double fill(std::uint32_t first, std::uint32_t tokens, std::uint32_t wantedRows, std::uint32_t sequence = 0) {
        const auto blocks = table(sequence);
        const std::int64_t beforeNs = m_clock.nowNs();
        for (std::uint32_t at = first; at < first + tokens; at += m_options.chunk) {
            const std::uint32_t length = std::min(m_options.chunk, first + tokens - at);
            std::vector<TokenId> chunk(length);
            for (std::uint32_t i = 0; i < length; ++i)
                chunk[i] = tokenAt(at + i);
            const engine::SequenceRows rows{chunk, at, blocks};
            const bool last = at + length == first + tokens;
            const std::vector<std::uint32_t> wanted(last ? wantedRows : 0, length - 1);
            m_times.begin(false);
            m_runner->forward(std::span(&rows, 1), wanted, m_store->arena(), m_times);
        }
        return seconds(m_clock.nowNs() - beforeNs);
    }

    void decodeStep(std::uint32_t position) {
        std::vector<std::vector<std::uint32_t>> tables;
        std::vector<engine::SequenceRows> rows;
        std::vector<std::uint32_t> wanted(m_options.batch);
        const TokenId token = tokenAt(position);
        tables.reserve(m_options.batch);
        rows.reserve(m_options.batch);
        for (std::uint32_t s = 0; s < m_options.batch; ++s)
            tables.push_back(table(s));
        for (std::uint32_t s = 0; s < m_options.batch; ++s)
            rows.push_back({std::span(&token, 1), position, tables[s]});
        std::iota(wanted.begin(), wanted.end(), 0u);
        m_times.begin(false);
        m_runner->forward(rows, wanted, m_store->arena(), m_times);
    }

    BenchOptions m_options;
    std::shared_ptr<const engine::Weights> m_weights;
    kernels::KvLayout m_layout;
    std::uint32_t m_blocks = 0;
    SteadyClock m_clock;
    std::unique_ptr<engine::KvStore> m_store;
    std::unique_ptr<engine::Runner> m_runner;
    engine::KernelTimes m_times;
};

Json benchJson(const BenchOptions& options, const std::string& backend, const Measured& measured,
               double decodeBytesPerToken) {
    const double decode = median(measured.decodePerSecond), raw = median(measured.rawBytesPerSecond);
    return {{"backend", backend},
            {"arithmetic", options.arithmetic},
            {"threads", options.threads},
            {"prompt", options.prompt},
            {"generate", options.generate},
            {"depth", options.depth},
            {"batch", options.batch},
            {"repeat", options.repeat},
            {"prefill_tokens_per_second", median(measured.prefillPerSecond)},
            {"decode_tokens_per_second", decode},
            {"raw_read_bytes_per_second", raw},
            {"decode_bytes_per_token", decodeBytesPerToken},
            {"decode_fraction_of_read", decode * decodeBytesPerToken / raw}};
}

std::string benchText(const Json& figures) {
    const auto number = [&](const char* key) { return figures[key].get<double>(); };
    return listText(
        {{"backend", fmt::format("{}, {} arithmetic, threads: {}", figures["backend"].get<std::string>(),
                                 figures["arithmetic"].get<std::string>(), figures["threads"].get<unsigned>())},
         {"prefill", fmt::format("{:.1f} tokens/s", number("prefill_tokens_per_second"))},
         {"decode", fmt::format("{:.1f} tokens/s", number("decode_tokens_per_second"))},
         {"raw read", fmt::format("{}/s", bytesText(number("raw_read_bytes_per_second")))},
         {"decode reads", fmt::format("{} per token", bytesText(number("decode_bytes_per_token")))},
         {"that is", fmt::format("{:.0f} % of raw read", number("decode_fraction_of_read") * 100)}});
}

int bench(const BenchOptions& options) {
    const auto backend = backendNamed(options.backend);
    if (!backend)
        return fail(backend.error());
    const auto arithmetic = arithmeticNamed(options.arithmetic);
    if (!arithmetic)
        return fail(arithmetic.error());
    const auto kvFormat = kernels::storageFormatNamed(options.kvFormat);
    if (!kvFormat)
        return fail({ErrorKind::Usage, "--kv-format is f16 or f32."});
    const auto file = chooseModel(options.model);
    if (!file)
        return fail(file.error());
    auto weights = loadWeights(*file, **backend);
    if (!weights)
        return fail(weights.error());
    const auto made = Bench::create(options, std::move(*weights), *arithmetic, *kvFormat);
    if (!made)
        return fail(made.error());

    Interruption interruption;
    kernels::RawReader reader((*made)->weightBytes(), options.threads);
    reader.pass(); // touches the buffer: not counted
    Measured measured;
    for (std::uint32_t i = 0; i < options.repeat; ++i) { // side by side, so that a busy machine slows all alike
        double rawSeconds = 0;
        const std::uint32_t passes = std::min(options.generate, kMaxRawPasses);
        for (std::uint32_t pass = 0; pass < passes; ++pass)
            rawSeconds += reader.pass();
        measured.rawBytesPerSecond.push_back(static_cast<double>(reader.bytes()) * passes / rawSeconds);
        measured.prefillPerSecond.push_back(options.prompt / (*made)->prefill());
        measured.decodePerSecond.push_back(double{1} * options.generate * options.batch / (*made)->decode());
        if (interruption.wanted())
            return interruption.exitStatus();
    }
    const Json figures = benchJson(options, describe(**backend), measured, (*made)->decodeBytesPerToken());
    if (options.json)
        writeJson(figures);
    else
        writeData(benchText(figures));
    return kExitOk;
}

} // namespace

void addBench(CLI::App& app, int& status) {
    auto options = std::make_shared<BenchOptions>();
    auto* verb = app.add_subcommand("bench", "Speed of prefill and decode, and of reading memory, as medians");
    verb->add_option("--model", options->model, "a .gguf file; without it the default model")->check(notEmpty());
    verb->add_option("--threads", options->threads, "threads")->check(wholeNumber(1, 1024))->capture_default_str();
    verb->add_option("--prompt", options->prompt, "tokens of the prefill")
        ->check(wholeNumber(1, 1'000'000))
        ->capture_default_str();
    verb->add_option("--generate", options->generate, "tokens to decode")
        ->check(wholeNumber(1, 1'000'000))
        ->capture_default_str();
    verb->add_option("--depth", options->depth, "tokens in the cache before the first decoded one")
        ->check(wholeNumber(0, 1'000'000))
        ->capture_default_str();
    verb->add_option("--batch", options->batch, "sequences that decode together")
        ->check(wholeNumber(1, 256))
        ->capture_default_str();
    verb->add_option("--chunk", options->chunk, "tokens per prefill step")
        ->check(wholeNumber(1, 65536))
        ->capture_default_str();
    verb->add_option("--repeat", options->repeat, "repetitions")->check(wholeNumber(1, 1000))->capture_default_str();
    verb->add_option("--backend", options->backend, "auto, cpu or reference")->capture_default_str();
    verb->add_option("--arithmetic", options->arithmetic, "fast or exact")->capture_default_str();
    verb->add_option("--kv-format", options->kvFormat, "f16 or f32: how K and V are kept")->capture_default_str();
    verb->add_flag("--json", options->json, "one JSON object on stdout");
    verb->footer("Example: kvatlas-cli bench --model model.gguf --threads 1 --prompt 512 --generate 128 --repeat 5");
    verb->callback([options, &status] { status = bench(*options); });
}

} // namespace kvatlas::app

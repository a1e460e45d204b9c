// SPDX-License-Identifier: Apache-2.0
// The whole engine on a tiny random model and the reference backend: events, limits, stops, cancellation.
#include "core/engine/engine.h"

#include "core/engine/logits.h"

#include "kernels/reference/reference.h"
#include "tests/support/engine_runs.h"
#include "tests/support/tiny_llama.h"

#include <gtest/gtest.h>

namespace kvatlas::engine {
namespace {

using testing::EngineRun;
using testing::requestOf;

constexpr std::uint32_t kContext = 64;

std::shared_ptr<const Weights> tinyWeights() {
    static const auto weights = [] {
        testing::TinyLlama shape;
        shape.contextTokens = kContext;
        auto model = model::Model::fromBytes(testing::tinyLlama(5, shape), "tiny.gguf");
        EXPECT_TRUE(model) << model.error().message;
        auto packed = Weights::load(*model, kernels::referenceKernels());
        EXPECT_TRUE(packed) << packed.error().message;
        return *packed;
    }();
    return weights;
}

EngineOptions options(std::uint32_t poolBlocks = 64, std::uint32_t blockTokens = 4) {
    EngineOptions o;
    o.arithmetic = kernels::Arithmetic::Exact;
    o.strategy.poolBlocks = poolBlocks;
    o.strategy.blockTokens = blockTokens;
    return o;
}

std::vector<TokenId> prompt(std::size_t tokens, TokenId first = 10) {
    std::vector<TokenId> ids(tokens);
    for (std::size_t i = 0; i < tokens; ++i)
        ids[i] = static_cast<TokenId>(3 + (static_cast<std::size_t>(first) + 7 * i) % 250);
    return ids;
}

EngineRun ranWith(const EngineOptions& o, const std::vector<Request>& requests) {
    return EngineRun(tinyWeights(), o, requests);
}

TEST(engineTest, runsARequestToItsMaxTokens) {
    const auto run = ranWith(options(), {requestOf(prompt(9), 5)});
    const RequestResult& result = run.result(1);
    EXPECT_EQ(result.finishReason, trace::FinishReason::MaxTokens);
    EXPECT_EQ(result.outputTokens.size(), 5u);
    EXPECT_EQ(run.sink.log.all<trace::TokenSampled>().size(), 5u);
    EXPECT_EQ(run.engine->blockCounts().free, 64u);
    EXPECT_EQ(run.engine->stateHash(), 0u);
    EXPECT_EQ(run.sink.log.all<trace::StepEnded>().size(), 5u);
}

TEST(engineTest, aStepIsAnnouncedComputedSampledAndEndedInThatOrder) {
    const auto run = ranWith(options(), {requestOf(prompt(3), 1)});
    std::vector<std::string> names;
    for (const trace::Event& event : run.sink.log.events)
        if (trace::classOf(event.kind()) == trace::EventClass::State)
            names.emplace_back(trace::nameOf(event.kind()));
    EXPECT_EQ(names, (std::vector<std::string>{"run started", "request arrived", "request admitted", "sequence started",
                                               "blocks allocated", "step started", "slots written", "token sampled",
                                               "blocks released", "sequence ended", "request finished", "step ended"}));
}

TEST(engineTest, refusesAtOnceWithTheNumbersAndServesTheOthers) {
    auto run = ranWith(options(8, 4), {requestOf({}, 4), requestOf(prompt(kContext + 1), 4), requestOf(prompt(30), 10),
                                       requestOf(prompt(8), 4), requestOf(prompt(8), 0)});
    EXPECT_EQ(run.result(1).finishReason, trace::FinishReason::Refused);
    EXPECT_NE(run.result(1).detail.find("nothing to run"), std::string::npos);
    EXPECT_NE(run.result(2).detail.find("65 tokens > 64"), std::string::npos);
    EXPECT_NE(run.result(3).detail.find("needs 10 blocks"), std::string::npos);
    EXPECT_EQ(run.result(4).finishReason, trace::FinishReason::MaxTokens);
    EXPECT_EQ(run.result(5).finishReason, trace::FinishReason::Refused);
}

TEST(engineTest, refusesWhatAModelComputesThatIsNoNumber) {
    testing::TinyLlama shape;
    auto bytes = testing::tinyLlama(5, shape);
    std::fill(bytes.end() - 16, bytes.end(), std::byte{0xFF}); // the last weights of output_norm
    const auto model = model::Model::fromBytes(std::move(bytes), "damaged.gguf");
    ASSERT_TRUE(model) << model.error().message;
    const auto weights = Weights::load(*model, kernels::referenceKernels());
    ASSERT_TRUE(weights) << weights.error().message;
    const EngineRun run(*weights, options(), {requestOf(prompt(8), 4)});
    EXPECT_EQ(run.result(1).finishReason, trace::FinishReason::Refused);
    EXPECT_NE(run.result(1).detail.find("not numbers"), std::string::npos) << run.result(1).detail;
    EXPECT_TRUE(run.result(1).outputTokens.empty());
    const auto alone = forwardTokens(*weights, prompt(8), {}, [](Position, std::span<const float>) {});
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().kind, ErrorKind::Refused);
}

// Frequencies of base 10,000 divided by 50^(2i/d) are those of base 500,000: the same logits, another file.
TEST(engineTest, ropeFactorsAreDivisorsOfTheFrequencies) {
    using Logits = std::vector<std::vector<float>>;
    const auto logitsOf = [](testing::TinyLlama shape, const std::vector<float>& factors) {
        auto writer = testing::tinyLlamaWriter(5, shape);
        if (!factors.empty())
            writer.tensor("rope_freqs.weight", {factors.size()}, model::ggufTypeId(kernels::WeightFormat::F32),
                          std::as_bytes(std::span(factors)));
        const auto model = model::Model::fromBytes(writer.file(), "tiny.gguf");
        EXPECT_TRUE(model) << model.error().message;
        const auto weights = Weights::load(*model, kernels::referenceKernels());
        Logits logits;
        const auto done = forwardTokens(*weights, prompt(60), {}, [&](Position, std::span<const float> row) {
            logits.emplace_back(row.begin(), row.end());
        });
        EXPECT_TRUE(done) << done.error().message;
        return logits;
    };
    const auto worst = [](const Logits& a, const Logits& b) {
        float most = 0;
        for (std::size_t row = 0; row < a.size(); ++row)
            for (std::size_t i = 0; i < a[row].size(); ++i)
                most = std::max(most, std::fabs(a[row][i] - b[row][i]));
        return most;
    };
    testing::TinyLlama shape;
    std::vector<float> factors;
    for (std::uint32_t i = 0; i < shape.headDim / 2; ++i)
        factors.push_back(static_cast<float>(std::pow(50.0, 2.0 * i / shape.headDim)));
    const Logits plain = logitsOf(shape, {});
    const Logits divided = logitsOf(shape, factors);
    shape.ropeFreqBase = 500'000.0f;
    const Logits otherBase = logitsOf(shape, {});
    EXPECT_LE(worst(divided, otherBase), 1e-4f);
    EXPECT_GE(worst(divided, plain), 0.1f);
}

// Prompts of 1, kB - 1, kB, kB + 1, the pool, the context; one more of each of the last two is refused.
TEST(engineTest, allLengthsAtTheBordersWork) {
    constexpr std::uint32_t kBlock = 4, kPool = 10;
    for (const std::uint32_t length : {1u, kBlock - 1, kBlock, kBlock + 1, kPool * kBlock}) {
        const auto run = ranWith(options(kPool, kBlock), {requestOf(prompt(length), 1)});
        EXPECT_EQ(run.result(1).finishReason, trace::FinishReason::MaxTokens) << length;
        EXPECT_EQ(run.engine->totals().prefillTokens, length);
    }
    const auto overPool = ranWith(options(kPool, kBlock), {requestOf(prompt(kPool * kBlock + 1), 1)});
    EXPECT_EQ(overPool.result(1).finishReason, trace::FinishReason::Refused);

    const auto context = ranWith(options(64, kBlock), {requestOf(prompt(kContext), 9)});
    EXPECT_EQ(context.result(1).finishReason, trace::FinishReason::Context);
    EXPECT_EQ(context.result(1).outputTokens.size(), 1u);
    const auto beforeContext = ranWith(options(64, kBlock), {requestOf(prompt(kContext - 3), 9)});
    EXPECT_EQ(beforeContext.result(1).finishReason, trace::FinishReason::Context);
    EXPECT_EQ(beforeContext.result(1).outputTokens.size(), 4u);
    const auto overContext = ranWith(options(64, kBlock), {requestOf(prompt(kContext + 1), 1)});
    EXPECT_EQ(overContext.result(1).finishReason, trace::FinishReason::Refused);
}

TEST(engineTest, stopsAtAStopTextAndKeepsTheTextBeforeIt) {
    const auto free = ranWith(options(), {requestOf(prompt(9), 12)});
    const std::string text = free.result(1).text;
    ASSERT_GE(text.size(), 4u);
    Request request = requestOf(prompt(9), 12);
    // An ASCII piece from the middle of what the model says anyway.
    std::size_t at = text.size() / 2;
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80)
        ++at;
    ASSERT_LT(at, text.size());
    request.stop = {std::string(1, text[at])};
    const auto run = ranWith(options(), {request});
    EXPECT_EQ(run.result(1).finishReason, trace::FinishReason::StopText);
    EXPECT_EQ(run.result(1).text, text.substr(0, text.find(text[at])));
}

TEST(engineTest, cancelsAtAnyStepAndReturnsTheBlocks) {
    const auto whole = ranWith(options(), {requestOf(prompt(9), 6)});
    for (int steps = 0; steps <= 5; ++steps) {
        EngineRun run(tinyWeights(), options());
        run.engine->submit(requestOf(prompt(9), 6));
        for (int i = 0; i < steps; ++i)
            run.step();
        EXPECT_TRUE(run.engine->cancel(RequestId(1)));
        EXPECT_FALSE(run.engine->cancel(RequestId(1)));
        EXPECT_EQ(run.engine->blockCounts().free, 64u);
        run.engine->submit(requestOf(prompt(9), 6));
        run.toTheEnd();
        EXPECT_EQ(run.result(1).finishReason, trace::FinishReason::Cancelled);
        EXPECT_EQ(run.result(1).outputTokens.size(), static_cast<std::size_t>(steps));
        EXPECT_EQ(run.result(2).outputTokens, whole.result(1).outputTokens);
    }
}

TEST(engineTest, fullPoolPreemptsAndEveryTextStaysTheSame) {
    std::vector<Request> requests;
    for (TokenId i = 0; i < 6; ++i)
        requests.push_back(requestOf(prompt(5 + static_cast<std::size_t>(i), 20 * i), 20));
    const auto roomy = ranWith(options(64, 4), requests);
    const auto tight = ranWith(options(9, 4), requests);
    std::uint32_t preemptions = 0;
    for (std::uint64_t id = 1; id <= 6; ++id) {
        EXPECT_EQ(tight.result(id).outputTokens, roomy.result(id).outputTokens) << id;
        EXPECT_EQ(tight.result(id).logitsHash, roomy.result(id).logitsHash) << id;
        preemptions += tight.result(id).preemptions;
        EXPECT_EQ(roomy.result(id).preemptions, 0u);
    }
    EXPECT_GT(preemptions, 0u);
    EXPECT_EQ(tight.engine->totals().logitsHash, roomy.engine->totals().logitsHash);
    EXPECT_EQ(tight.sink.log.all<trace::RequestPreempted>().size(), preemptions);
}

TEST(engineTest, hashesTheLogitsOfTheWholeRunByRequest) {
    const auto run = ranWith(options(), {requestOf(prompt(9), 12), requestOf({}, 1), requestOf(prompt(4), 2)});
    const std::uint64_t hashes[] = {run.result(1).logitsHash, run.result(3).logitsHash};
    EXPECT_EQ(run.engine->totals().logitsHash, hash64(std::as_bytes(std::span(hashes))));
    const auto alone = ranWith(options(), {requestOf({}, 1), requestOf(prompt(9), 12)});
    EXPECT_EQ(alone.engine->totals().logitsHash, hashes[0]);
}

TEST(engineTest, theSameRunGivesTheSameEvents) {
    const std::vector<Request> requests = {requestOf(prompt(9), 6), requestOf(prompt(3, 50), 9)};
    const auto a = ranWith(options(9, 4), requests), b = ranWith(options(9, 4), requests);
    const auto stateEvents = [](const EngineRun& run) {
        std::vector<trace::Event> events;
        for (const trace::Event& event : run.sink.log.events)
            if (trace::classOf(event.kind()) == trace::EventClass::State)
                events.push_back(event);
        return events;
    };
    EXPECT_EQ(stateEvents(a), stateEvents(b));
}

TEST(engineTest, countsBytesAndWasteOfTheArena) {
    const auto run = ranWith(options(16, 4), {requestOf(prompt(5), 1)});
    const RunTotals totals = run.engine->totals();
    const std::size_t blockBytes = run.engine->layout().blockBytes();
    EXPECT_EQ(totals.capacityBytes, 16 * blockBytes);
    EXPECT_EQ(totals.peakBytes, 2 * blockBytes);
    const auto counters = run.sink.log.all<trace::MemoryCounter>();
    ASSERT_FALSE(counters.empty());
    EXPECT_EQ(counters[0].arenaBytes, 16 * blockBytes);
    // Two requests of 5 tokens and 2 outputs: after step 0 each has 5 of 8 slots used.
    const auto two = ranWith(options(16, 4), {requestOf(prompt(5), 2), requestOf(prompt(5), 2)});
    EXPECT_DOUBLE_EQ(two.engine->totals().wasteFraction, 3.0 / 8);
}

TEST(engineTest, contiguousReservesAndTheWasteShows) {
    auto o = options(64, 4);
    o.strategy.layout = strategy::Layout::Contiguous;
    o.strategy.maxModelLenTokens = 32;
    const auto run = ranWith(o, {requestOf(prompt(5), 2)});
    EXPECT_EQ(run.engine->totals().peakBytes, 8 * run.engine->layout().blockBytes());
    EXPECT_DOUBLE_EQ(run.engine->totals().wasteFraction, 27.0 / 32);
    EXPECT_EQ(run.sink.log.all<trace::BlocksReserved>().size(), 1u);
}

TEST(engineTest, refusesIntegerArithmeticAndAPoolThatCannotBe) {
    auto o = options();
    o.arithmetic = kernels::Arithmetic::Integer;
    EXPECT_NE(EngineRun(tinyWeights(), o).refusal.find("integer"), std::string::npos);
    auto huge = options(60'000'000, 4096); // about 60 TiB
    EXPECT_NE(EngineRun(tinyWeights(), huge).refusal, "");
    auto longer = options();
    longer.strategy.maxModelLenTokens = kContext + 1;
    EXPECT_NE(EngineRun(tinyWeights(), longer).refusal, "");
}

TEST(engineTest, sumsKernelSpansPerStepAndPerLayerInStepZero) {
    const auto run = ranWith(options(), {requestOf(prompt(5), 3)});
    std::uint32_t attendSums = 0, attendLayers = 0;
    for (const auto& span : run.sink.log.all<trace::KernelSpan>())
        if (span.kernel == trace::KernelKind::Attend) {
            ++(span.layer.value == trace::KernelSpan::kAllLayers ? attendSums : attendLayers);
            EXPECT_GT(span.bytes, 0u);
        }
    EXPECT_EQ(attendSums, 3u);
    EXPECT_EQ(attendLayers, 2u);
}

TEST(prepareTest, rendersTheChatAndChecksTokens) {
    const model::Model& model = tinyWeights()->model();
    workload::Request chat;
    chat.prompt = "hello world";
    const auto prepared = prepare(chat, model, 7);
    ASSERT_TRUE(prepared) << prepared.error().message;
    EXPECT_EQ(prepared->promptTokens[0], 1); // <|im_start|>
    EXPECT_EQ(prepared->sampling.seed, 7u);
    EXPECT_EQ(prepared->title, "hello world");
    chat.raw = true;
    const auto raw = prepare(chat, model, 7);
    ASSERT_TRUE(raw);
    EXPECT_LT(raw->promptTokens.size(), prepared->promptTokens.size());
    workload::Request tokens;
    tokens.kind = workload::PromptKind::Tokens;
    tokens.tokens = {5, 100'000};
    EXPECT_FALSE(prepare(tokens, model, 7));
    tokens.tokens = {5, -1};
    EXPECT_FALSE(prepare(tokens, model, 7));
}

} // namespace
} // namespace kvatlas::engine

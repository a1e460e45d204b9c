// SPDX-License-Identifier: Apache-2.0
// Lossless means bit-exact: on the cpu backend the logits of a request are the same bits alone or in any company, in
// any chunks, blocks, layout, batching, with any threads, on any target, preempted or not.
#include "core/engine/logits.h"
#include "kernels/cpu/cpu.h"
#include "tests/support/engine_runs.h"
#include "tests/support/tiny_llama.h"

#include <gtest/gtest.h>

namespace kvatlas::engine {
namespace {

using kernels::Arithmetic;
using kernels::StorageFormat;
using testing::EngineRun;

constexpr std::uint32_t kContext = 1024;

// SmolLM2's formats and its three query heads per KV head; widths that are no multiple of a vector.
std::shared_ptr<const Weights> weightsOn(const kernels::Kernels& backend) {
    static const auto model = [] {
        testing::TinyLlama shape;
        shape.layers = 2;
        shape.embedding = 96;
        shape.queryHeads = 6;
        shape.kvHeads = 2;
        shape.headDim = 16;
        shape.feedForward = 160;
        shape.contextTokens = kContext;
        shape.matrixFormat = kernels::WeightFormat::Q4_1;
        shape.embeddingFormat = kernels::WeightFormat::Q8_0;
        auto opened = model::Model::fromBytes(testing::tinyLlama(17, shape), "tiny.gguf");
        EXPECT_TRUE(opened) << opened.error().message;
        return *opened;
    }();
    auto weights = Weights::load(model, backend);
    EXPECT_TRUE(weights) << weights.error().message;
    return *weights;
}

const std::shared_ptr<const Weights>& cpuWeights() {
    static const auto weights = weightsOn(kernels::cpuKernels());
    return weights;
}

std::vector<TokenId> prompt(std::uint32_t seed, std::size_t tokens) {
    testing::TestRandom random(seed);
    std::vector<TokenId> ids(tokens);
    for (TokenId& id : ids)
        id = static_cast<TokenId>(random.below(testing::kTinyVocabulary));
    return ids;
}

// Lengths on both sides of a block, and over the border of an attention segment (256 slots) while decoding.
std::vector<Request> requests() {
    std::vector<Request> list;
    std::uint32_t seed = 0;
    for (const std::size_t length : {1u, 15u, 16u, 17u, 63u, 100u, 250u, 300u}) {
        ++seed;
        list.push_back(testing::requestOf(prompt(seed, length), 24 + 3 * seed));
    }
    list[2].sampling = {.temperature = 0.9, .topK = 40, .topP = 0.95, .minP = 0.02, .seed = 5};
    list[5].sampling = {.temperature = 1.2, .seed = 6};
    return list;
}

struct Case {
    Arithmetic arithmetic;
    StorageFormat storage;
};

class Equality : public ::testing::TestWithParam<Case> {
protected:
    EngineOptions options() const {
        EngineOptions o;
        o.arithmetic = GetParam().arithmetic;
        o.strategy.kFormat = o.strategy.vFormat = GetParam().storage;
        o.strategy.blockTokens = 16;
        o.strategy.poolBlocks = 128;
        o.strategy.maxModelLenTokens = 512;
        o.strategy.chunkTokens = 64;
        return o;
    }
    const EngineRun& base() {
        if (!m_base)
            m_base.emplace(cpuWeights(), options(), requests());
        return *m_base;
    }
    void expectEqual(const EngineRun& run, const std::string& what) {
        ASSERT_EQ(run.results.size(), base().results.size()) << what;
        for (const auto& [id, result] : base().results) {
            EXPECT_EQ(run.results.at(id).outputTokens, result.outputTokens) << what << ", request " << id.value;
            EXPECT_EQ(run.results.at(id).logitsHash, result.logitsHash) << what << ", request " << id.value;
        }
        EXPECT_EQ(run.engine->totals().logitsHash, base().engine->totals().logitsHash) << what;
    }
    void expectEqualWith(const EngineOptions& o, const std::string& what) {
        expectEqual(EngineRun(cpuWeights(), o, requests()), what);
    }

private:
    std::optional<EngineRun> m_base;
};

TEST_P(Equality, aloneAsInCompany) {
    const auto all = requests();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].sampling.temperature > 0)
            continue; // the number of the request is part of its random numbers
        const EngineRun alone(cpuWeights(), options(), {all[i]});
        EXPECT_EQ(alone.result(1).outputTokens, base().result(i + 1).outputTokens);
        EXPECT_EQ(alone.result(1).logitsHash, base().result(i + 1).logitsHash) << "request " << i + 1;
    }
}

TEST_P(Equality, anyChunk) {
    for (const std::uint32_t chunk : {1u, 7u, 16u, 256u, kContext}) {
        auto o = options();
        o.strategy.chunkTokens = chunk;
        expectEqualWith(o, fmt::format("chunk {}", chunk));
    }
}

TEST_P(Equality, anyBlockSize) {
    for (const std::uint32_t block : {1u, 4u, 64u}) {
        auto o = options();
        o.strategy.blockTokens = block;
        o.strategy.poolBlocks = 128 * 16 / block;
        expectEqualWith(o, fmt::format("blocks of {}", block));
    }
}

TEST_P(Equality, contiguousAsPaged) {
    for (const auto reserve : {strategy::Reserve::MaxModelLen, strategy::Reserve::MaxTokens}) {
        auto o = options();
        o.strategy.layout = strategy::Layout::Contiguous;
        o.strategy.reserve = reserve;
        expectEqualWith(o, fmt::format("contiguous, {}", strategy::nameOf(reserve)));
    }
}

TEST_P(Equality, staticAsContinuous) {
    auto o = options();
    o.strategy.batching = strategy::Batching::Static;
    o.strategy.maxSequences = 3;
    expectEqualWith(o, "static");
}

TEST_P(Equality, anyNumberOfThreads) {
    for (const unsigned threads : {2u, 3u}) {
        auto o = options();
        o.threads = threads;
        expectEqualWith(o, fmt::format("{} threads", threads));
    }
}

TEST_P(Equality, everyTargetOfThisMachine) {
    for (const std::string_view target : kernels::cpuTargets()) {
        const kernels::Kernels* backend = kernels::cpuKernelsFor(target);
        ASSERT_NE(backend, nullptr) << target;
        expectEqual(EngineRun(weightsOn(*backend), options(), requests()), std::string(target));
    }
}

TEST_P(Equality, fewBlocksAndPreemptions) {
    auto o = options();
    o.strategy.poolBlocks = 22; // what the longest request takes
    const EngineRun run(cpuWeights(), o, requests());
    std::uint32_t preemptions = 0;
    for (const auto& [id, result] : run.results)
        preemptions += result.preemptions;
    EXPECT_GT(preemptions, 0u);
    expectEqual(run, "few blocks");
}

TEST_P(Equality, everybodyPreemptedAtEveryStep) {
    auto o = options();
    o.strategy.chunkTokens = kContext; // a resumed request is computed again in one step
    EngineRun run(cpuWeights(), o);
    for (const Request& request : requests())
        run.engine->submit(request);
    do
        for (const RequestId id : run.engine->runningRequests())
            EXPECT_TRUE(run.engine->preempt(id));
    while (run.step());
    EXPECT_GE(run.result(1).preemptions, 25u);
    expectEqual(run, "preempted at every step");
}

TEST_P(Equality, whileOthersAreCancelled) {
    EngineRun run(cpuWeights(), options());
    const auto all = requests();
    for (const Request& request : all)
        run.engine->submit(request);
    for (int step = 0; run.step(); ++step) {
        if (step == 1)
            run.engine->cancel(RequestId(1));
        if (step == 5)
            run.engine->cancel(RequestId(7));
    }
    for (const std::uint64_t id : {2u, 3u, 4u, 5u, 6u, 8u})
        EXPECT_EQ(run.result(id).logitsHash, base().result(id).logitsHash) << id;
    EXPECT_EQ(run.result(7).finishReason, trace::FinishReason::Cancelled);
}

// Streaming equals one pass over the whole text.
TEST_P(Equality, onePassAsTokenByToken) {
    const auto all = requests();
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<TokenId> tokens = all[i].promptTokens;
        const RequestResult& result = base().result(i + 1);
        tokens.insert(tokens.end(), result.outputTokens.begin(), result.outputTokens.end() - 1);
        StreamingHash hash;
        const ForwardOptions forward{GetParam().arithmetic, GetParam().storage, GetParam().storage, kContext, 16, 1};
        const auto done = forwardTokens(cpuWeights(), tokens, forward, [&](Position at, std::span<const float> logits) {
            if (at + 1 >= all[i].promptTokens.size())
                hash.update(std::as_bytes(logits));
        });
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(hash.digest(), result.logitsHash) << "request " << i + 1;
    }
}

// The tests above can fail: another storage format or arithmetic gives other bits.
TEST_P(Equality, otherArithmeticOrStorageGivesOtherBits) {
    auto o = options();
    o.arithmetic = GetParam().arithmetic == Arithmetic::Fast ? Arithmetic::Exact : Arithmetic::Fast;
    EXPECT_NE(EngineRun(cpuWeights(), o, requests()).engine->totals().logitsHash, base().engine->totals().logitsHash);
    o = options();
    o.strategy.kFormat = GetParam().storage == StorageFormat::F16 ? StorageFormat::F32 : StorageFormat::F16;
    EXPECT_NE(EngineRun(cpuWeights(), o, requests()).engine->totals().logitsHash, base().engine->totals().logitsHash);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Equality,
                         ::testing::Values(Case{Arithmetic::Fast, StorageFormat::F16},
                                           Case{Arithmetic::Exact, StorageFormat::F16},
                                           Case{Arithmetic::Exact, StorageFormat::F32}),
                         [](const auto& tested) {
                             return std::string(kernels::nameOf(tested.param.arithmetic)) + "_" +
                                    std::string(kernels::nameOf(tested.param.storage));
                         });

} // namespace
} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
// The default model on the cpu backend against the reference values.
#include "kernels/cpu/cpu.h"
#include "tests/engine/oracle_cases.h"

#include <numeric>
#include <thread>

namespace kvatlas::engine {
namespace {

using kernels::Arithmetic;
using kernels::StorageFormat;

const std::shared_ptr<const Weights>& weights() {
    static const auto loaded = testing::defaultModelOn(kernels::cpuKernels());
    return loaded;
}

ForwardOptions exact() {
    ForwardOptions options;
    options.threads = std::max(1u, std::thread::hardware_concurrency());
    return options;
}

TEST(modelOnCpuTest, logitsAreTheReferencesInExactArithmetic) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    testing::checkLogits(weights(), exact());
}

TEST(modelOnCpuTest, all256GreedyTokensAreTheReferences) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    testing::checkGreedy(weights(), StorageFormat::F16, 64 / testing::kLessWorkBy);
}

// One pass over the essay in exact arithmetic and one in fast, side by side. Exact: mean loss of the first 1,023 and of
// all 4,095 scored tokens as the reference has them, no single loss off by more than 2e-3. Fast: mean KL divergence.
TEST(modelOnCpuTest, lossOnTheEssayIsTheReferencesAndFastStaysNearExact) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    constexpr std::uint32_t kTokens = 4096 / testing::kLessWorkBy, kChunk = 128, kBlock = 16;
    const auto tokens = testing::essayTokens(*weights(), kTokens);
    const model::ModelConfig& config = weights()->config();
    const SteadyClock clock;
    std::vector<std::uint32_t> blocks(kTokens / kBlock), rows(kChunk);
    std::iota(blocks.begin(), blocks.end(), 0u);
    std::iota(rows.begin(), rows.end(), 0u);
    const auto make = [&](Arithmetic arithmetic) {
        return std::pair(std::move(*Runner::create(weights(), arithmetic, exact().threads, kTokens, clock)),
                         std::move(*KvStore::allocate({config.layers, config.kvHeads, config.headDim, kBlock,
                                                       StorageFormat::F32, StorageFormat::F32},
                                                      kTokens / kBlock)));
    };
    const auto [exactRunner, exactStore] = make(Arithmetic::Exact);
    const auto [fastRunner, fastStore] = make(Arithmetic::Fast);

    const auto perToken = testing::oracle("ppl_cases.json")["per_token_nll_full"]["values"].get<std::vector<double>>();
    KernelTimes times;
    double loss = 0, lossOf1023 = 0, fastLoss = 0, worst = 0, divergence = 0;
    int sameTop = 0;
    for (std::uint32_t first = 0; first < kTokens; first += kChunk) {
        const SequenceRows sequence{std::span(tokens).subspan(first, kChunk), first, blocks};
        const auto exactLogits = exactRunner->forward({&sequence, 1}, rows, exactStore.arena(), times);
        const auto fastLogits = fastRunner->forward({&sequence, 1}, rows, fastStore.arena(), times);
        for (std::uint32_t row = 0; row < kChunk; ++row) {
            const std::size_t at = first + row;
            const auto p = exactLogits.subspan(std::size_t{row} * config.vocabulary, config.vocabulary);
            const auto q = fastLogits.subspan(std::size_t{row} * config.vocabulary, config.vocabulary);
            const double logP = logSumExp(p), logQ = logSumExp(q);
            for (std::size_t i = 0; i < p.size(); ++i)
                divergence += std::exp(static_cast<double>(p[i]) - logP) *
                              (static_cast<double>(p[i]) - logP - static_cast<double>(q[i]) + logQ);
            sameTop += std::ranges::max_element(p) - p.begin() == std::ranges::max_element(q) - q.begin() ? 1 : 0;
            if (at + 1 == kTokens)
                continue;
            const auto next = static_cast<std::size_t>(tokens[at + 1]);
            const double one = logP - static_cast<double>(p[next]);
            worst = std::max(worst, std::fabs(one - perToken[at]));
            loss += one;
            fastLoss += logQ - static_cast<double>(q[next]);
            if (at + 1 == 1023)
                lossOf1023 = loss / 1023;
        }
    }
    const auto cases = testing::oracle("ppl_cases.json");
    EXPECT_NEAR(lossOf1023, cases["fp32_against_fp64"]["full"]["mean_nll_fp64"].get<double>(), 1e-4);
    if (testing::kLessWorkBy == 1) {
        EXPECT_NEAR(loss / 4095, cases["one_sequence"]["runs"]["full"]["mean_nll"].get<double>(), 1e-4);
    }
    EXPECT_LT(worst, 2e-3);
    EXPECT_LE(divergence / kTokens, 4e-3);
    std::printf("           exact: mean loss %.6f (1,023 tokens), %.6f (%u); fast: mean loss %.6f, mean KL divergence "
                "%.6f, same "
                "top token %.2f %%\n",
                lossOf1023, loss / (kTokens - 1), kTokens - 1, fastLoss / (kTokens - 1), divergence / kTokens,
                100.0 * sameTop / kTokens);
}

// The one identity that a tiny model cannot show: the real shapes, on every target.
TEST(modelOnCpuTest, everyTargetAndChunkGivesTheSameBits) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    for (const Arithmetic arithmetic : {Arithmetic::Fast, Arithmetic::Exact}) {
        std::vector<std::uint64_t> hashes;
        for (const std::string_view target : kernels::cpuTargets()) {
            const auto onTarget = testing::defaultModelOn(*kernels::cpuKernelsFor(target));
            for (const std::uint32_t chunk : {33u, 7u}) {
                auto options = exact();
                options.arithmetic = arithmetic;
                options.chunkTokens = chunk;
                StreamingHash hash;
                const auto tokens = testing::essayTokens(*onTarget, 33);
                ASSERT_TRUE(forwardTokens(onTarget, tokens, options, [&](Position, std::span<const float> logits) {
                    hash.update(std::as_bytes(logits));
                }));
                hashes.push_back(hash.digest());
            }
        }
        EXPECT_EQ(hashes, std::vector(hashes.size(), hashes[0])) << kernels::nameOf(arithmetic);
    }
}

} // namespace
} // namespace kvatlas::engine

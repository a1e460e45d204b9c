// SPDX-License-Identifier: Apache-2.0
// Where the default model looks: the attention rows of a 128-token text against the reference values. The cpu backend's
// table is copied and its `attend` wrapped, so that the real Q and the K in the real blocks are seen.
#include "kernels/cpu/cpu.h"
#include "tests/engine/oracle_cases.h"

#include <cstring>
#include <numeric>

namespace kvatlas::engine {
namespace {

constexpr std::uint32_t kTokens = 128;
using Rows = std::vector<std::vector<double>>; // [query][key]

std::map<std::uint32_t, std::vector<Rows>> attentionByLayer; // layer -> [query head]

// Softmax of q k^T * scale in double, K read from its slots (f32).
std::uint64_t observeAttend(kernels::Stream& stream, const float* q, std::uint32_t queryHeads, float scale,
                            const kernels::AttentionBatch& batch, const kernels::KvArena& arena, std::uint32_t layer,
                            float* out) {
    const kernels::KvLayout& layout = arena.layout;
    std::vector<Rows>& heads = attentionByLayer[layer];
    for (std::uint32_t head = 0; head < queryHeads; ++head) {
        Rows& rows = heads.emplace_back();
        const std::uint32_t kvHead = head / (queryHeads / layout.kvHeads);
        for (std::uint32_t row = 0; row < batch.rows; ++row) {
            std::vector<double> p(batch.positionOf[row] + 1);
            double maximum = -1e300, sum = 0;
            for (std::uint32_t key = 0; key < p.size(); ++key) {
                const std::byte* block =
                    arena.blocks + batch.blockTables[0][key / layout.blockTokens] * layout.blockBytes();
                const std::byte* k = block + layout.kOffset(layer, kvHead);
                for (std::uint32_t d = 0; d < layout.headDim; ++d) {
                    float value = 0;
                    std::memcpy(&value, k + (d * layout.blockTokens + key % layout.blockTokens) * sizeof(float),
                                sizeof value);
                    p[key] += static_cast<double>(q[(row * queryHeads + head) * layout.headDim + d]) *
                              static_cast<double>(value);
                }
                p[key] *= static_cast<double>(scale);
                maximum = std::max(maximum, p[key]);
            }
            for (double& x : p)
                sum += x = std::exp(x - maximum);
            for (double& x : p)
                x /= sum;
            rows.push_back(std::move(p));
        }
    }
    return kernels::cpuKernels().attend(stream, q, queryHeads, scale, batch, arena, layer, out);
}

double firstKeys(const std::vector<double>& row, std::size_t keys) {
    return std::accumulate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(keys), 0.0);
}

TEST(attentionOracleTest, everyHeadLooksWhereTheReferenceLooks) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    static kernels::Kernels observed = kernels::cpuKernels();
    observed.attend = observeAttend;
    const auto weights = testing::defaultModelOn(observed);
    const auto expected = testing::oracle("attention_case.json");
    const auto tokens = expected["ids"].get<std::vector<TokenId>>();
    ASSERT_EQ(tokens.size(), kTokens);
    ForwardOptions options;
    options.chunkTokens = kTokens;
    ASSERT_TRUE(forwardTokens(weights, tokens, {}, options, [](Position, std::span<const float>) {}));

    constexpr double kTolerance = 2e-5; // f32 against f64
    for (const auto& [layer, heads] : expected["layers"].items())
        for (const auto& head : heads) {
            const Rows& rows = attentionByLayer.at(static_cast<std::uint32_t>(std::stoul(layer)))[head["head"]];
            double key0 = 0, keys0to3 = 0;
            for (std::uint32_t row = 64; row < kTokens; ++row) {
                key0 += firstKeys(rows[row], 1) / 64;
                keys0to3 += firstKeys(rows[row], 4) / 64;
            }
            EXPECT_NEAR(firstKeys(rows.back(), 1), head["last_row_key0"].get<double>(), kTolerance) << layer;
            EXPECT_NEAR(firstKeys(rows.back(), 4), head["last_row_keys0to3"].get<double>(), kTolerance) << layer;
            EXPECT_NEAR(key0, head["mean_rows64to127_key0"].get<double>(), kTolerance) << layer;
            EXPECT_NEAR(keys0to3, head["mean_rows64to127_keys0to3"].get<double>(), kTolerance) << layer;
        }
    for (const auto& one : expected["last_row"]) {
        const auto probabilities = one["probabilities"].get<std::vector<double>>();
        const auto& row = attentionByLayer.at(one["layer"])[one["head"]][one["query"]];
        ASSERT_EQ(row.size(), probabilities.size());
        for (std::size_t key = 0; key < row.size(); ++key)
            EXPECT_NEAR(row[key], probabilities[key], kTolerance) << key;
    }
}

} // namespace
} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/cases.h"

#include <cmath>
#include <map>

namespace kvatlas::kernels::testing {
namespace {

struct Model {
    std::uint32_t queryHeads, kvHeads, headDim;
    StorageFormat k, v;
};

KvLayout layoutOf(const Model& model, std::uint32_t blockTokens) {
    KvLayout layout;
    layout.layers = 2;
    layout.kvHeads = model.kvHeads;
    layout.headDim = model.headDim;
    layout.blockTokens = blockTokens;
    layout.kFormat = model.k;
    layout.vFormat = model.v;
    return layout;
}

// Sequences of the given lengths, all K and V stored, then attention of the last `queries` rows of each; the rows are
// computed in calls of at most `chunk` rows per sequence, as a chunked prefill does.
std::vector<float> attention(const Kernels& kernels, const Model& model, const std::vector<std::uint32_t>& lengths,
                             std::uint32_t queries, std::uint32_t blockTokens, unsigned threads = 1,
                             std::uint32_t chunk = UINT32_MAX, std::uint64_t placement = 1) {
    constexpr std::uint32_t kLayer = 1;
    PagedCase paged(layoutOf(model, blockTokens), lengths, placement);
    const KvArena arena = paged.view();
    const auto stream = kernels.createStream(threads);
    const std::size_t kvFloats = std::size_t{model.kvHeads} * model.headDim;
    const std::size_t qFloats = std::size_t{model.queryHeads} * model.headDim;
    std::vector<float> result;
    for (std::uint32_t s = 0; s < lengths.size(); ++s) {
        const auto k = normals(lengths[s] * kvFloats, 100 + s), v = normals(lengths[s] * kvFloats, 200 + s);
        BatchCase rows;
        rows.append(s, 0, lengths[s]);
        kernels.storeKv(*stream, k.data(), v.data(), rows.view(paged), arena, kLayer);
    }
    for (std::uint32_t done = 0; done < queries; done += std::min(chunk, queries)) {
        BatchCase rows;
        std::vector<float> q;
        for (std::uint32_t s = 0; s < lengths.size(); ++s) {
            const std::uint32_t count = std::min(queries, lengths[s]);
            const std::uint32_t first = lengths[s] - count + std::min(done, count);
            const std::uint32_t last =
                std::min(lengths[s], lengths[s] - count + done + std::min(chunk, queries - done));
            const auto all = normals(lengths[s] * qFloats, 300 + s, 2.0f);
            if (first < last) {
                rows.append(s, first, last);
                q.insert(q.end(), all.begin() + static_cast<std::ptrdiff_t>(first * qFloats),
                         all.begin() + static_cast<std::ptrdiff_t>(last * qFloats));
            }
        }
        std::vector<float> out(q.size(), -9.0f);
        const float scale = 1.0f / std::sqrt(static_cast<float>(model.headDim));
        kernels.attend(*stream, q.data(), model.queryHeads, scale, rows.view(paged), arena, kLayer, out.data());
        result.insert(result.end(), out.begin(), out.end());
    }
    return result;
}

constexpr Model kModels[] = {
    {9, 3, 64, StorageFormat::F16, StorageFormat::F16},  {4, 4, 32, StorageFormat::F32, StorageFormat::F32},
    {8, 1, 128, StorageFormat::F16, StorageFormat::F32}, {7, 1, 24, StorageFormat::F32, StorageFormat::F16},
    {28, 2, 10, StorageFormat::F16, StorageFormat::F16},
};

class Attention : public OnTarget {};
KVATLAS_ON_EVERY_TARGET(Attention);

TEST_P(Attention, agreesWithTheReferenceForEveryShapeAndBlockSize) {
    static std::map<std::pair<const Model*, std::uint32_t>, std::vector<float>> references; // shared by the targets
    const std::vector<std::uint32_t> lengths = {1, 17, 257, 530};
    for (const Model& model : kModels)
        for (const std::uint32_t blockTokens : {1u, 4u, 16u, 24u, 64u}) {
            auto& expected = references[{&model, blockTokens}];
            if (expected.empty())
                expected = attention(referenceKernels(), model, lengths, 5, blockTokens);
            const auto actual = attention(kernels(), model, lengths, 5, blockTokens);
            ASSERT_EQ(actual.size(), expected.size());
            for (std::size_t i = 0; i < actual.size(); ++i)
                ASSERT_NEAR(actual[i], expected[i], 5e-6)
                    << "headDim " << model.headDim << " block " << blockTokens << " element " << i;
        }
}

TEST_P(Attention, hasTheSameBitsForEveryBlockSizePlacementAndThreadCount) {
    struct Variant {
        std::uint32_t blockTokens;
        unsigned threads;
    };
    const Kernels& first = *cpuKernelsFor(cpuTargets().front());
    for (const Model& model : kModels) {
        const std::vector<std::uint32_t> lengths = {3, 600, 1030};
        const auto expected = attention(first, model, lengths, 1, 16);
        for (const auto& [blockTokens, threads] :
             {Variant{1, 2}, Variant{4, 1}, Variant{16, 1}, Variant{16, 3}, Variant{20, 2}, Variant{64, 2}})
            EXPECT_EQ(attention(kernels(), model, lengths, 1, blockTokens, threads, UINT32_MAX, blockTokens + threads),
                      expected)
                << "headDim " << model.headDim << " block " << blockTokens << " threads " << threads;
    }
}

TEST_P(Attention, hasTheSameBitsInChunksOfEveryLength) {
    const Model& model = kModels[0];
    const std::vector<std::uint32_t> lengths = {520};
    const Kernels& first = *cpuKernelsFor(cpuTargets().front());
    const auto expected = attention(first, model, lengths, 520, 16, 2);
    for (const std::uint32_t chunk : {1u, 3u, 7u, 64u, 300u})
        EXPECT_EQ(attention(kernels(), model, lengths, 520, 16, 1, chunk), expected) << "chunk " << chunk;
}

TEST_P(Attention, givesASequenceTheSameBitsAloneAndInABatch) {
    const Model& model = kModels[0];
    const auto together = attention(kernels(), model, {300, 40, 513}, 2, 16, 2);
    const auto alone = attention(kernels(), model, {300}, 2, 16);
    const std::vector<float> part(together.begin(), together.begin() + static_cast<std::ptrdiff_t>(alone.size()));
    EXPECT_EQ(part, alone);
}

TEST_P(Attention, ofOneTokenIsItsStoredValue) {
    const Model model{2, 1, 16, StorageFormat::F32, StorageFormat::F32};
    const auto out = attention(kernels(), model, {1}, 1, 16);
    const auto v = normals(16, 200);
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(out[i], v[i]);
        EXPECT_EQ(out[16 + i], v[i]);
    }
}

TEST_P(Attention, storesHalvesRoundedToNearestEven) {
    // 2049 and 2051 lie halfway between two halves; 65519.996 is the largest that does not overflow; 2^-25 halfway to
    // the smallest subnormal.
    const std::vector<float> values = {2049.0f,   2051.0f,   65519.996f, 65520.0f,    0x1p-25f, 0x1.8p-25f,
                                       -0x1p-24f, 1.0f,      -2049.0f,   0.33333334f, 6.1e-5f,  1e-9f,
                                       -0.0f,     100000.0f, 3e-6f,      -3.14159f};
    const std::vector<std::uint16_t> expected = {0x6800, 0x6802, 0x7BFF, 0x7C00, 0x0000, 0x0001, 0x8001, 0x3C00,
                                                 0xE800, 0x3555, 0x03FF, 0x0000, 0x8000, 0x7C00, 0x0032, 0xC248};
    const Model model{1, 1, 16, StorageFormat::F16, StorageFormat::F16};
    for (const Kernels* backend : {&referenceKernels(), &kernels()}) {
        PagedCase paged(layoutOf(model, 4), {4}, 1);
        BatchCase rows;
        rows.append(0, 2, 3);
        const auto stream = backend->createStream(1);
        backend->storeKv(*stream, values.data(), values.data(), rows.view(paged), paged.view(), 1);
        const std::byte* block = paged.arena.data() + paged.tables[0][0] * paged.layout.blockBytes();
        for (std::size_t d = 0; d < 16; ++d) {
            std::uint16_t k, v;
            std::memcpy(&k, block + paged.layout.kOffset(1, 0) + (d * 4 + 2) * 2, 2);
            std::memcpy(&v, block + paged.layout.vOffset(1, 0) + (2 * 16 + d) * 2, 2);
            EXPECT_EQ(k, expected[d]) << backend->name << " K " << values[d];
            EXPECT_EQ(v, expected[d]) << backend->name << " V " << values[d];
        }
        // All other bytes are as they were.
        std::size_t touched = 0;
        for (const std::byte b : paged.arena)
            touched += b != std::byte{0xFF};
        EXPECT_LE(touched, 16u * 2 * 2);
    }
}

} // namespace
} // namespace kvatlas::kernels::testing

// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/targets.h"
#include "kernels/reference/reference.h"
#include "kernels/rope_table.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/cases.h"

#include <cmath>

namespace kvatlas::kernels::testing {
namespace {

class Rows : public OnTarget {
protected:
    static cpu::Target targetNamed(std::string_view name) {
        return name == "AVX2"      ? cpu::Target::Avx2
               : name == "AVX-512" ? cpu::Target::Avx512
               : name == "NEON"    ? cpu::Target::Neon
                                   : cpu::Target::Avx512Vnni;
    }
    const Kernels& first() const { return *cpuKernelsFor(cpuTargets().front()); }
};
KVATLAS_ON_EVERY_TARGET(Rows);

std::vector<float> norm(const Kernels& kernels, std::uint32_t n, std::uint32_t d, unsigned threads) {
    auto x = normals(std::size_t{n} * d, 1);
    const auto weight = normals(d, 2);
    const auto stream = kernels.createStream(threads);
    kernels.rmsNorm(*stream, x.data(), weight.data(), 1e-5f, n, d, x.data());
    return x;
}

TEST_P(Rows, normalizeAsTheReferenceDoes) {
    for (const std::uint32_t d : {1u, 16u, 31u, 576u, 1030u}) {
        const auto expected = norm(referenceKernels(), 9, d, 1);
        const auto actual = norm(kernels(), 9, d, 2);
        for (std::size_t i = 0; i < actual.size(); ++i)
            ASSERT_NEAR(actual[i], expected[i], std::fabs(expected[i]) * 4e-7) << "d " << d;
        EXPECT_EQ(norm(first(), 9, d, 1), actual);
    }
}

// Element i in lane i mod 16, lanes folded +8, +4, +2, +1.
TEST_P(Rows, normalizeInTheOrderThatTheInterfaceStates) {
    const std::uint32_t d = 77;
    const auto x = normals(d, 1), weight = normals(d, 2);
    float lanes[16] = {};
    for (std::uint32_t i = 0; i < d; ++i)
        lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i)
            lanes[i] += lanes[i + width];
    const float inverse = 1.0f / std::sqrt(lanes[0] / static_cast<float>(d) + 1e-5f);
    const auto actual = norm(kernels(), 1, d, 1);
    for (std::uint32_t i = 0; i < d; ++i)
        ASSERT_EQ(actual[i], x[i] * inverse * weight[i]);
}

TEST_P(Rows, rotateAsTheReferenceDoes) {
    for (const std::uint32_t headDim : {2u, 10u, 24u, 64u, 128u})
        for (const RopePairs pairs : {RopePairs::Interleaved, RopePairs::Halves}) {
            const OwnedRopeTable table(100, headDim, 10000.0);
            const std::vector<std::uint32_t> positions = {0, 1, 99, 7, 42, 3, 3, 64, 65};
            const auto rotate = [&](const Kernels& backend, unsigned threads) {
                auto x = normals(positions.size() * 5 * headDim, 4);
                const auto stream = backend.createStream(threads);
                backend.rope(*stream, x.data(), positions.data(), static_cast<std::uint32_t>(positions.size()), 5,
                             table.view(), pairs);
                return x;
            };
            const auto expected = rotate(referenceKernels(), 1), actual = rotate(kernels(), 2);
            for (std::size_t i = 0; i < actual.size(); ++i)
                ASSERT_NEAR(actual[i], expected[i], 1e-6);
            EXPECT_EQ(actual, rotate(first(), 1));
        }
}

TEST_P(Rows, gateAsTheReferenceDoes) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{37}, std::size_t{70001}}) {
        const auto up = normals(n, 6);
        const auto run = [&](const Kernels& backend, unsigned threads) {
            auto gate = normals(n, 5, 20.0f);
            const auto stream = backend.createStream(threads);
            backend.siluMultiply(*stream, gate.data(), up.data(), n);
            return gate;
        };
        const auto expected = run(referenceKernels(), 1), actual = run(kernels(), 2);
        for (std::size_t i = 0; i < n; ++i)
            ASSERT_NEAR(actual[i], expected[i], std::fabs(expected[i]) * 5e-7 + 1e-36);
        EXPECT_EQ(actual, run(first(), 1));
    }
}

TEST_P(Rows, addElementByElement) {
    const std::size_t n = 50003;
    auto x = normals(n, 7);
    const auto before = x, y = normals(n, 8);
    const auto stream = kernels().createStream(3);
    EXPECT_EQ(kernels().add(*stream, x.data(), y.data(), n), n * 12);
    for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(x[i], before[i] + y[i]);
}

TEST_P(Rows, exponentialIsWithinOneUnitInTheLastPlace) {
    std::vector<float> x;
    for (float value = -104.0f; value <= 88.7f; value += 0.00317f)
        x.push_back(value);
    for (float value = -1.0f; value <= 1.0f; value += 1.0f / 4096)
        x.push_back(value);
    std::vector<float> actual(x.size());
    cpu::rowFunctions(targetNamed(GetParam()))->exp(x.data(), x.size(), actual.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = std::exp(static_cast<double>(x[i]));
        const float rounded = static_cast<float>(expected);
        const double unit = std::max(static_cast<double>(std::nextafter(rounded, INFINITY)) - rounded, 0x1p-149);
        worst = std::max(worst, std::fabs(actual[i] - expected) / unit);
    }
    EXPECT_LE(worst, 1.0);
    RecordProperty("worst_ulp", std::to_string(worst));
    const std::vector<float> ends = {0.0f, -INFINITY, -1000.0f, 88.72283f, 1000.0f, -0.0f};
    std::vector<float> atEnds(ends.size());
    cpu::rowFunctions(targetNamed(GetParam()))->exp(ends.data(), ends.size(), atEnds.data());
    EXPECT_EQ(atEnds[0], 1.0f);
    EXPECT_EQ(atEnds[1], 0.0f);
    EXPECT_EQ(atEnds[2], 0.0f);
    EXPECT_GT(atEnds[3], 3.4e38f);
    EXPECT_EQ(atEnds[4], atEnds[3]);
    EXPECT_EQ(atEnds[5], 1.0f);
}

} // namespace
} // namespace kvatlas::kernels::testing

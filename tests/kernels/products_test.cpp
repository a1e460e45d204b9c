// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/cases.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace kvatlas::kernels::testing {
namespace {

struct Shape {
    std::uint32_t rows, cols, n;
};

std::uint32_t colsFor(WeightFormat format, std::uint32_t wanted) {
    const std::uint32_t unit = infoOf(format).groupElements;
    return (wanted + unit - 1) / unit * unit;
}

std::vector<float> multiply(const Kernels& kernels, WeightFormat format, Shape shape, Arithmetic arithmetic,
                            const std::vector<float>& x, unsigned threads = 1) {
    const auto bytes = weightBytes(format, shape.rows, shape.cols, 7);
    const auto matrix = kernels.createMatrix(format, shape.rows, shape.cols, bytes.data());
    const auto stream = kernels.createStream(threads);
    std::vector<float> out(std::size_t{shape.n} * shape.rows, -1.0f);
    const Product product{matrix.get(), out.data()};
    EXPECT_GE(kernels.multiply(*stream, {&product, 1}, x.data(), shape.n, arithmetic), matrix->bytes);
    return out;
}

// Rows of the matrix as the reference reads them.
std::vector<float> weights(WeightFormat format, std::uint32_t rows, std::uint32_t cols) {
    const auto bytes = weightBytes(format, rows, cols, 7);
    const Kernels& kernels = referenceKernels();
    const auto matrix = kernels.createMatrix(format, rows, cols, bytes.data());
    const auto stream = kernels.createStream(1);
    std::vector<std::int32_t> tokens(rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    std::vector<float> values(std::size_t{rows} * cols);
    kernels.embed(*stream, *matrix, tokens.data(), rows, values.data());
    return values;
}

// Values that gguf-py's dequantize() gives for random bytes of each format (tests/kernels/ggml_values.json).
TEST(ReferenceWeights, haveTheValuesThatGgmlReads) {
    std::ifstream file(std::string(KVATLAS_SOURCE_DIR) + "/tests/kernels/ggml_values.json");
    const auto cases = nlohmann::json::parse(file);
    std::size_t seen = 0;
    for (const WeightFormat format : kFormats) {
        const auto& group = cases.at(std::string(infoOf(format).name));
        std::vector<std::byte> bytes;
        for (const int value : group.at("bytes"))
            bytes.push_back(static_cast<std::byte>(value));
        const auto expected = group.at("values").get<std::vector<double>>();
        const auto cols = static_cast<std::uint32_t>(expected.size());
        const auto matrix = referenceKernels().createMatrix(format, 1, cols, bytes.data());
        ASSERT_EQ(matrix->bytes, bytes.size());
        const auto stream = referenceKernels().createStream(1);
        const std::int32_t token = 0;
        std::vector<float> values(cols);
        referenceKernels().embed(*stream, *matrix, &token, 1, values.data());
        double largest = 0;
        for (const double value : expected)
            largest = std::max(largest, std::fabs(value));
        for (std::uint32_t i = 0; i < cols; ++i, ++seen)
            // gguf-py rounds each product, we round once.
            EXPECT_NEAR(values[i], expected[i], largest * 2e-7) << infoOf(format).name << " element " << i;
    }
    EXPECT_GT(seen, 1000u);
}

class Products : public OnTarget {};
KVATLAS_ON_EVERY_TARGET(Products);

TEST_P(Products, agreeWithTheReferenceInEveryFormatAndShape) {
    for (const WeightFormat format : kFormats)
        for (const Shape wanted : {Shape{1, 32, 1}, Shape{16, 64, 2}, Shape{17, 96, 3}, Shape{40, 288, 5},
                                   Shape{100, 544, 13}, Shape{49, 1024, 31}}) {
            const Shape shape{wanted.rows, colsFor(format, wanted.cols), wanted.n};
            const auto x = normals(std::size_t{shape.n} * shape.cols, 3);
            const auto w = weights(format, shape.rows, shape.cols);
            for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast}) {
                const auto expected = multiply(referenceKernels(), format, shape, arithmetic, x);
                const auto actual = multiply(kernels(), format, shape, arithmetic, x);
                for (std::uint32_t t = 0; t < shape.n; ++t)
                    for (std::uint32_t r = 0; r < shape.rows; ++r) {
                        double magnitude = 0;
                        for (std::uint32_t k = 0; k < shape.cols; ++k)
                            magnitude += std::fabs(double{w[std::size_t{r} * shape.cols + k]} *
                                                   x[std::size_t{t} * shape.cols + k]);
                        const std::size_t i = std::size_t{t} * shape.rows + r;
                        // A sum of k terms in f32 errs by about sqrt(k) half units; fast subtracts minima of the same
                        // size as its sums.
                        ASSERT_NEAR(actual[i], expected[i], magnitude * 2e-6)
                            << infoOf(format).name << ' ' << nameOf(arithmetic) << " rows " << shape.rows << " cols "
                            << shape.cols << " n " << shape.n << " token " << t << " row " << r;
                    }
            }
        }
}

TEST_P(Products, acceptColumnsThatAreNoMultipleOf32InPlainFormats) {
    for (const WeightFormat format : {WeightFormat::F32, WeightFormat::F16, WeightFormat::BF16}) {
        const Shape shape{21, 301, 3};
        const auto x = normals(std::size_t{shape.n} * shape.cols, 4);
        const auto expected = multiply(referenceKernels(), format, shape, Arithmetic::Fast, x);
        const auto actual = multiply(kernels(), format, shape, Arithmetic::Fast, x);
        for (std::size_t i = 0; i < actual.size(); ++i)
            ASSERT_NEAR(actual[i], expected[i], 2e-4) << infoOf(format).name;
    }
}

TEST_P(Products, haveTheBitsOfTheFirstTargetWhateverTheThreads) {
    const Kernels& first = *cpuKernelsFor(cpuTargets().front());
    for (const WeightFormat format : kFormats) {
        const Shape shape{167, colsFor(format, 544), 15};
        const auto x = normals(std::size_t{shape.n} * shape.cols, 5);
        for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast}) {
            const auto expected = multiply(first, format, shape, arithmetic, x);
            for (const unsigned threads : {1u, 2u, 3u})
                EXPECT_EQ(multiply(kernels(), format, shape, arithmetic, x, threads), expected)
                    << infoOf(format).name << ' ' << nameOf(arithmetic) << " threads " << threads;
        }
    }
}

TEST_P(Products, giveARowTheSameBitsAloneAndAmongOthers) {
    for (const WeightFormat format : kFormats)
        for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast}) {
            const Shape shape{33, colsFor(format, 288), 27};
            const auto x = normals(std::size_t{shape.n} * shape.cols, 6);
            const auto together = multiply(kernels(), format, shape, arithmetic, x);
            for (std::uint32_t t = 0; t < shape.n; ++t) {
                const std::vector<float> one(x.begin() + t * shape.cols, x.begin() + (t + 1) * shape.cols);
                const auto alone = multiply(kernels(), format, {shape.rows, shape.cols, 1}, arithmetic, one);
                const std::vector<float> row(together.begin() + t * shape.rows,
                                             together.begin() + (t + 1) * shape.rows);
                ASSERT_EQ(alone, row) << infoOf(format).name << ' ' << nameOf(arithmetic) << " row " << t;
            }
        }
}

// exact, by hand: w = fma(code, d, m), acc = fma(w, x, acc), k ascending.
TEST_P(Products, sumInTheOrderThatTheInterfaceStates) {
    for (const WeightFormat format : kFormats) {
        const Shape shape{19, colsFor(format, 512), 2};
        const auto x = normals(std::size_t{shape.n} * shape.cols, 8);
        const auto w = weights(format, shape.rows, shape.cols);
        const auto actual = multiply(kernels(), format, shape, Arithmetic::Exact, x);
        for (std::uint32_t t = 0; t < shape.n; ++t)
            for (std::uint32_t r = 0; r < shape.rows; ++r) {
                float acc = 0;
                for (std::uint32_t k = 0; k < shape.cols; ++k)
                    acc = std::fma(w[std::size_t{r} * shape.cols + k], x[std::size_t{t} * shape.cols + k], acc);
                ASSERT_EQ(actual[std::size_t{t} * shape.rows + r], acc) << infoOf(format).name;
            }
    }
}

TEST_P(Products, ofOneCallEqualTheProductsOneByOne) {
    const std::uint32_t cols = 256, n = 9;
    const auto x = normals(std::size_t{n} * cols, 9);
    std::vector<std::unique_ptr<PackedMatrix>> matrices;
    std::vector<std::vector<float>> outs, expected;
    std::uint32_t rows = 5;
    for (const WeightFormat format : kFormats) {
        const auto bytes = weightBytes(format, rows, cols, 7);
        matrices.push_back(kernels().createMatrix(format, rows, cols, bytes.data()));
        outs.emplace_back(std::size_t{n} * rows);
        expected.push_back(multiply(kernels(), format, {rows, cols, n}, Arithmetic::Fast, x));
        rows += 23;
    }
    std::vector<Product> products;
    for (std::size_t i = 0; i < matrices.size(); ++i)
        products.push_back({matrices[i].get(), outs[i].data()});
    const auto stream = kernels().createStream(2);
    kernels().multiply(*stream, products, x.data(), n, Arithmetic::Fast);
    EXPECT_EQ(outs, expected);
}

TEST_P(Products, surviveExtremeActivations) {
    for (const WeightFormat format : {WeightFormat::Q4_1, WeightFormat::Q8_0, WeightFormat::Q6_K}) {
        const Shape shape{16, colsFor(format, 96), 4};
        auto x = normals(std::size_t{shape.n} * shape.cols, 10);
        for (std::uint32_t k = 0; k < shape.cols; ++k) {
            x[k] = 0.0f;                                      // a scale of zero
            x[shape.cols + k] = k % 2 ? 1e-42f : -3e-44f;     // subnormal
            x[2 * shape.cols + k] = k % 3 ? 1.0f : -1e30f;    // one outlier in each group
            x[3 * shape.cols + k] = k % 2 ? 127.0f : -127.0f; // every code at its bound
        }
        const auto expected = multiply(referenceKernels(), format, shape, Arithmetic::Fast, x);
        const auto actual = multiply(kernels(), format, shape, Arithmetic::Fast, x);
        for (std::size_t i = 0; i < actual.size(); ++i)
            // Token 1: d * s itself is below the smallest number.
            ASSERT_NEAR(actual[i], expected[i], std::fabs(expected[i]) * 1e-4 + (i < 2 * shape.rows ? 1e-38 : 1e-2))
                << infoOf(format).name << " token " << i / shape.rows;
    }
}

TEST_P(Products, readRowsOfTheEmbeddingAsTheReferenceDoes) {
    for (const WeightFormat format : kFormats) {
        const std::uint32_t rows = 37, cols = colsFor(format, 320);
        const auto bytes = weightBytes(format, rows, cols, 7);
        const auto matrix = kernels().createMatrix(format, rows, cols, bytes.data());
        const auto stream = kernels().createStream(2);
        std::vector<std::int32_t> tokens(rows);
        std::iota(tokens.rbegin(), tokens.rend(), 0);
        std::vector<float> out(std::size_t{rows} * cols);
        kernels().embed(*stream, *matrix, tokens.data(), rows, out.data());
        const auto expected = weights(format, rows, cols);
        for (std::uint32_t i = 0; i < rows; ++i)
            for (std::uint32_t k = 0; k < cols; ++k)
                ASSERT_EQ(out[std::size_t{i} * cols + k], expected[std::size_t{rows - 1 - i} * cols + k])
                    << infoOf(format).name << " row " << rows - 1 - i << " column " << k;
    }
}

} // namespace
} // namespace kvatlas::kernels::testing

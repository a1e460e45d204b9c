// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference.h"

#include "kernels/reference/weight_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace kvatlas::kernels {

namespace reference {

namespace {

class ReferenceStream final : public Stream {
public:
    explicit ReferenceStream(unsigned threads)
        : m_threads(std::max(threads, 1u)) {}
    unsigned threads() const override { return m_threads; }

    // body(first, last) over contiguous shares of [0, count); a thread per share beyond the first.
    template <class Body> void split(std::uint32_t count, Body body) const {
        const unsigned shares = std::min<unsigned>(m_threads, std::max(count, 1u));
        const auto bound = [&](unsigned i) { return static_cast<std::uint32_t>(std::uint64_t{count} * i / shares); };
        std::vector<std::jthread> others;
        for (unsigned i = 1; i < shares; ++i)
            others.emplace_back([&body, first = bound(i), last = bound(i + 1)] { body(first, last); });
        body(0u, bound(1));
    }

private:
    unsigned m_threads;
};

class ReferenceMatrix final : public PackedMatrix {
public:
    std::vector<std::byte> data; // [rows, cols] in `format`, as in the file
    std::size_t rowBytes = 0;
    void values(std::uint32_t row, float* out) const { rowValues(format, data.data() + row * rowBytes, cols, out); }
};

ReferenceStream& own(Stream& stream) {
    return static_cast<ReferenceStream&>(stream);
}
const ReferenceMatrix& own(const PackedMatrix& matrix) {
    return static_cast<const ReferenceMatrix&>(matrix);
}

std::unique_ptr<Stream> createStream(unsigned threads) {
    return std::make_unique<ReferenceStream>(threads);
}

std::unique_ptr<PackedMatrix> createMatrix(WeightFormat format, std::uint32_t rows, std::uint32_t cols,
                                           const std::byte* data) {
    const WeightFormatInfo info = infoOf(format);
    assert(cols % info.groupElements == 0);
    auto matrix = std::make_unique<ReferenceMatrix>();
    matrix->rows = rows;
    matrix->cols = cols;
    matrix->format = format;
    matrix->rowBytes = std::size_t{cols} / info.groupElements * info.groupBytes;
    matrix->bytes = matrix->rowBytes * rows;
    matrix->data.assign(data, data + matrix->bytes);
    return matrix;
}

std::uint64_t embed(Stream&, const PackedMatrix& table, const std::int32_t* tokens, std::uint32_t n, float* out) {
    const ReferenceMatrix& matrix = own(table);
    for (std::uint32_t i = 0; i < n; ++i) {
        assert(tokens[i] >= 0 && static_cast<std::uint32_t>(tokens[i]) < matrix.rows);
        matrix.values(static_cast<std::uint32_t>(tokens[i]), out + std::size_t{i} * matrix.cols);
    }
    return n * (matrix.rowBytes + std::uint64_t{matrix.cols} * 4);
}

std::uint64_t rmsNorm(Stream&, const float* x, const float* weight, float epsilon, std::uint32_t n, std::uint32_t d,
                      float* out) {
    for (std::uint32_t i = 0; i < n; ++i) {
        const float* row = x + std::size_t{i} * d;
        double sum = 0;
        for (std::uint32_t k = 0; k < d; ++k)
            sum += static_cast<double>(row[k]) * row[k];
        const double inverse = 1.0 / std::sqrt(sum / d + epsilon);
        for (std::uint32_t k = 0; k < d; ++k)
            out[std::size_t{i} * d + k] = static_cast<float>(row[k] * inverse * weight[k]);
    }
    return std::uint64_t{n} * d * 8 + std::uint64_t{d} * 4;
}

// The activations as `fast` sees them: per 32, code * s with s = absmax/127 in f32 and codes rounded to even.
void quantizeActivations(const float* x, std::uint32_t cols, double* out) {
    for (std::uint32_t k = 0; k < cols; k += 32) {
        float largest = 0;
        for (std::uint32_t i = k; i < k + 32; ++i)
            largest = std::max(largest, std::fabs(x[i]));
        const float scale = largest / 127.0f;
        for (std::uint32_t i = k; i < k + 32; ++i) {
            const float code = scale > 0 ? std::nearbyint(x[i] / scale) : 0.0f;
            out[i] = static_cast<double>(std::clamp(code, -127.0f, 127.0f)) * scale;
        }
    }
}

// Tokens (columns) that one row of weights meets at once.
constexpr std::uint32_t kTokensAtOnce = 8;
// Rows that share one pass over the tokens, so that a single token has several sums in flight.
constexpr std::uint32_t kRowsAtOnce = 4;

// out [n, rows] for rows first..last; x [cols][paddedTokens] in double.
void multiplyRows(const ReferenceMatrix& matrix, const std::vector<double>& x, std::uint32_t n, std::uint32_t padded,
                  std::uint32_t first, std::uint32_t last, float* out) {
    const std::uint32_t cols = matrix.cols;
    std::vector<float> values(std::size_t{kRowsAtOnce} * cols);
    for (std::uint32_t row = first; row < last; row += kRowsAtOnce) {
        const std::uint32_t rows = std::min(kRowsAtOnce, last - row);
        for (std::uint32_t r = 0; r < rows; ++r)
            matrix.values(row + r, values.data() + std::size_t{r} * cols);
        if (n == 1) {
            double sum[kRowsAtOnce] = {};
            for (std::uint32_t k = 0; k < cols; ++k)
                for (std::uint32_t r = 0; r < kRowsAtOnce; ++r)
                    sum[r] += values[std::size_t{r} * cols + k] * x[k];
            for (std::uint32_t r = 0; r < rows; ++r)
                out[row + r] = static_cast<float>(sum[r]);
            continue;
        }
        for (std::uint32_t r = 0; r < rows; ++r) {
            const float* w = values.data() + std::size_t{r} * cols;
            for (std::uint32_t t = 0; t < n; t += kTokensAtOnce) {
                double sum[kTokensAtOnce] = {};
                for (std::uint32_t k = 0; k < cols; ++k)
                    for (std::uint32_t i = 0; i < kTokensAtOnce; ++i)
                        sum[i] += w[k] * x[std::size_t{k} * padded + t + i];
                for (std::uint32_t i = 0; i < std::min(kTokensAtOnce, n - t); ++i)
                    out[std::size_t{t + i} * matrix.rows + row + r] = static_cast<float>(sum[i]);
            }
        }
    }
}

std::uint64_t multiply(Stream& stream, std::span<const Product> products, const float* x, std::uint32_t n,
                       Arithmetic arithmetic) {
    std::uint64_t bytes = 0;
    if (products.empty() || n == 0)
        return bytes;
    const std::uint32_t cols = products.front().weight->cols;
    const std::uint32_t padded = n == 1 ? 1 : (n + kTokensAtOnce - 1) / kTokensAtOnce * kTokensAtOnce;
    const auto transposed = [&](bool quantized) {
        std::vector<double> result(std::size_t{cols} * padded);
        std::vector<double> row(cols);
        for (std::uint32_t t = 0; t < n; ++t) {
            const float* in = x + std::size_t{t} * cols;
            if (quantized)
                quantizeActivations(in, cols, row.data());
            else
                std::copy(in, in + cols, row.begin());
            for (std::uint32_t k = 0; k < cols; ++k)
                result[std::size_t{k} * padded + t] = row[k];
        }
        return result;
    };
    std::vector<double> plain, quantized;
    for (const Product& product : products) {
        const ReferenceMatrix& matrix = own(*product.weight);
        assert(matrix.cols == cols);
        const bool fast = arithmetic != Arithmetic::Exact && quantizesActivations(matrix.format);
        std::vector<double>& input = fast ? quantized : plain;
        if (input.empty())
            input = transposed(fast);
        own(stream).split(matrix.rows, [&](std::uint32_t first, std::uint32_t last) {
            multiplyRows(matrix, input, n, padded, first, last, product.out);
        });
        bytes += matrix.bytes + std::uint64_t{n} * matrix.rows * 4;
    }
    return bytes + std::uint64_t{n} * cols * 4;
}

std::uint64_t rope(Stream&, float* x, const std::uint32_t* positions, std::uint32_t n, std::uint32_t heads,
                   const RopeTable& table, RopePairs pairs) {
    const std::uint32_t half = table.headDim / 2;
    for (std::uint32_t row = 0; row < n; ++row) {
        assert(positions[row] < table.positions);
        const float* cos = table.cos + std::size_t{positions[row]} * half;
        const float* sin = table.sin + std::size_t{positions[row]} * half;
        for (std::uint32_t h = 0; h < heads; ++h) {
            float* head = x + (std::size_t{row} * heads + h) * table.headDim;
            for (std::uint32_t i = 0; i < half; ++i) {
                float& a = pairs == RopePairs::Interleaved ? head[2 * i] : head[i];
                float& b = pairs == RopePairs::Interleaved ? head[2 * i + 1] : head[i + half];
                const double a0 = a, b0 = b;
                a = static_cast<float>(a0 * cos[i] - b0 * sin[i]);
                b = static_cast<float>(a0 * sin[i] + b0 * cos[i]);
            }
        }
    }
    return std::uint64_t{n} * heads * table.headDim * 8 + std::uint64_t{n} * table.headDim * 4;
}

void storeElement(std::byte* at, std::size_t index, StorageFormat format, float value) {
    if (format == StorageFormat::F32) {
        std::memcpy(at + index * 4, &value, 4);
    } else {
        const std::uint16_t half = toHalf(value);
        std::memcpy(at + index * 2, &half, 2);
    }
}

float loadElement(const std::byte* at, std::size_t index, StorageFormat format) {
    if (format == StorageFormat::F32) {
        float value;
        std::memcpy(&value, at + index * 4, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, at + index * 2, 2);
    return fromHalf(half);
}

std::byte* blockOf(const AttentionBatch& batch, const KvArena& arena, std::uint32_t sequence, std::uint32_t slot) {
    return arena.blocks + batch.blockTables[sequence][slot / arena.layout.blockTokens] * arena.layout.blockBytes();
}

std::uint64_t storeKv(Stream&, const float* k, const float* v, const AttentionBatch& batch, const KvArena& arena,
                      std::uint32_t layer) {
    const KvLayout& layout = arena.layout;
    for (std::uint32_t row = 0; row < batch.rows; ++row) {
        const std::uint32_t slot = batch.positionOf[row];
        std::byte* block = blockOf(batch, arena, batch.sequenceOf[row], slot);
        const std::uint32_t inBlock = slot % layout.blockTokens;
        for (std::uint32_t h = 0; h < layout.kvHeads; ++h) {
            std::byte* kHead = block + layout.kOffset(layer, h);
            std::byte* vHead = block + layout.vOffset(layer, h);
            for (std::uint32_t d = 0; d < layout.headDim; ++d) {
                const std::size_t from = (std::size_t{row} * layout.kvHeads + h) * layout.headDim + d;
                storeElement(kHead, std::size_t{d} * layout.blockTokens + inBlock, layout.kFormat, k[from]);
                storeElement(vHead, std::size_t{inBlock} * layout.headDim + d, layout.vFormat, v[from]);
            }
        }
    }
    const std::uint64_t values = std::uint64_t{batch.rows} * layout.kvHeads * layout.headDim;
    return values * (8 + elementBytes(layout.kFormat) + elementBytes(layout.vFormat));
}

// The stored K and V of one KV head of one sequence, slots 0 .. slots-1.
struct HeadValues {
    std::uint32_t slots = 0;
    std::vector<float> k; // [headDim, slots]
    std::vector<float> v; // [slots, headDim]
};

HeadValues headValues(const AttentionBatch& batch, const KvArena& arena, std::uint32_t layer, std::uint32_t kvHead,
                      std::uint32_t sequence, std::uint32_t slots) {
    const KvLayout& layout = arena.layout;
    HeadValues values{slots, std::vector<float>(std::size_t{slots} * layout.headDim),
                      std::vector<float>(std::size_t{slots} * layout.headDim)};
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        const std::byte* block = blockOf(batch, arena, sequence, slot);
        const std::byte* k = block + layout.kOffset(layer, kvHead);
        const std::byte* v = block + layout.vOffset(layer, kvHead);
        const std::size_t inBlock = slot % layout.blockTokens;
        for (std::uint32_t d = 0; d < layout.headDim; ++d) {
            values.k[std::size_t{d} * slots + slot] =
                loadElement(k, std::size_t{d} * layout.blockTokens + inBlock, layout.kFormat);
            values.v[std::size_t{slot} * layout.headDim + d] =
                loadElement(v, inBlock * layout.headDim + d, layout.vFormat);
        }
    }
    return values;
}

// One query of one head: softmax over slots 0 .. count-1.
void attendOne(const float* q, float scale, const HeadValues& head, std::uint32_t headDim, std::uint32_t count,
               float* out) {
    std::vector<double> p(count);
    for (std::uint32_t d = 0; d < headDim; ++d) {
        const float* k = head.k.data() + std::size_t{d} * head.slots;
        const double qd = q[d];
        for (std::uint32_t slot = 0; slot < count; ++slot)
            p[slot] += qd * k[slot];
    }
    double largest = p[0] * scale;
    for (double& value : p) {
        value *= scale;
        largest = std::max(largest, value);
    }
    double total = 0;
    for (double& value : p) {
        value = std::exp(value - largest);
        total += value;
    }
    std::vector<double> sum(headDim);
    for (std::uint32_t slot = 0; slot < count; ++slot) {
        const float* v = head.v.data() + std::size_t{slot} * headDim;
        for (std::uint32_t d = 0; d < headDim; ++d)
            sum[d] += p[slot] * v[d];
    }
    for (std::uint32_t d = 0; d < headDim; ++d)
        out[d] = static_cast<float>(sum[d] / total);
}

// Rows of one sequence that share one reading of its K and V.
constexpr std::uint32_t kRowsPerShare = 64;

std::uint64_t attend(Stream& stream, const float* q, std::uint32_t queryHeads, float scale, const AttentionBatch& batch,
                     const KvArena& arena, std::uint32_t layer, float* out) {
    const KvLayout& layout = arena.layout;
    const std::uint32_t group = queryHeads / layout.kvHeads;
    struct Share {
        std::uint32_t first, end;
    };
    std::vector<Share> shares;
    std::uint64_t slots = 0;
    for (std::uint32_t row = 0; row < batch.rows; ++row) {
        slots += std::uint64_t{batch.positionOf[row]} + 1;
        const bool joins = !shares.empty() && row - shares.back().first < kRowsPerShare &&
                           batch.sequenceOf[shares.back().first] == batch.sequenceOf[row];
        if (joins)
            shares.back().end = row + 1;
        else
            shares.push_back({row, row + 1});
    }
    own(stream).split(
        static_cast<std::uint32_t>(shares.size()) * layout.kvHeads, [&](std::uint32_t first, std::uint32_t end) {
            for (std::uint32_t i = first; i < end; ++i) {
                const Share share = shares[i / layout.kvHeads];
                const std::uint32_t kvHead = i % layout.kvHeads;
                const HeadValues values = headValues(batch, arena, layer, kvHead, batch.sequenceOf[share.first],
                                                     batch.positionOf[share.end - 1] + 1);
                for (std::uint32_t row = share.first; row < share.end; ++row)
                    for (std::uint32_t h = kvHead * group; h < (kvHead + 1) * group; ++h) {
                        const std::size_t at = (std::size_t{row} * queryHeads + h) * layout.headDim;
                        attendOne(q + at, scale, values, layout.headDim, batch.positionOf[row] + 1, out + at);
                    }
            }
        });
    const std::uint64_t perSlot = elementBytes(layout.kFormat) + elementBytes(layout.vFormat);
    return slots * layout.kvHeads * layout.headDim * perSlot +
           std::uint64_t{batch.rows} * queryHeads * layout.headDim * 8;
}

std::uint64_t siluMultiply(Stream&, float* gate, const float* up, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const double g = gate[i];
        gate[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * up[i]);
    }
    return std::uint64_t{n} * 12;
}

std::uint64_t add(Stream&, float* x, const float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        x[i] += y[i];
    return std::uint64_t{n} * 12;
}

} // namespace

} // namespace reference

const Kernels& referenceKernels() {
    static const Kernels kernels = [] {
        Kernels k;
        k.name = "reference";
        k.target = "double";
        k.createStream = reference::createStream;
        k.createMatrix = reference::createMatrix;
        k.embed = reference::embed;
        k.rmsNorm = reference::rmsNorm;
        k.multiply = reference::multiply;
        k.rope = reference::rope;
        k.storeKv = reference::storeKv;
        k.attend = reference::attend;
        k.siluMultiply = reference::siluMultiply;
        k.add = reference::add;
        return k;
    }();
    return kernels;
}

} // namespace kvatlas::kernels

// SPDX-License-Identifier: Apache-2.0
// The functions that go row by row: embedding, norm, rotation, storing K and V, gate, sum.
#include "kernels/cpu/targets.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands before all that includes highway.h.
#include "kernels/cpu/simd-inl.h"

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace {

// The first `count` lanes; the others are zero.
HWY_INLINE VF loadSome(const float* from, std::size_t count) {
    if (count == static_cast<std::size_t>(kLanes))
        return hn::LoadU(DF(), from);
    alignas(64) float lanes[kLanes] = {};
    for (std::size_t i = 0; i < count; ++i)
        lanes[i] = from[i];
    return hn::Load(DF(), lanes);
}
HWY_INLINE void storeSome(VF v, float* to, std::size_t count) {
    if (count == static_cast<std::size_t>(kLanes)) {
        hn::StoreU(v, DF(), to);
        return;
    }
    alignas(64) float lanes[kLanes];
    hn::Store(v, DF(), lanes);
    for (std::size_t i = 0; i < count; ++i)
        to[i] = lanes[i];
}

HWY_INLINE float halfValue(const std::byte* at) {
    alignas(64) std::uint16_t halves[kLanes] = {};
    hwy::CopyBytes<2>(at, halves);
    return hn::GetLane(loadHalf(halves));
}
HWY_INLINE float floatAt(const std::byte* at) {
    float value;
    hwy::CopyBytes<4>(at, &value);
    return value;
}

// Row `row` of a packed matrix: w = fma(code, d, m), as in `exact`.
void embed(const CpuMatrix& table, std::uint32_t row, float* out) {
    const std::uint32_t lane = row % kGroupRows;
    const std::byte* codes = table.codes(row / kGroupRows);
    const std::byte* scales = table.scales(row / kGroupRows);
    const TileLayout layout = tileLayout(table.format);
    if (!layout.coded) {
        const std::size_t width = infoOf(table.format).groupBytes;
        for (std::uint32_t k = 0; k < table.cols; ++k) {
            const std::byte* at = codes + (std::size_t{k} * kGroupRows + lane) * width;
            if (table.format == WeightFormat::F32) {
                out[k] = floatAt(at);
            } else if (table.format == WeightFormat::F16) {
                out[k] = halfValue(at);
            } else {
                alignas(4) std::byte bits[4] = {};
                hwy::CopyBytes<2>(at, bits + 2);
                out[k] = floatAt(bits);
            }
        }
        return;
    }
    for (std::uint32_t k = 0; k < table.cols; k += kTileCols) {
        float d, m = 0.0f, later;
        if (layout.scaleBytes == 128) {
            d = floatAt(scales + 4 * lane);
            m = floatAt(scales + 64 + 4 * lane);
        } else {
            d = halfValue(scales + 2 * lane);
            if (table.format == WeightFormat::Q4_1)
                m = halfValue(scales + 32 + 2 * lane);
        }
        later = d;
        if (table.format == WeightFormat::Q6_K) {
            later = d * static_cast<float>(static_cast<std::int8_t>(scales[48 + lane]));
            d = d * static_cast<float>(static_cast<std::int8_t>(scales[32 + lane]));
        }
        for (std::uint32_t i = 0; i < kTileCols; ++i) {
            int code;
            if (layout.nibbles)
                code = static_cast<int>(codes[64 * (i / 8) + 4 * lane + i % 4]) >> (i % 8 < 4 ? 0 : 4) & 15;
            else
                code = static_cast<int>(codes[64 * (i / 4) + 4 * lane + i % 4]);
            const float value = static_cast<float>(code - static_cast<int>(layout.offset));
            out[k + i] = __builtin_fmaf(value, i < 16 ? d : later, m);
        }
        codes += layout.codeBytes;
        scales += layout.scaleBytes;
    }
}

void rmsNorm(const float* x, const float* weight, float epsilon, std::uint32_t d, float* out) {
    const DF df;
    VF partial[kVectors];
    for (int v = 0; v < kVectors; ++v)
        partial[v] = hn::Zero(df);
    std::uint32_t i = 0;
    for (; i + 16 <= d; i += 16)
        HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
            const VF value = hn::LoadU(df, x + i + kLanes * v);
            partial[v] = hn::MulAdd(value, value, partial[v]);
        }
    alignas(64) float lanes[16];
    for (int v = 0; v < kVectors; ++v)
        hn::Store(partial[v], df, lanes + kLanes * v);
    for (std::uint32_t lane = 0; i < d; ++i, ++lane)
        lanes[lane] = __builtin_fmaf(x[i], x[i], lanes[lane]);
    const float mean = foldLanes(lanes) / static_cast<float>(d);
    const VF inverse = hn::Set(df, 1.0f / std::sqrt(mean + epsilon));
    for (i = 0; i + kLanes <= d; i += kLanes)
        hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(df, x + i), inverse), hn::LoadU(df, weight + i)), df, out + i);
    for (; i < d; ++i)
        out[i] = x[i] * hn::GetLane(inverse) * weight[i];
}

void rope(float* x, const float* cos, const float* sin, std::uint32_t heads, std::uint32_t headDim, RopePairs pairs) {
    const DF df;
    const std::uint32_t half = headDim / 2;
    for (std::uint32_t h = 0; h < heads; ++h, x += headDim) {
        std::uint32_t i = 0;
        for (; i + kLanes <= half; i += kLanes) {
            VF a, b;
            if (pairs == RopePairs::Interleaved) {
                hn::LoadInterleaved2(df, x + 2 * i, a, b);
            } else {
                a = hn::LoadU(df, x + i);
                b = hn::LoadU(df, x + half + i);
            }
            const VF c = hn::LoadU(df, cos + i), s = hn::LoadU(df, sin + i);
            const VF first = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
            const VF second = hn::Add(hn::Mul(a, s), hn::Mul(b, c));
            if (pairs == RopePairs::Interleaved) {
                hn::StoreInterleaved2(first, second, df, x + 2 * i);
            } else {
                hn::StoreU(first, df, x + i);
                hn::StoreU(second, df, x + half + i);
            }
        }
        for (; i < half; ++i) {
            float& a = pairs == RopePairs::Interleaved ? x[2 * i] : x[i];
            float& b = pairs == RopePairs::Interleaved ? x[2 * i + 1] : x[half + i];
            const float a0 = a, b0 = b;
            a = a0 * cos[i] - b0 * sin[i];
            b = a0 * sin[i] + b0 * cos[i];
        }
    }
}

// n values to at[0], at[stride], ... (in elements), rounded to nearest even.
void storeStrided(const float* from, std::size_t n, StorageFormat format, std::byte* at, std::size_t stride) {
    const std::size_t width = elementBytes(format);
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t count = n - i < static_cast<std::size_t>(kLanes) ? n - i : static_cast<std::size_t>(kLanes);
        const VF value = loadSome(from + i, count);
        alignas(64) std::byte lanes[kLanes * 4];
        if (format == StorageFormat::F32)
            hn::Store(value, DF(), reinterpret_cast<float*>(lanes));
        else
            hn::Store(hn::DemoteTo(DH(), value), DH(), reinterpret_cast<hwy::float16_t*>(lanes));
        if (stride == 1 && format == StorageFormat::F16 && count == static_cast<std::size_t>(kLanes)) {
            hwy::CopyBytes<2 * kLanes>(lanes, at + 2 * i);
        } else if (format == StorageFormat::F16) {
            for (std::size_t j = 0; j < count; ++j)
                hwy::CopyBytes<2>(lanes + 2 * j, at + (i + j) * stride * width);
        } else {
            for (std::size_t j = 0; j < count; ++j)
                hwy::CopyBytes<4>(lanes + 4 * j, at + (i + j) * stride * width);
        }
    }
}

void storeKv(const float* k, const float* v, const KvLayout& layout, std::uint32_t layer, std::uint32_t slot,
             std::byte* block) {
    for (std::uint32_t h = 0; h < layout.kvHeads; ++h) {
        const std::size_t from = std::size_t{h} * layout.headDim;
        std::byte* kAt = block + layout.kOffset(layer, h) + slot * elementBytes(layout.kFormat);
        std::byte* vAt =
            block + layout.vOffset(layer, h) + std::size_t{slot} * layout.headDim * elementBytes(layout.vFormat);
        storeStrided(k + from, layout.headDim, layout.kFormat, kAt, layout.blockTokens);
        storeStrided(v + from, layout.headDim, layout.vFormat, vAt, 1);
    }
}

// silu(g) = g / (1 + exp(-g)).
void siluMultiply(float* gate, const float* up, std::size_t n) {
    const DF df;
    const VF one = hn::Set(df, 1.0f);
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t count = n - i < static_cast<std::size_t>(kLanes) ? n - i : static_cast<std::size_t>(kLanes);
        const VF g = loadSome(gate + i, count);
        const VF silu = hn::Div(g, hn::Add(one, exponential(hn::Neg(g))));
        storeSome(hn::Mul(silu, loadSome(up + i, count)), gate + i, count);
    }
}

void add(float* x, const float* y, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        hn::StoreU(hn::Add(hn::LoadU(DF(), x + i), hn::LoadU(DF(), y + i)), DF(), x + i);
    for (; i < n; ++i)
        x[i] += y[i];
}

void exponentials(const float* x, std::size_t n, float* out) {
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t count = n - i < static_cast<std::size_t>(kLanes) ? n - i : static_cast<std::size_t>(kLanes);
        storeSome(exponential(loadSome(x + i, count)), out + i, count);
    }
}

// Four streams at once read faster than one on the machines tried (31 against 26 GB/s on Zen 4).
template <bool kPrefetch> std::uint32_t readStreams(const std::byte* data, std::size_t bytes) {
    const DI di;
    VI sums[4] = {hn::Zero(di), hn::Zero(di), hn::Zero(di), hn::Zero(di)};
    const std::size_t quarter = bytes / 4;
    for (std::size_t i = 0; i < quarter; i += 64)
        HWY_UNROLL(4) for (std::size_t s = 0; s < 4; ++s) {
            const std::byte* line = data + s * quarter + i;
            if constexpr (kPrefetch)
                prefetchStream(line);
            HWY_UNROLL(4)
            for (int v = 0; v < kVectors; ++v)
                sums[s] = hn::Xor(sums[s], hn::Load(di, reinterpret_cast<const std::int32_t*>(line) + v * kLanes));
        }
    const VI sum = hn::Xor(hn::Xor(sums[0], sums[1]), hn::Xor(sums[2], sums[3]));
    return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(di, sum)));
}

std::uint32_t readBytes(const std::byte* data, std::size_t bytes, bool ahead) {
    return ahead ? readStreams<true>(data, bytes) : readStreams<false>(data, bytes);
}

constexpr RowFunctions kRows = {embed, rmsNorm, rope, storeKv, siluMultiply, add, exponentials, readBytes};

} // namespace
const RowFunctions& rowTable() {
    return kRows;
}
} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // KVATLAS_SIMD

#if HWY_ONCE
namespace kvatlas::kernels::cpu {

const RowFunctions* rowFunctions(Target target) {
    switch (target) {
#if HWY_ARCH_X86
    case Target::Avx2:
        return &N_AVX2::rowTable();
    case Target::Avx512:
    case Target::Avx512Vnni:
        return &N_AVX3::rowTable();
#else
    case Target::Neon:
        return &N_NEON::rowTable();
#endif
    default:
        return nullptr;
    }
}

} // namespace kvatlas::kernels::cpu
#endif

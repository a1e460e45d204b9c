// SPDX-License-Identifier: Apache-2.0
// Products of `exact`: 16 rows are dequantized a span of columns at a time, w = fma(code, d, m), and meet the f32
// activations of all tokens, acc = fma(w, x, acc).
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/exact.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands before all that includes highway.h.
#include "kernels/cpu/formats-inl.h"
#include "kernels/cpu/simd-inl.h"

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace {

// Columns dequantized at a time: 256 x 16 rows in f32 are 16 KiB.
constexpr std::uint32_t kSpanCols = 256;
// Row groups that meet a token together: four for few tokens (a sum must not wait for itself), else two.
constexpr std::uint32_t kMostGroups = 4;
// Sums that registers hold beside a weight and an activation.
constexpr int kSums = HWY_TARGET == HWY_AVX2 ? 12 : 24;
constexpr std::uint32_t kWidestTile = HWY_TARGET == HWY_AVX3 ? 12 : 4;

// w of the rows of one vector. The offset is taken off the integer, so that fma(code, d, m) and code * d are rounded
// once.
template <class Format> HWY_INLINE VF valueOf(VI code, VF d, VF m) {
    if constexpr (Format::kLayout.offset != 0)
        code = hn::Sub(code, hn::Set(DI(), static_cast<int>(Format::kLayout.offset)));
    const VF value = hn::ConvertTo(DF(), code);
    if constexpr (Format::kMinimum)
        return hn::MulAdd(value, d, m);
    else
        return hn::Mul(value, d);
}

// Four codes of each row: columns k .. k+3.
template <class Format, int kShift> HWY_INLINE void putFour(VI packed, VF d, VF m, float* out) {
    const DF df;
    const VI mask = hn::Set(DI(), Format::kBits == 4 ? 15 : 255);
    hn::StoreU(valueOf<Format>(hn::And(hn::ShiftRight<kShift>(packed), mask), d, m), df, out);
    hn::StoreU(valueOf<Format>(hn::And(hn::ShiftRight<kShift + 8>(packed), mask), d, m), df, out + 16);
    hn::StoreU(valueOf<Format>(hn::And(hn::ShiftRight<kShift + 16>(packed), mask), d, m), df, out + 32);
    hn::StoreU(valueOf<Format>(hn::And(hn::ShiftRight<kShift + 24>(packed), mask), d, m), df, out + 48);
}

// A tile of the 16 rows of a group as f32 [32][16].
template <class Format> HWY_INLINE void tileValues(const std::byte* codes, const std::byte* scales, float* out) {
    const DF df;
    const DI di;
    for (int v = 0; v < kVectors; ++v) {
        const std::int32_t* from = reinterpret_cast<const std::int32_t*>(codes) + kLanes * v;
        float* to = out + kLanes * v;
        VF d = Format::scale(scales, v);
        VF m = hn::Zero(df);
        if constexpr (Format::kMinimum)
            m = Format::minimum(scales, v);
        VF later = d; // Q6_K: d times the scale of columns 16..31, exact (11 bits times 8)
        if constexpr (Format::kTwoScales) {
            later = hn::Mul(d, hn::ConvertTo(df, Format::columnScale(scales, v, 1)));
            d = hn::Mul(d, hn::ConvertTo(df, Format::columnScale(scales, v, 0)));
        }
        if constexpr (Format::kBits == 4) {
            HWY_UNROLL(4) for (int k8 = 0; k8 < 4; ++k8) {
                const VI packed = hn::LoadU(di, from + 16 * k8);
                putFour<Format, 0>(packed, d, m, to + 128 * k8);
                putFour<Format, 4>(packed, d, m, to + 128 * k8 + 64);
            }
        } else {
            HWY_UNROLL(8) for (int k4 = 0; k4 < 8; ++k4) {
                const VI packed = hn::LoadU(di, from + 16 * k4);
                putFour<Format, 0>(packed, k4 < 4 ? d : later, m, to + 64 * k4);
            }
        }
    }
}

// Columns [first, last) of a group as f32 [cols][16]; first a multiple of 32.
template <class Format>
HWY_NOINLINE void codedValues(const CpuMatrix& matrix, std::uint32_t group, std::uint32_t first, std::uint32_t last,
                              float* out) {
    const std::byte* codes = matrix.codes(group) + std::size_t{first / kTileCols} * Format::kLayout.codeBytes;
    const std::byte* scales = matrix.scales(group) + std::size_t{first / kTileCols} * Format::kLayout.scaleBytes;
    for (std::uint32_t k = first; k < last; k += kTileCols) {
        tileValues<Format>(codes, scales, out);
        codes += Format::kLayout.codeBytes;
        scales += Format::kLayout.scaleBytes;
        out += kTileCols * kGroupRows;
    }
}

template <bool kBrain>
HWY_NOINLINE void halfValues(const CpuMatrix& matrix, std::uint32_t group, std::uint32_t first, std::uint32_t last,
                             float* out) {
    const std::byte* from = matrix.codes(group) + std::size_t{first} * kGroupRows * 2;
    for (std::size_t i = 0; i < std::size_t{last - first} * kGroupRows; i += kLanes)
        hn::StoreU(kBrain ? loadBrain(from + 2 * i) : loadHalf(from + 2 * i), DF(), out + i);
}

// The span of a group as f32 [cols][16]: where it lies already, or in `scratch`.
HWY_INLINE const float* spanValues(const CpuMatrix& matrix, std::uint32_t group, std::uint32_t first,
                                   std::uint32_t last, float* scratch) {
    switch (matrix.format) {
    case WeightFormat::F32:
        return reinterpret_cast<const float*>(matrix.codes(group)) + std::size_t{first} * kGroupRows;
    case WeightFormat::F16:
        halfValues<false>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::BF16:
        halfValues<true>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q8_0:
        codedValues<Q8_0>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q4_0:
        codedValues<Q4_0>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q4_1:
        codedValues<Q4_1>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q4_K:
        codedValues<Q4_K>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q5_K:
        codedValues<Q5_K>(matrix, group, first, last, scratch);
        break;
    case WeightFormat::Q6_K:
        codedValues<Q6_K>(matrix, group, first, last, scratch);
        break;
    }
    return scratch;
}

constexpr int largestShare(int total, int most) {
    int share = 1;
    for (int i = 1; i <= total && i <= most; ++i)
        if (total % i == 0)
            share = i;
    return share;
}

// acc [groups][width][16] += w[group] [cols][16] times x [cols][width].
template <int kWidth, int kGroups>
HWY_NOINLINE void addSpan(const float* const* w, const float* x, std::uint32_t cols, float* acc) {
    constexpr int kTotal = kGroups * kVectors;
    constexpr int kCount = largestShare(kTotal, kSums / kWidth);
    const DF df;
    for (int first = 0; first < kTotal; first += kCount) {
        VF sums[kCount][kWidth];
        const float* weights[kCount];
        float* home[kCount];
        HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
            const int group = (first + v) / kVectors, lane = (first + v) % kVectors * kLanes;
            weights[v] = w[group] + lane;
            home[v] = acc + group * kWidth * 16 + lane;
            HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) sums[v][t] = hn::LoadU(df, home[v] + 16 * t);
        }
        for (std::size_t k = 0; k < cols; ++k) {
            VF weight[kCount];
            HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) weight[v] = hn::LoadU(df, weights[v] + 16 * k);
            HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) {
                const VF value = hn::Set(df, x[k * kWidth + t]);
                HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) sums[v][t] = hn::MulAdd(weight[v], value, sums[v][t]);
            }
        }
        HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
            HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) hn::StoreU(sums[v][t], df, home[v] + 16 * t);
        }
    }
}

template <int kGroups>
HWY_INLINE void addSpanOf(std::uint32_t width, const float* const* w, const float* x, std::uint32_t cols, float* acc) {
    switch (width) {
    case 1:
        return addSpan<1, kGroups>(w, x, cols, acc);
    case 2:
        return addSpan<2, kGroups>(w, x, cols, acc);
    case 4:
        return addSpan<4, kGroups>(w, x, cols, acc);
#if HWY_TARGET == HWY_AVX3
    case 8:
        return addSpan<8, kGroups>(w, x, cols, acc);
    case 12:
        return addSpan<12, kGroups>(w, x, cols, acc);
#endif
    default:
        return;
    }
}

// Groups [group, group + kGroups) for all tokens.
template <int kGroups> void exactGroups(const ProductTask& task, std::uint32_t group) {
    const CpuMatrix& matrix = *task.matrix;
    float* scratch = reinterpret_cast<float*>(task.scratch);
    float* acc = scratch + std::size_t{kMostGroups} * kSpanCols * kGroupRows; // [tile][group][width][16]
    const TokenTile& lastTile = task.tiles[task.tileCount - 1];
    const std::size_t tokens = lastTile.first + lastTile.width;
    for (std::size_t i = 0; i < tokens * kGroups * kGroupRows; ++i)
        acc[i] = 0.0f;
    const float* panels = reinterpret_cast<const float*>(task.panels);
    for (std::uint32_t first = 0; first < matrix.cols; first += kSpanCols) {
        const std::uint32_t last = first + kSpanCols < matrix.cols ? first + kSpanCols : matrix.cols;
        const float* w[kGroups];
        for (int g = 0; g < kGroups; ++g)
            w[g] = spanValues(matrix, group + static_cast<std::uint32_t>(g), first, last,
                              scratch + std::size_t{kSpanCols} * kGroupRows * static_cast<std::size_t>(g));
        for (std::uint32_t i = 0; i < task.tileCount; ++i) {
            const TokenTile tile = task.tiles[i];
            const float* x = panels + std::size_t{tile.first} * matrix.cols + std::size_t{first} * tile.width;
            addSpanOf<kGroups>(tile.width, w, x, last - first, acc + std::size_t{tile.first} * kGroups * kGroupRows);
        }
    }
    for (std::uint32_t i = 0; i < task.tileCount; ++i) {
        const TokenTile tile = task.tiles[i];
        for (std::uint32_t g = 0; g < kGroups; ++g)
            for (std::uint32_t t = 0; t < tile.width; ++t) {
                const float* from = acc + (std::size_t{tile.first} * kGroups + g * tile.width + t) * kGroupRows;
                float* out = task.out + std::size_t{tile.first + t} * matrix.rows;
                for (int v = 0; v < kVectors; ++v)
                    storeRows(hn::LoadU(DF(), from + kLanes * v), out,
                              (group + g) * kGroupRows + static_cast<std::uint32_t>(kLanes * v), matrix.rows);
            }
    }
}

// --- few tokens: a weight is used as soon as it is dequantized
// --------------------------------------------------------

// Tokens up to which this is the faster way (Zen 4, AVX-512: 1.9, 1.8 and 1.4 times as fast at 1, 2 and 4 tokens).
constexpr std::uint32_t kFewTokens = 4;
// Sums side by side, so that one does not wait for itself.
constexpr int kSideBySide = 8;

constexpr int fewGroups(int width) {
    const int groups = kSideBySide / (width * kVectors);
    return groups > 4 ? 4 : groups < 1 ? 1 : groups;
}

// acc [vector][token] = fma(w, x, acc) for the code that lies kShift bits up in each lane of packed; x [width].
template <class Format, int kShift, int kCount, int kWidth>
HWY_INLINE void addColumn(const VI (&packed)[kCount], const VF (&d)[kCount], const VF (&m)[kCount], const float* x,
                          VF (&acc)[kCount][kWidth]) {
    const VI mask = hn::Set(DI(), Format::kBits == 4 ? 15 : 255);
    HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) {
        VI code = packed[v];
        if constexpr (kShift != 0)
            code = hn::ShiftRight<kShift>(code);
        const VF w = valueOf<Format>(hn::And(code, mask), d[v], m[v]);
        HWY_UNROLL(4) for (int t = 0; t < kWidth; ++t) acc[v][t] = hn::MulAdd(w, hn::Set(DF(), x[t]), acc[v][t]);
    }
}

template <int kCount, int kWidth> HWY_INLINE void zeroSums(VF (&acc)[kCount][kWidth]) {
    HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) {
        HWY_UNROLL(4) for (int t = 0; t < kWidth; ++t) acc[v][t] = hn::Zero(DF());
    }
}
// out [width, rows], rows from the first of `group` on.
template <int kCount, int kWidth>
HWY_INLINE void storeSums(const VF (&acc)[kCount][kWidth], std::uint32_t group, std::uint32_t rows, float* out) {
    HWY_UNROLL(4) for (int t = 0; t < kWidth; ++t) {
        HWY_UNROLL(8)
        for (int v = 0; v < kCount; ++v)
            storeRows(acc[v][t], out + std::size_t{rows} * static_cast<std::size_t>(t),
                      group * kGroupRows + static_cast<std::uint32_t>(v * kLanes), rows);
    }
}

// The rows of kGroups groups from `group` on for kWidth tokens; x [cols][width].
template <class Format, int kGroups, int kWidth>
HWY_NOINLINE void fewCoded(const CpuMatrix& matrix, std::uint32_t group, const float* x, float* out) {
    constexpr int kCount = kGroups * kVectors;
    constexpr int kLines = static_cast<int>(Format::kLayout.codeBytes) / 64;
    const DF df;
    const DI di;
    const std::byte* codes[kGroups];
    const std::byte* scales[kGroups];
    HWY_UNROLL(8) for (int g = 0; g < kGroups; ++g) {
        codes[g] = matrix.codes(group + static_cast<std::uint32_t>(g));
        scales[g] = matrix.scales(group + static_cast<std::uint32_t>(g));
    }
    VF acc[kCount][kWidth];
    zeroSums(acc);
    for (std::size_t k = 0; k < matrix.cols; k += kTileCols) {
        VF d[kCount], m[kCount], later[kCount];
        HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) {
            const std::byte* at = scales[v / kVectors];
            d[v] = Format::scale(at, v % kVectors);
            m[v] = hn::Zero(df);
            if constexpr (Format::kMinimum)
                m[v] = Format::minimum(at, v % kVectors);
            later[v] = d[v];
            if constexpr (Format::kTwoScales) {
                later[v] = hn::Mul(d[v], hn::ConvertTo(df, Format::columnScale(at, v % kVectors, 1)));
                d[v] = hn::Mul(d[v], hn::ConvertTo(df, Format::columnScale(at, v % kVectors, 0)));
            }
        }
        for (int line = 0; line < kLines; ++line) {
            VI packed[kCount];
            HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) {
                const std::byte* at = codes[v / kVectors] + 64 * line + 4 * kLanes * (v % kVectors);
                packed[v] = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(at));
                if (v % kVectors == 0)
                    prefetchStream(at);
            }
            const float* values = x + (k + static_cast<std::size_t>(32 / kLines * line)) * kWidth;
            if (Format::kTwoScales && line == kLines / 2)
                HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) d[v] = later[v];
            addColumn<Format, 0>(packed, d, m, values, acc);
            addColumn<Format, 8>(packed, d, m, values + kWidth, acc);
            addColumn<Format, 16>(packed, d, m, values + 2 * kWidth, acc);
            addColumn<Format, 24>(packed, d, m, values + 3 * kWidth, acc);
            if constexpr (Format::kBits == 4) {
                addColumn<Format, 4>(packed, d, m, values + 4 * kWidth, acc);
                addColumn<Format, 12>(packed, d, m, values + 5 * kWidth, acc);
                addColumn<Format, 20>(packed, d, m, values + 6 * kWidth, acc);
                addColumn<Format, 28>(packed, d, m, values + 7 * kWidth, acc);
            }
        }
        HWY_UNROLL(8) for (int g = 0; g < kGroups; ++g) {
            codes[g] += Format::kLayout.codeBytes;
            scales[g] += Format::kLayout.scaleBytes;
        }
    }
    storeSums(acc, group, matrix.rows, out);
}

template <bool kBrain, int kGroups, int kWidth>
HWY_NOINLINE void fewHalves(const CpuMatrix& matrix, std::uint32_t group, const float* x, float* out) {
    constexpr int kCount = kGroups * kVectors;
    const std::byte* codes[kGroups];
    HWY_UNROLL(8) for (int g = 0; g < kGroups; ++g) codes[g] = matrix.codes(group + static_cast<std::uint32_t>(g));
    VF acc[kCount][kWidth];
    zeroSums(acc);
    for (std::size_t k = 0; k < matrix.cols; ++k)
        HWY_UNROLL(8) for (int v = 0; v < kCount; ++v) {
            const std::byte* at = codes[v / kVectors] + 32 * k + 2 * kLanes * (v % kVectors);
            if (v % kVectors == 0)
                prefetchStream(at);
            const VF w = kBrain ? loadBrain(at) : loadHalf(at);
            HWY_UNROLL(4)
            for (int t = 0; t < kWidth; ++t)
                acc[v][t] = hn::MulAdd(w, hn::Set(DF(), x[k * kWidth + static_cast<std::size_t>(t)]), acc[v][t]);
        }
    storeSums(acc, group, matrix.rows, out);
}

template <int kGroups, int kWidth>
void fewOfFormat(const CpuMatrix& matrix, std::uint32_t group, const float* x, float* out) {
    switch (matrix.format) {
    case WeightFormat::F32:
        return;
    case WeightFormat::F16:
        return fewHalves<false, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::BF16:
        return fewHalves<true, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q8_0:
        return fewCoded<Q8_0, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q4_0:
        return fewCoded<Q4_0, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q4_1:
        return fewCoded<Q4_1, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q4_K:
        return fewCoded<Q4_K, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q5_K:
        return fewCoded<Q5_K, kGroups, kWidth>(matrix, group, x, out);
    case WeightFormat::Q6_K:
        return fewCoded<Q6_K, kGroups, kWidth>(matrix, group, x, out);
    }
}

template <int kWidth> void fewTokens(const ProductTask& task, TokenTile tile) {
    constexpr int kGroups = fewGroups(kWidth);
    const CpuMatrix& matrix = *task.matrix;
    const float* x = reinterpret_cast<const float*>(task.panels) + std::size_t{tile.first} * matrix.cols;
    float* out = task.out + std::size_t{tile.first} * matrix.rows;
    std::uint32_t group = task.firstGroup;
    for (; group + kGroups <= task.lastGroup; group += kGroups)
        fewOfFormat<kGroups, kWidth>(matrix, group, x, out);
    for (; group < task.lastGroup; ++group)
        fewOfFormat<1, kWidth>(matrix, group, x, out);
}

void product(const ProductTask& task) {
    const TokenTile& lastTile = task.tiles[task.tileCount - 1];
    // F32 needs no dequantizing: the way for many tokens reads it where it lies.
    if (lastTile.first + lastTile.width <= kFewTokens && task.matrix->format != WeightFormat::F32) {
        for (std::uint32_t i = 0; i < task.tileCount; ++i) {
            switch (task.tiles[i].width) {
            case 1:
                fewTokens<1>(task, task.tiles[i]);
                break;
            case 2:
                fewTokens<2>(task, task.tiles[i]);
                break;
            default:
                fewTokens<4>(task, task.tiles[i]);
                break;
            }
        }
        return;
    }
    std::uint32_t group = task.firstGroup;
    if (task.tiles[0].width <= 4)
        for (; group + 4 <= task.lastGroup; group += 4)
            exactGroups<4>(task, group);
    for (; group + 2 <= task.lastGroup; group += 2)
        exactGroups<2>(task, group);
    for (; group < task.lastGroup; ++group)
        exactGroups<1>(task, group);
}

// panel [cols][width] from rows tile.first .. of x [n, cols]
void transpose(const float* x, std::uint32_t cols, TokenTile tile, std::byte* panel) {
    float* out = reinterpret_cast<float*>(panel);
    for (std::uint32_t t = 0; t < tile.width; ++t) {
        const float* row = x + std::size_t{tile.first + t} * cols;
        for (std::uint32_t k = 0; k < cols; ++k)
            out[std::size_t{k} * tile.width + t] = row[k];
    }
}

double registersOnly(std::uint32_t rounds) {
    constexpr int kChains = 12;
    const DF df;
    VF sums[kChains];
    for (int i = 0; i < kChains; ++i)
        sums[i] = hn::Set(df, static_cast<float>(i));
    VF factor = hn::Set(df, 0.5f), term = hn::Set(df, 0.25f);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        HWY_UNROLL(16) for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], factor, term);
    }
    VF total = sums[0];
    for (int i = 1; i < kChains; ++i)
        total = hn::Add(total, sums[i]);
    // Always true; the compiler cannot know.
    return hn::GetLane(total) >= 0.0f ? 2.0 * kLanes * kChains * rounds : 0.0;
}

constexpr ProductFunctions kExact = {kWidestTile, product, transpose, registersOnly};

} // namespace
const ProductFunctions& exactTable() {
    return kExact;
}
} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // KVATLAS_SIMD

#if HWY_ONCE
namespace kvatlas::kernels::cpu {

std::size_t exactScratchBytes(std::uint32_t n) {
    return (4 * 256 + std::size_t{n} * 4) * kGroupRows * 4;
}

const ProductFunctions* exactFunctions(Target target) {
    switch (target) {
#if HWY_ARCH_X86
    case Target::Avx2:
        return &N_AVX2::exactTable();
    case Target::Avx512:
    case Target::Avx512Vnni:
        return &N_AVX3::exactTable();
#else
    case Target::Neon:
        return &N_NEON::exactTable();
#endif
    default:
        return nullptr;
    }
}

} // namespace kvatlas::kernels::cpu
#endif

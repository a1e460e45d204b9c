// SPDX-License-Identifier: Apache-2.0
// Products of `fast`: the int8 dot products of each target, and the activations they take.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fast.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands before all that includes highway.h.
#include "kernels/cpu/formats-inl.h"
#include "kernels/cpu/simd-inl.h"

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::uint32_t kWidestTile = HWY_TARGET == HWY_AVX3 ? 12 : 4;

// 32 activations of one token: s = absmax/127, code = round(x/s) to even.
HWY_INLINE void quantizeTile(const float* x, std::uint32_t t, std::uint32_t width, std::int32_t* tile) {
    constexpr int kParts = static_cast<int>(kTileCols) / kLanes;
    const DF df;
    const DI di;
    VF values[kParts];
    VF largest = hn::Zero(df);
    HWY_UNROLL(8) for (int i = 0; i < kParts; ++i) {
        values[i] = hn::LoadU(df, x + kLanes * i);
        largest = hn::Max(largest, hn::Abs(values[i]));
    }
    const float scale = hn::GetLane(hn::MaxOfLanes(df, largest)) / 127.0f;
    alignas(64) std::int8_t codes[kTileCols];
    VI sums[2] = {hn::Zero(di), hn::Zero(di)};
    HWY_UNROLL(8) for (int i = 0; i < kParts; ++i) {
        VI code = hn::Zero(di);
        if (scale > 0.0f) {
            const VF quotient = hn::Div(values[i], hn::Set(df, scale));
            const VF bounded = hn::Min(hn::Max(quotient, hn::Set(df, -127.0f)), hn::Set(df, 127.0f));
            code = hn::NearestInt(bounded);
        }
        hn::StoreU(hn::DemoteTo(DS8(), code), DS8(), codes + kLanes * i);
        sums[i * kLanes / 16] = hn::Add(sums[i * kLanes / 16], code);
    }
    const std::int32_t low = hn::GetLane(hn::SumOfLanes(di, sums[0]));
    const std::int32_t high = hn::GetLane(hn::SumOfLanes(di, sums[1]));
    for (std::uint32_t k4 = 0; k4 < 8; ++k4)
        hwy::CopyBytes<4>(codes + 4 * k4, tile + k4 * width + t);
    float* scales = reinterpret_cast<float*>(tile + 8 * width);
    scales[t] = scale;
    scales[width + t] = scale * static_cast<float>(low + high);
    tile[10 * width + t] = low;
    tile[11 * width + t] = high;
}

void quantize(const float* x, std::uint32_t cols, TokenTile tile, std::byte* panel) {
    for (std::uint32_t t = 0; t < tile.width; ++t) {
        std::int32_t* at = reinterpret_cast<std::int32_t*>(panel);
        const float* row = x + std::size_t{tile.first + t} * cols;
        for (std::uint32_t k = 0; k < cols; k += kTileCols, at += kPanelWords * tile.width)
            quantizeTile(row + k, t, tile.width, at);
    }
}

namespace plain {

#if HWY_TARGET == HWY_AVX3
constexpr int kFastSums = 12;
template <int kBits> struct Dot {
    static constexpr bool kSigned = kBits == 8;
    struct Codes {
        __m512i magnitude;
        __mmask64 negative;
    };
    static HWY_INLINE Codes prepare(VI stored) {
        if constexpr (kBits == 8) {
            const __m512i code = _mm512_xor_si512(stored.raw, _mm512_set1_epi8(-128));
            return {_mm512_abs_epi8(code), _mm512_movepi8_mask(code)};
        }
        return {stored.raw, 0};
    }
    static HWY_INLINE VI step(VI sum, Codes codes, VI q) {
        // The products of two codes fit 16 bits: 2 * 128 * 127 at most. Of 4-bit codes eight such pairs still do.
        __m512i other = q.raw;
        if constexpr (kBits == 8)
            other = _mm512_mask_sub_epi8(other, codes.negative, _mm512_setzero_si512(), other);
        const __m512i pairs = _mm512_maddubs_epi16(codes.magnitude, other);
        if constexpr (kBits == 4)
            return VI{_mm512_add_epi16(sum.raw, pairs)};
        return VI{_mm512_add_epi32(sum.raw, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
    }
    static HWY_INLINE VI join(VI a, VI b) {
        return VI{kBits == 4 ? _mm512_add_epi16(a.raw, b.raw) : _mm512_add_epi32(a.raw, b.raw)};
    }
    static HWY_INLINE VI finish(VI sum) {
        if constexpr (kBits == 4)
            return VI{_mm512_madd_epi16(sum.raw, _mm512_set1_epi16(1))};
        return sum;
    }
};
#elif HWY_TARGET == HWY_AVX2
constexpr int kFastSums = 8;
template <int kBits> struct Dot {
    static constexpr bool kSigned = kBits == 8;
    struct Codes {
        __m256i magnitude;
        __m256i code;
    };
    static HWY_INLINE Codes prepare(VI stored) {
        if constexpr (kBits == 8) {
            const __m256i code = _mm256_xor_si256(stored.raw, _mm256_set1_epi8(-128));
            return {_mm256_abs_epi8(code), code};
        }
        return {stored.raw, stored.raw};
    }
    static HWY_INLINE VI step(VI sum, Codes codes, VI q) {
        // The products of two codes fit 16 bits: 2 * 128 * 127 at most. Of 4-bit codes eight such pairs still do.
        __m256i other = q.raw;
        if constexpr (kBits == 8)
            other = _mm256_sign_epi8(other, codes.code);
        const __m256i pairs = _mm256_maddubs_epi16(codes.magnitude, other);
        if constexpr (kBits == 4)
            return VI{_mm256_add_epi16(sum.raw, pairs)};
        return VI{_mm256_add_epi32(sum.raw, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
    }
    static HWY_INLINE VI join(VI a, VI b) {
        return VI{kBits == 4 ? _mm256_add_epi16(a.raw, b.raw) : _mm256_add_epi32(a.raw, b.raw)};
    }
    static HWY_INLINE VI finish(VI sum) {
        if constexpr (kBits == 4)
            return VI{_mm256_madd_epi16(sum.raw, _mm256_set1_epi16(1))};
        return sum;
    }
};
#else
constexpr int kFastSums = 8;
template <int kBits> struct Dot {
    static constexpr bool kSigned = kBits == 8;
    using Codes = int8x16_t;
    static HWY_INLINE Codes prepare(VI stored) {
        const int8x16_t code = vreinterpretq_s8_s32(stored.raw);
        if constexpr (kBits == 8)
            return veorq_s8(code, vdupq_n_s8(-128));
        return code;
    }
    static HWY_INLINE VI step(VI sum, Codes codes, VI q) {
        const int8x16_t other = vreinterpretq_s8_s32(q.raw);
        const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(other)));
        const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(codes), vget_high_s8(other)));
        return VI(vaddq_s32(sum.raw, vpaddq_s32(low, high)));
    }
    static HWY_INLINE VI join(VI a, VI b) { return hn::Add(a, b); }
    static HWY_INLINE VI finish(VI sum) { return sum; }
};
#endif

#include "kernels/cpu/fast-inl.h"

constexpr ProductFunctions kFast = {kWidestTile, product, quantize, registersOnly};

} // namespace plain
} // namespace
const ProductFunctions& fastTable() {
    return plain::kFast;
}
} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// Highway 1.0.3 has no int8 dot product and none of its targets allows avx512vnni: this one has its own attribute, and
// cpu.cpp its own check of the processor.
#if HWY_TARGET == HWY_AVX3
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace {
namespace vnni {

constexpr int kFastSums = 12;
template <int kBits> struct Dot {
    static constexpr bool kSigned = false;
    using Codes = VI;
    static HWY_INLINE Codes prepare(VI stored) { return stored; }
    static HWY_INLINE VI step(VI sum, Codes codes, VI q) { return VI{_mm512_dpbusd_epi32(sum.raw, codes.raw, q.raw)}; }
    static HWY_INLINE VI join(VI a, VI b) { return hn::Add(a, b); }
    static HWY_INLINE VI finish(VI sum) { return sum; }
};

#include "kernels/cpu/fast-inl.h"

constexpr ProductFunctions kFast = {kWidestTile, product, quantize, registersOnly};

} // namespace vnni
} // namespace
const ProductFunctions& fastVnniTable() {
    return vnni::kFast;
}
} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_POP_ATTRIBUTES
#endif

#endif // KVATLAS_SIMD

#if HWY_ONCE
namespace kvatlas::kernels::cpu {

const ProductFunctions* fastFunctions(Target target) {
    switch (target) {
#if HWY_ARCH_X86
    case Target::Avx2:
        return &N_AVX2::fastTable();
    case Target::Avx512:
        return &N_AVX3::fastTable();
    case Target::Avx512Vnni:
        return &N_AVX3::fastVnniTable();
#else
    case Target::Neon:
        return &N_NEON::fastTable();
#endif
    default:
        return nullptr;
    }
}

} // namespace kvatlas::kernels::cpu
#endif

// SPDX-License-Identifier: Apache-2.0
// What the kernels of one target know of each coded format (packed_matrix.h); included once per target.
#if defined(KVATLAS_KERNELS_CPU_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVATLAS_KERNELS_CPU_FORMATS_INL_H_
#undef KVATLAS_KERNELS_CPU_FORMATS_INL_H_
#else
#define KVATLAS_KERNELS_CPU_FORMATS_INL_H_
#endif

#include "kernels/cpu/packed_matrix.h"
#include "kernels/cpu/simd-inl.h"

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {

enum class Scales { Half, HalfWithMinimum, FloatWithMinimum, HalfOfTwo };

template <WeightFormat kName, int kCodeBits, Scales kScaleKind> struct Coded {
    static constexpr WeightFormat kFormat = kName;
    static constexpr TileLayout kLayout = tileLayout(kName);
    static constexpr int kBits = kCodeBits;
    static constexpr bool kMinimum = kScaleKind == Scales::HalfWithMinimum || kScaleKind == Scales::FloatWithMinimum;
    static constexpr bool kTwoScales = kScaleKind == Scales::HalfOfTwo;

    // d and m of the rows of vector v of the group, from the scales of a tile.
    static HWY_INLINE VF scale(const std::byte* scales, int v) {
        if constexpr (kScaleKind == Scales::FloatWithMinimum)
            return hn::LoadU(DF(), reinterpret_cast<const float*>(scales) + kLanes * v);
        else
            return loadHalf(scales + 2 * kLanes * v);
    }
    static HWY_INLINE VF minimum(const std::byte* scales, int v) {
        if constexpr (kScaleKind == Scales::FloatWithMinimum)
            return hn::LoadU(DF(), reinterpret_cast<const float*>(scales + 64) + kLanes * v);
        else
            return loadHalf(scales + 32 + 2 * kLanes * v);
    }
    // Q6_K: the integer scale of 16 of the tile's 32 columns.
    static HWY_INLINE VI columnScale(const std::byte* scales, int v, int half) {
        const std::int8_t* at = reinterpret_cast<const std::int8_t*>(scales + 32 + 16 * half) + kLanes * v;
        return hn::PromoteTo(DI(), hn::LoadU(DS8(), at));
    }
};

using Q8_0 = Coded<WeightFormat::Q8_0, 8, Scales::Half>;
using Q4_0 = Coded<WeightFormat::Q4_0, 4, Scales::Half>;
using Q4_1 = Coded<WeightFormat::Q4_1, 4, Scales::HalfWithMinimum>;
using Q4_K = Coded<WeightFormat::Q4_K, 4, Scales::FloatWithMinimum>;
using Q5_K = Coded<WeightFormat::Q5_K, 5, Scales::FloatWithMinimum>;
using Q6_K = Coded<WeightFormat::Q6_K, 6, Scales::HalfOfTwo>;

// The lanes of v that are rows below `rows` go to out[row ..].
HWY_INLINE void storeRows(VF v, float* out, std::uint32_t row, std::uint32_t rows) {
    if (row + kLanes <= rows) {
        hn::StoreU(v, DF(), out + row);
    } else if (row < rows) {
        alignas(64) float lanes[kLanes];
        hn::Store(v, DF(), lanes);
        for (std::uint32_t i = 0; row + i < rows; ++i)
            out[row + i] = lanes[i];
    }
}

} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // KVATLAS_SIMD

#endif // include guard

// SPDX-License-Identifier: Apache-2.0
// Vectors and the exponential that the CPU kernels share; included once per target (Highway's foreach_target).
#if defined(KVATLAS_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVATLAS_KERNELS_CPU_SIMD_INL_H_
#undef KVATLAS_KERNELS_CPU_SIMD_INL_H_
#else
#define KVATLAS_KERNELS_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

// On x86 Highway insists on a baseline that we never run (the floor is AVX2).
#undef KVATLAS_SIMD
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define KVATLAS_SIMD 1
#else
#define KVATLAS_SIMD 0
#endif

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The 16 lanes of the order of sums are kVectors vectors of kLanes lanes.
using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DH = hn::Rebind<hwy::float16_t, DF>;
using D16 = hn::Rebind<std::uint16_t, DF>;
using D8 = hn::Rebind<std::uint8_t, DF>;
using DS8 = hn::Rebind<std::int8_t, DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(DF()));
constexpr int kVectors = 16 / kLanes;

HWY_INLINE VF loadHalf(const void* at) {
    return hn::PromoteTo(DF(), hn::LoadU(DH(), static_cast<const hwy::float16_t*>(at)));
}

HWY_INLINE VF loadBrain(const void* at) {
    const VI wide = hn::PromoteTo(DI(), hn::LoadU(D16(), static_cast<const std::uint16_t*>(at)));
    return hn::BitCast(DF(), hn::ShiftLeft<16>(wide));
}

// Asks for what a stream of bytes comes to after kAhead more. The processor's own prefetch stops at each page; into the
// L2 cache, because the L1 cache has too few requests under way. Distances tried with Q4_1 weights of 35 MB on Zen 4,
// in GB/s: none 13, 4 KiB 18, 8 KiB 30, 12 KiB 40, 16 KiB 46, 24 KiB 40, 32 KiB 30; into L1 at most 20.
constexpr std::size_t kAhead = 16384;
HWY_INLINE void prefetchStream(const std::byte* at) {
    // As a number: the address may lie beyond the object.
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) + kAhead), 0, 2);
}

// Lanes folded +8, +4, +2, +1.
HWY_INLINE float foldLanes(const float* partial) {
    float sum[16];
    for (int i = 0; i < 8; ++i)
        sum[i] = partial[i] + partial[i + 8];
    for (int i = 0; i < 4; ++i)
        sum[i] += sum[i + 4];
    for (int i = 0; i < 2; ++i)
        sum[i] += sum[i + 2];
    return sum[0] + sum[1];
}

// 2^k for -126 <= k <= 127.
HWY_INLINE VF powerOfTwo(VI k) {
    return hn::BitCast(DF(), hn::ShiftLeft<23>(hn::Add(k, hn::Set(DI(), 127))));
}

// exp(x), at most 1 unit in the last place off (tests/kernels); arguments are clamped to [-104, 88.72283], where the
// result is 0 and the largest finite number. n = round(x / ln 2), then Cephes' polynomial (Moshier, expf) on the rest.
HWY_INLINE VF exponential(VF x) {
    const DF d;
    const VF clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 88.72283f));
    const VF shift = hn::Set(d, 12582912.0f); // 1.5 * 2^23: adding it rounds to an integer, ties to even
    const VF n = hn::Sub(hn::MulAdd(clamped, hn::Set(d, 1.44269504f), shift), shift);
    VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
    VF p = hn::Set(d, 1.9875691500e-4f);
    p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
    p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
    // Two factors, so that subnormal results are rounded once and 2^128 does not overflow early.
    const VI k = hn::ConvertTo(DI(), n);
    const VI half = hn::ShiftRight<1>(k);
    return hn::Mul(hn::Mul(p, powerOfTwo(half)), powerOfTwo(hn::Sub(k, half)));
}

} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // KVATLAS_SIMD

#endif // include guard

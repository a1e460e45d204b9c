// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/weight_values.h"

#include <bit>
#include <cstring>

namespace kvatlas::kernels::reference {

namespace {

using Byte = std::uint8_t;

float halfAt(const Byte* p) {
    std::uint16_t bits;
    std::memcpy(&bits, p, 2);
    return fromHalf(bits);
}

// Each product and sum below is exact in double, so that the conversion to f32 is the only rounding.
void valuesOfQ8_0(const Byte* group, float* out) {
    const double d = halfAt(group);
    for (int i = 0; i < 32; ++i)
        out[i] = static_cast<float>(d * static_cast<std::int8_t>(group[2 + i]));
}

void valuesOfQ4_0(const Byte* group, float* out) {
    const double d = halfAt(group);
    for (int i = 0; i < 16; ++i) {
        out[i] = static_cast<float>(d * ((group[2 + i] & 15) - 8));
        out[i + 16] = static_cast<float>(d * ((group[2 + i] >> 4) - 8));
    }
}

void valuesOfQ4_1(const Byte* group, float* out) {
    const double d = halfAt(group), m = halfAt(group + 2);
    for (int i = 0; i < 16; ++i) {
        out[i] = static_cast<float>(d * (group[4 + i] & 15) + m);
        out[i + 16] = static_cast<float>(d * (group[4 + i] >> 4) + m);
    }
}

// The 6-bit scale and minimum of sub-block j of a k-quant group; s [12].
void scaleAndMin(int j, const Byte* s, int& scale, int& minimum) {
    if (j < 4) {
        scale = s[j] & 63;
        minimum = s[j + 4] & 63;
    } else {
        scale = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
        minimum = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
    }
}

// d f16, dmin f16, scales [12], codes: 4 runs of 32 bytes, low nibbles one sub-block, high nibbles the next.
void valuesOfQ4_K(const Byte* group, float* out) {
    const double d = halfAt(group), dMin = halfAt(group + 2);
    const Byte* codes = group + 16;
    for (int j = 0; j < 8; ++j) {
        int scale, minimum;
        scaleAndMin(j, group + 4, scale, minimum);
        for (int i = 0; i < 32; ++i) {
            const int code = (codes[32 * (j / 2) + i] >> (4 * (j % 2))) & 15;
            out[32 * j + i] = static_cast<float>(d * scale * code - dMin * minimum);
        }
    }
}

// As Q4_K, with the fifth bits [32] between scales and codes: bit j of byte i belongs to sub-block j.
void valuesOfQ5_K(const Byte* group, float* out) {
    const double d = halfAt(group), dMin = halfAt(group + 2);
    const Byte* high = group + 16;
    const Byte* codes = group + 48;
    for (int j = 0; j < 8; ++j) {
        int scale, minimum;
        scaleAndMin(j, group + 4, scale, minimum);
        for (int i = 0; i < 32; ++i) {
            const int code = ((codes[32 * (j / 2) + i] >> (4 * (j % 2))) & 15) | (((high[i] >> j) & 1) << 4);
            out[32 * j + i] = static_cast<float>(d * scale * code - dMin * minimum);
        }
    }
}

// Low nibbles [128], high bit pairs [64], signed scales [16] for 16 values each, d f16; codes are offset by 32.
void valuesOfQ6_K(const Byte* group, float* out) {
    const Byte* low = group;
    const Byte* high = group + 128;
    const Byte* scales = group + 192;
    const double d = halfAt(group + 208);
    for (int i = 0; i < 256; ++i) {
        const int half = i / 128, r = i % 128, quarter = r / 32, l = r % 32;
        const int nibble = (low[64 * half + 32 * (quarter & 1) + l] >> (4 * (quarter >> 1))) & 15;
        const int pair = (high[32 * half + l] >> (2 * quarter)) & 3;
        const int code = (nibble | (pair << 4)) - 32;
        out[i] = static_cast<float>(d * static_cast<std::int8_t>(scales[i / 16]) * code);
    }
}

} // namespace

float fromHalf(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t exponent = (half >> 10) & 31;
    const std::uint32_t fraction = half & 0x3FFu;
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
    if (exponent != 0)
        return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t toHalf(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return static_cast<std::uint16_t>(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) // 65520 and above round to infinity
        return static_cast<std::uint16_t>(sign | 0x7C00u);
    std::uint32_t kept = 0, dropped = 0, halfway = 0;
    if (magnitude >= 0x38800000u) { // normal in f16
        kept = (magnitude - 0x38000000u) >> 13;
        dropped = magnitude & 0x1FFFu;
        halfway = 0x1000u;
    } else { // subnormal in f16: units of 2^-24
        const std::uint32_t exponent = magnitude >> 23;
        const std::uint32_t shift = 126 - exponent;
        if (shift > 24)
            return sign;
        const std::uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
        kept = fraction >> shift;
        dropped = fraction & ((1u << shift) - 1);
        halfway = 1u << (shift - 1);
    }
    if (dropped > halfway || (dropped == halfway && (kept & 1)))
        ++kept;
    return static_cast<std::uint16_t>(sign | kept);
}

void rowValues(WeightFormat format, const std::byte* row, std::uint32_t cols, float* out) {
    const Byte* p = reinterpret_cast<const Byte*>(row);
    const auto groups = [&](auto decode) {
        const WeightFormatInfo info = infoOf(format);
        for (std::uint32_t k = 0; k < cols; k += info.groupElements, p += info.groupBytes)
            decode(p, out + k);
    };
    switch (format) {
    case WeightFormat::F32:
        std::memcpy(out, p, std::size_t{cols} * 4);
        return;
    case WeightFormat::F16:
        return groups([](const Byte* g, float* o) { *o = halfAt(g); });
    case WeightFormat::BF16:
        return groups([](const Byte* g, float* o) {
            *o = std::bit_cast<float>(static_cast<std::uint32_t>(g[0]) << 16 | static_cast<std::uint32_t>(g[1]) << 24);
        });
    case WeightFormat::Q8_0:
        return groups(valuesOfQ8_0);
    case WeightFormat::Q4_0:
        return groups(valuesOfQ4_0);
    case WeightFormat::Q4_1:
        return groups(valuesOfQ4_1);
    case WeightFormat::Q4_K:
        return groups(valuesOfQ4_K);
    case WeightFormat::Q5_K:
        return groups(valuesOfQ5_K);
    case WeightFormat::Q6_K:
        return groups(valuesOfQ6_K);
    }
}

bool quantizesActivations(WeightFormat format) {
    return format != WeightFormat::F32 && format != WeightFormat::F16 && format != WeightFormat::BF16;
}

} // namespace kvatlas::kernels::reference

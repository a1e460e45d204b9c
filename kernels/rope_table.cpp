// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope_table.h"

#include <bit>
#include <cassert>

namespace kvatlas::kernels {

namespace {

constexpr double kLn2High = 6.93147180369123816490e-01; // 32 bits: n * kLn2High is exact
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInverseLn2 = 1.44269504088896338700e+00;

// Nearest integer, ties to even, for |x| < 2^51.
double nearest(double x) {
    constexpr double kShift = 6755399441055744.0; // 1.5 * 2^52
    return (x + kShift) - kShift;
}

double powerOfTwo(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// sin and cos on |x + tail| <= pi/4: the minimax polynomials of FreeBSD's msun (k_sin.c, k_cos.c).
double sinKernel(double x, double tail) {
    const double z = x * x;
    const double r =
        8.33333333332248946124e-03 +
        z * (-1.98412698298579493134e-04 +
             z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    const double v = z * x;
    return x - ((z * (0.5 * tail - v * r) - tail) - v * -1.66666666666666324348e-01);
}

double cosKernel(double x, double tail) {
    const double z = x * x;
    const double r = z * (4.16666666666666019037e-02 +
                          z * (-1.38888888888741095749e-03 +
                               z * (2.48015872894767294178e-05 +
                                    z * (-2.75573143513906633035e-07 +
                                         z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
    const double half = 0.5 * z;
    const double w = 1.0 - half;
    return w + (((1.0 - w) - half) + (z * r - x * tail));
}

} // namespace

double portableExp(double x) {
    const double n = nearest(x * kInverseLn2);
    const double high = x - n * kLn2High;
    const double low = n * kLn2Low;
    const double r = high - low;
    // exp(r) = 1 + r + r^2/2 + ...; |r| <= 0.35, so that the 14th term is below 2^-57.
    double tail = 0.0;
    for (int k = 15; k >= 2; --k)
        tail = (tail + 1.0) * r / k;
    // (1 + tail) * r + 1, with the rounding error of r carried along.
    const double error = (high - r) - low;
    const double sum = 1.0 + (r + (tail * r + error));
    const int exponent = static_cast<int>(n);
    const int half = exponent / 2;
    return sum * powerOfTwo(half) * powerOfTwo(exponent - half);
}

double portableLog(double x) {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    int exponent = static_cast<int>(bits >> 52) - 1023;
    double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
    if (mantissa > 1.41421356237309504880) {
        mantissa *= 0.5;
        ++exponent;
    }
    // log(m) = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.172: 12 terms leave less than 2^-60.
    const double f = mantissa - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double series = 0.0;
    for (int k = 25; k >= 3; k -= 2)
        series = (series + 1.0 / k) * z;
    // 2 atanh(s) = f - s * (f - 2 * series), as in msun: f is exact, the rest is small.
    const double n = exponent;
    return n * kLn2High + (f - (s * (f - 2.0 * series) - n * kLn2Low));
}

void portableSinCos(double angle, double& sin, double& cos) {
    // Three parts of pi/2, 33 bits each (Cody and Waite): n * part is exact for n < 2^20.
    constexpr double kTwoOverPi = 6.36619772367581382433e-01;
    constexpr double kPart1 = 1.57079632673412561417e+00;
    constexpr double kPart2 = 6.07710050630396597660e-11;
    constexpr double kPart3 = 2.02226624879595063154e-21;
    const double n = nearest(angle * kTwoOverPi);
    const double first = angle - n * kPart1;
    const double second = n * kPart2;
    const double rest = first - second;
    const double lost = ((first - rest) - second) - n * kPart3;
    const double x = rest + lost;
    const double tail = (rest - x) + lost;
    const double s = sinKernel(x, tail);
    const double c = cosKernel(x, tail);
    switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
        sin = s, cos = c;
        break;
    case 1:
        sin = c, cos = -s;
        break;
    case 2:
        sin = -s, cos = -c;
        break;
    default:
        sin = -c, cos = s;
        break;
    }
}

OwnedRopeTable::OwnedRopeTable(std::uint32_t positions, std::uint32_t headDim, double base,
                               std::span<const float> frequencyFactors)
    : m_positions(positions)
    , m_headDim(headDim) {
    assert(headDim % 2 == 0 && base > 0 && positions <= (1u << 20));
    const std::uint32_t half = headDim / 2;
    assert(frequencyFactors.empty() || frequencyFactors.size() == half);
    m_cos.resize(std::size_t{positions} * half);
    m_sin.resize(std::size_t{positions} * half);
    const double logBase = portableLog(base);
    for (std::uint32_t i = 0; i < half; ++i) {
        double frequency = portableExp(-logBase * (2.0 * i / headDim));
        if (!frequencyFactors.empty())
            frequency /= static_cast<double>(frequencyFactors[i]);
        for (std::uint32_t p = 0; p < positions; ++p) {
            double s = 0, c = 0;
            portableSinCos(p * frequency, s, c);
            m_cos[std::size_t{p} * half + i] = static_cast<float>(c);
            m_sin[std::size_t{p} * half + i] = static_cast<float>(s);
        }
    }
}

RopeTable OwnedRopeTable::view() const {
    return {m_cos.data(), m_sin.data(), m_positions, m_headDim};
}

} // namespace kvatlas::kernels

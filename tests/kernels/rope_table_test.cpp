// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace kvatlas::kernels {
namespace {

// FNV-1a over the bits, so that the value does not depend on a library.
std::uint64_t hashOf(const RopeTable& table) {
    std::uint64_t hash = 0xCBF29CE484222325ull;
    const std::size_t n = std::size_t{table.positions} * table.headDim / 2;
    for (const float* values : {table.cos, table.sin})
        for (std::size_t i = 0; i < n; ++i)
            for (int shift = 0; shift < 32; shift += 8)
                hash = (hash ^ ((std::bit_cast<std::uint32_t>(values[i]) >> shift) & 255)) * 0x100000001B3ull;
    return hash;
}

double unitsOff(double actual, double expected) {
    const double unit = std::nextafter(std::fabs(expected), INFINITY) - std::fabs(expected);
    return std::fabs(actual - expected) / unit;
}

TEST(RopeTable, hasTheSameBitsOnEveryMachine) {
    const OwnedRopeTable table(512, 64, 100000.0);
    EXPECT_EQ(hashOf(table.view()), 1562790891761588448u);
}

TEST(RopeTable, agreesWithTheMathLibrary) {
    for (const double base : {10000.0, 100000.0, 500000.0}) {
        const std::uint32_t headDim = 64;
        const OwnedRopeTable table(8192, headDim, base);
        std::size_t different = 0;
        for (std::uint32_t p = 0; p < 8192; p += 3)
            for (std::uint32_t i = 0; i < headDim / 2; ++i) {
                const double angle = p * std::pow(base, -2.0 * i / headDim);
                const std::size_t at = std::size_t{p} * (headDim / 2) + i;
                ASSERT_NEAR(table.view().cos[at], std::cos(angle), 6e-8);
                ASSERT_NEAR(table.view().sin[at], std::sin(angle), 6e-8);
                different += table.view().cos[at] != static_cast<float>(std::cos(angle));
            }
        // A double error of 1e-12 meets a rounding boundary of f32 about once in 50,000 values.
        EXPECT_LE(different, 10u) << "base " << base;
    }
}

TEST(RopeTable, dividesFrequenciesByTheirFactors) {
    const std::vector<float> factors = {1.0f, 2.0f, 8.0f, 1.5f};
    const OwnedRopeTable table(50, 8, 10000.0, factors);
    for (std::uint32_t p = 0; p < 50; ++p)
        for (std::uint32_t i = 0; i < 4; ++i)
            EXPECT_NEAR(table.view().cos[p * 4 + i], std::cos(p * std::pow(10000.0, -2.0 * i / 8) / factors[i]), 6e-8);
}

TEST(PortableMath, isWithinOneUnitOfTheMathLibrary) {
    double worstExp = 0, worstLog = 0, worstSin = 0;
    for (double x = -40; x < 40; x += 0.00731)
        worstExp = std::max(worstExp, unitsOff(portableExp(x), std::exp(x)));
    for (double x = 1e-6; x < 1e7; x *= 1.00137)
        if (std::fabs(std::log(x)) > 0.01)
            worstLog = std::max(worstLog, unitsOff(portableLog(x), std::log(x)));
    for (double angle = 0; angle < 1048576; angle += 17.0301) {
        double s, c;
        portableSinCos(angle, s, c);
        worstSin = std::max({worstSin, unitsOff(s, std::sin(angle)), unitsOff(c, std::cos(angle))});
    }
    EXPECT_LE(worstExp, 2.0);
    EXPECT_LE(worstLog, 2.0);
    EXPECT_LE(worstSin, 2.0);
}

} // namespace
} // namespace kvatlas::kernels

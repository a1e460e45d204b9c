// SPDX-License-Identifier: Apache-2.0
// The rotation table of RoPE (Su et al. 2021, arXiv:2104.09864), the same bits on every machine.
//
// cos and sin of position * base^(-2i/headDim): angles, logarithm, exponential, sine and cosine are computed here in
// double by +, -, *, / alone (no libm, no contraction) and rounded to f32 once. Any thread; the values are owned by the
// object and immutable.
#pragma once

#include "kernels/kernels.h"

#include <span>
#include <vector>

namespace kvatlas::kernels {

class OwnedRopeTable {
public:
    OwnedRopeTable() = default;

    // frequencyFactors [headDim/2] or empty: each frequency is divided by its factor (GGUF's `rope_freqs.weight`).
    // REQUIRES: headDim even, base > 0, positions <= 2^20 (the range the argument reduction is exact for).
    OwnedRopeTable(std::uint32_t positions, std::uint32_t headDim, double base,
                   std::span<const float> frequencyFactors = {});

    // Valid as long as this object.
    RopeTable view() const;

private:
    std::uint32_t m_positions = 0;
    std::uint32_t m_headDim = 0;
    std::vector<float> m_cos; // [positions, headDim/2]
    std::vector<float> m_sin; // [positions, headDim/2]
};

// The functions behind it, for their tests. Errors: below 1 unit in the last place of a double on the ranges named.
double portableExp(double x);                                // |x| <= 700
double portableLog(double x);                                // normal and positive
void portableSinCos(double angle, double& sin, double& cos); // |angle| <= 2^20

} // namespace kvatlas::kernels

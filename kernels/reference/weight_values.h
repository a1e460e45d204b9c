// SPDX-License-Identifier: Apache-2.0
// The values that the bytes of a weight row stand for (ggml's layouts, ggml-common.h and ggml-quants.c). Any thread.
#pragma once

#include "kernels/shapes.h"

#include <cstddef>
#include <cstdint>

namespace kvatlas::kernels::reference {

// IEEE binary16 <-> binary32; to f16 rounds to nearest, ties to even, and overflows to infinity.
float fromHalf(std::uint16_t half);
std::uint16_t toHalf(float value);

// out [cols] = the values of one row, each rounded to f32 once. REQUIRES: cols a multiple of the format's group.
void rowValues(WeightFormat format, const std::byte* row, std::uint32_t cols, float* out);

// Whether `fast` quantizes the activations for this format (otherwise fast is exact).
bool quantizesActivations(WeightFormat format);

} // namespace kvatlas::kernels::reference

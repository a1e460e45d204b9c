// SPDX-License-Identifier: Apache-2.0
// The reference backend: each function as its formula reads, sums in double, one rounding to f32 at the end.
//
// Promise. What kernels.h says, within the tolerance of one f32 rounding; the order of its sums is its own. Dequantized
// weights are rounded to f32 first, as `exact` says; `fast` quantizes the activations as kernels.h says, then sums in
// double. Slow, but one token of a 135 M model takes about a tenth of a second.
#pragma once

#include "kernels/kernels.h"

namespace kvatlas::kernels {

const Kernels& referenceKernels();

} // namespace kvatlas::kernels

// SPDX-License-Identifier: Apache-2.0
// The CPU backend: Google Highway, one source for every instruction set, chosen at run time.
//
// Promise. The bits of every result depend on the inputs alone: not on the target, the threads, the rows that stand in
// one call, the block size or the placement of blocks (the order of sums of kernels.h; where it leaves a choice,
// kernels/cpu/README.md names it). REQUIRES of the machine: x86-64 with AVX2, FMA and F16C, or 64-bit Arm.
//
// Memory. A stream owns its threads and its scratch memory; the scratch grows when a call is larger than every call
// before it and never shrinks, so that the steady state allocates nothing.
//
// Errors. On a machine below the floor cpuRefusal() says so in one sentence and cpuKernels().createStream returns null.
#pragma once

#include "kernels/kernels.h"

#include <span>
#include <string_view>

namespace kvatlas::kernels {

// The best target of this machine. Valid for the life of the program.
const Kernels& cpuKernels();

// Null where this machine can run the CPU backend, else a sentence for the user.
const char* cpuRefusal();

// The targets this machine offers, best first, e.g. "AVX-512 VNNI", "AVX-512", "AVX2"; empty below the floor.
std::span<const std::string_view> cpuTargets();

// The backend restricted to one target, for tests and benchmarks; null where the machine does not offer it.
const Kernels* cpuKernelsFor(std::string_view target);

} // namespace kvatlas::kernels

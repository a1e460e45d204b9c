// SPDX-License-Identifier: Apache-2.0
// The functions that are compiled once per instruction set, and how the driver (cpu.cpp) names them. Any thread.
#pragma once

#include "kernels/cpu/packed_matrix.h"
#include "kernels/kernels.h"

namespace kvatlas::kernels::cpu {

enum class Target : std::uint8_t { Avx2, Avx512, Avx512Vnni, Neon };

// --- products -------------------------------------------------------------------------------------------------------

// Activations of up to kMaxTile rows ("tokens") side by side.
//   fast, per 32 columns: codes [8][width] of 4 int8, s [width] f32, s*sum f32 [width], sums of 16 i32 [2][width]
//   exact: [cols][width] f32
constexpr std::uint32_t kMaxTile = 12;
constexpr std::uint32_t kPanelWords = 12; // 4-byte words per token and 32 columns of a fast panel

struct TokenTile {
    std::uint32_t first = 0;
    std::uint32_t width = 0;
};

// One matrix's share of a product: row groups [firstGroup, lastGroup) for all token tiles.
struct ProductTask {
    const CpuMatrix* matrix = nullptr;
    float* out = nullptr; // [n, rows]
    std::uint32_t firstGroup = 0;
    std::uint32_t lastGroup = 0;
    const TokenTile* tiles = nullptr;
    std::uint32_t tileCount = 0;
    const std::byte* panels = nullptr; // tile t at first(t) * bytes of one token
    std::byte* scratch = nullptr;      // exactScratchBytes(n); exact only
};

// One kind of arithmetic of one target.
struct ProductFunctions {
    std::uint32_t widestTile = 0; // 4 or 12: tiles are 12, 8, 4, 2 or 1 tokens wide
    void (*product)(const ProductTask&) = nullptr;
    // The panel of one tile from x [n, cols].
    void (*panel)(const float* x, std::uint32_t cols, TokenTile tile, std::byte* panel) = nullptr;
    // The arithmetic alone, operands in registers: the roof of `product`. Returns the operations done (a product and
    // a sum are two).
    double (*registersOnly)(std::uint32_t rounds) = nullptr;
};

// Null where this build has no such target.
const ProductFunctions* exactFunctions(Target target);
const ProductFunctions* fastFunctions(Target target); // cols a multiple of 32, formats with codes
std::size_t exactScratchBytes(std::uint32_t n);

// --- attention ------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kSegmentSlots = 256;
constexpr std::uint32_t kMaxQueries = 12; // queries (rows x heads of a KV group) that share one reading of K and V

// Rows [firstRow, lastRow) of one sequence, heads [firstHead, firstHead + heads) of KV head kvHead.
struct AttendTask {
    const float* q = nullptr; // [rows, queryHeads, headDim]
    float* out = nullptr;     // [rows, queryHeads, headDim]
    std::uint32_t queryHeads = 0;
    float scale = 0;
    const AttentionBatch* batch = nullptr;
    const KvArena* arena = nullptr;
    std::uint32_t layer = 0;
    std::uint32_t firstRow = 0, lastRow = 0;
    std::uint32_t firstHead = 0, heads = 0;
    std::uint32_t kvHead = 0;
    std::uint32_t firstSegment = 0, lastSegment = 0;
    std::byte* scratch = nullptr; // attendScratchBytes(headDim)
};

// What a run of segments leaves for one query: maximum, sum, output [headDim], as floats side by side.
constexpr std::size_t partialFloats(std::uint32_t headDim) {
    return std::size_t{headDim} + 2;
}

struct AttentionFunctions {
    // All segments of the task in order, combined and divided: writes out.
    void (*attend)(const AttendTask&) = nullptr;
    // One segment of one row (lastRow = firstRow + 1): partials [heads, partialFloats].
    void (*segment)(const AttendTask&, float* partials) = nullptr;
    // out [headDim] from the partials of one query, `stride` floats apart, segments ascending.
    void (*combine)(const float* partials, std::size_t stride, std::uint32_t segments, std::uint32_t headDim,
                    float* scratch, float* out) = nullptr;
};

std::size_t attendScratchBytes(std::uint32_t headDim);
const AttentionFunctions* attentionFunctions(Target target);

// --- everything that goes row by row
// ----------------------------------------------------------------------------------

struct RowFunctions {
    void (*embed)(const CpuMatrix& table, std::uint32_t row, float* out) = nullptr;
    void (*rmsNorm)(const float* x, const float* weight, float epsilon, std::uint32_t d, float* out) = nullptr;
    // One row [heads, headDim]; cos, sin [headDim/2].
    void (*rope)(float* x, const float* cos, const float* sin, std::uint32_t heads, std::uint32_t headDim,
                 RopePairs pairs) = nullptr;
    // One row [kvHeads, headDim] into `slot` of `block`.
    void (*storeKv)(const float* k, const float* v, const KvLayout& layout, std::uint32_t layer, std::uint32_t slot,
                    std::byte* block) = nullptr;
    void (*siluMultiply)(float* gate, const float* up, std::size_t n) = nullptr;
    void (*add)(float* x, const float* y, std::size_t n) = nullptr;
    void (*exp)(const float* x, std::size_t n, float* out) = nullptr; // for the tests of its accuracy
    // Reads every byte; bytes a multiple of 1024. The result keeps the loads from being left out. `ahead`: asks for the
    // bytes beforehand, as the products do; otherwise that is left to the processor.
    std::uint32_t (*readBytes)(const std::byte* data, std::size_t bytes, bool ahead) = nullptr;
};

const RowFunctions* rowFunctions(Target target);

} // namespace kvatlas::kernels::cpu

// SPDX-License-Identifier: Apache-2.0
// The compute interface: a table of functions that each backend (reference, cpu, ...) fills in.
//
// Promise. Each function works on the pointers and shapes it is given, allocates nothing, keeps no global state, does
// no I/O, and returns the bytes it read and wrote (weights, activations, KV), so that achieved bandwidth is always
// known. Exceptions: the create functions, which allocate and may throw std::bad_alloc.
//
// Thread. One thread at a time per Stream. A Stream may spread the work over its own threads.
//
// Order of every sum (the same for every chunk, batch, block size, thread count and SIMD target; `reference` computes
// in double and promises a tolerance instead):
//   products   one lane = one output row, one accumulator, k ascending, never split over k.
//              exact: w = fma(code, d, m), acc = fma(w, x, acc).
//              fast: per 32 the exact integer sum S, then acc = fma(S, d*s, acc), acc = fma(m, s*sum(q), acc).
//   row sums   element i in lane i mod 16; lanes folded +8, +4, +2, +1.
//   attention  segments of 256 slots counted from slot 0. Scores: lane = key, d ascending; segment maximum;
//              p = exp(s - max); 16 partial sums; output: lane = channel, slots ascending. Segments combine in
//              ascending order.
//   exp, sin, cos are our own; divide and square root are IEEE; no estimates; no FTZ/DAZ.
#pragma once

#include "kernels/shapes.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kvatlas::kernels {

// A backend's execution context: its threads and its scratch memory. Owned by the caller.
class Stream {
public:
    virtual ~Stream() = default;
    virtual unsigned threads() const = 0;
};

// A weight matrix in the backend's own order of bytes. Owned by the caller; immutable, shared by any number of streams.
class PackedMatrix {
public:
    virtual ~PackedMatrix() = default;
    std::uint32_t rows = 0; // output features
    std::uint32_t cols = 0; // input features
    WeightFormat format = WeightFormat::F32;
    std::size_t bytes = 0; // what one full read of the matrix moves
};

// One product of several that share their input: out [n, weight.rows] = x [n, weight.cols] * weight^T.
struct Product {
    const PackedMatrix* weight = nullptr;
    float* out = nullptr;
};

// cos and sin of position * base^(-2i/headDim), i < headDim/2, computed in double and rounded to f32.
struct RopeTable {
    const float* cos = nullptr; // [positions, headDim/2]
    const float* sin = nullptr; // [positions, headDim/2]
    std::uint32_t positions = 0;
    std::uint32_t headDim = 0;
};
enum class RopePairs : std::uint8_t { Interleaved, Halves }; // (2i, 2i+1), or (i, i + headDim/2)

// The rows of one forward pass and where their K and V live. Rows of one sequence stand together, positions ascending.
struct AttentionBatch {
    std::uint32_t rows = 0;
    const std::uint32_t* sequenceOf = nullptr; // [rows]: index into blockTables
    const std::uint32_t* positionOf = nullptr; // [rows]: position in the sequence = slot
    std::uint32_t sequences = 0;
    const std::uint32_t* const* blockTables = nullptr; // [sequences][logical block]: block index in the arena
};

// The KV arena of one pool: block b starts at blocks + b * layout.blockBytes().
struct KvArena {
    std::byte* blocks = nullptr;
    KvLayout layout;
};

struct Kernels {
    const char* name = nullptr;   // "reference" | "cpu" | ...
    const char* target = nullptr; // the instruction set in use, e.g. "AVX-512 VNNI"

    // Null where this machine cannot run the backend (cpuRefusal() says why).
    std::unique_ptr<Stream> (*createStream)(unsigned threads) = nullptr;

    // Re-orders a matrix of a model file. data: [rows, cols] in `format`, rows contiguous; cols a multiple of the
    // group.
    std::unique_ptr<PackedMatrix> (*createMatrix)(WeightFormat format, std::uint32_t rows, std::uint32_t cols,
                                                  const std::byte* data) = nullptr;

    // out [n, table.cols] = dequantized rows `tokens[n]` of table. REQUIRES: 0 <= tokens[i] < table.rows.
    std::uint64_t (*embed)(Stream&, const PackedMatrix& table, const std::int32_t* tokens, std::uint32_t n,
                           float* out) = nullptr;

    // out [n, d] = x [n, d] / sqrt(mean(x^2) + epsilon) * weight [d]. out may be x.
    std::uint64_t (*rmsNorm)(Stream&, const float* x, const float* weight, float epsilon, std::uint32_t n,
                             std::uint32_t d, float* out) = nullptr;

    // All products read the same x [n, cols]. REQUIRES: equal cols. Integer is treated as Fast here.
    std::uint64_t (*multiply)(Stream&, std::span<const Product> products, const float* x, std::uint32_t n,
                              Arithmetic arithmetic) = nullptr;

    // Rotates x [n, heads, headDim] in place; row i by positions[i]. REQUIRES: positions[i] < table.positions.
    std::uint64_t (*rope)(Stream&, float* x, const std::uint32_t* positions, std::uint32_t n, std::uint32_t heads,
                          const RopeTable& table, RopePairs pairs) = nullptr;

    // Writes K and V [rows, kvHeads, headDim] of `layer` into the slots of their rows, rounded to the storage format
    // (to nearest, ties to even).
    std::uint64_t (*storeKv)(Stream&, const float* k, const float* v, const AttentionBatch& batch, const KvArena& arena,
                             std::uint32_t layer) = nullptr;

    // out [rows, queryHeads, headDim] = softmax(q k^T * scale) v over the slots 0 .. positionOf[row] as stored, the
    // row's own included. GQA: query head h reads KV head h / (queryHeads / kvHeads).
    std::uint64_t (*attend)(Stream&, const float* q, std::uint32_t queryHeads, float scale, const AttentionBatch& batch,
                            const KvArena& arena, std::uint32_t layer, float* out) = nullptr;

    // gate [n] = silu(gate) * up.
    std::uint64_t (*siluMultiply)(Stream&, float* gate, const float* up, std::size_t n) = nullptr;

    // x [n] += y.
    std::uint64_t (*add)(Stream&, float* x, const float* y, std::size_t n) = nullptr;
};

} // namespace kvatlas::kernels

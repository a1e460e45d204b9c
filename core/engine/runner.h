// SPDX-License-Identifier: Apache-2.0
// One forward pass of a llama-type model over rows of several sequences, K and V written to and read from blocks.
//
// Promise. The logits of a row depend on the model, the tokens up to it, the arithmetic and the storage format alone
// (bit for bit on the cpu backend): not on the other rows of the batch, the chunks, the blocks or the threads.
// Memory: scratch grows with the largest batch so far and is kept. One thread; the stream inside may use more.
// Errors of create: arithmetic that no backend offers, threads that cannot start.
#pragma once

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/engine/kernel_times.h"
#include "core/engine/weights.h"
#include "kernels/kernels.h"
#include "kernels/rope_table.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kvatlas::engine {

// Tokens at the positions first, first + 1, ... of one sequence. Slots up to the last of them lie in `blocks`.
struct SequenceRows {
    std::span<const TokenId> tokens;
    Position first = 0;
    std::span<const std::uint32_t> blocks; // [logical block]: index in the arena
};

class Runner {
public:
    // Positions 0 .. positions - 1 can be computed.
    static Result<std::unique_ptr<Runner>> create(std::shared_ptr<const Weights> weights,
                                                  kernels::Arithmetic arithmetic, unsigned threads,
                                                  std::uint32_t positions, const Clock& clock);

    // Computes all rows, in the order in which they stand in `sequences`, and the logits of the rows `wanted` (indexes
    // over all rows, ascending). Returns [wanted.size(), vocabulary], valid until the next call.
    std::span<const float> forward(std::span<const SequenceRows> sequences, std::span<const std::uint32_t> wanted,
                                   const kernels::KvArena& arena, KernelTimes& times);

    unsigned threads() const { return m_stream->threads(); }
    const Weights& weights() const { return *m_weights; }
    kernels::Arithmetic arithmetic() const { return m_arithmetic; }

private:
    Runner(std::shared_ptr<const Weights> weights, kernels::Arithmetic arithmetic,
           std::unique_ptr<kernels::Stream> stream, std::uint32_t positions, const Clock& clock);

    void gather(std::span<const SequenceRows> sequences);
    void attention(std::uint32_t layer, const kernels::KvArena& arena, KernelTimes& times);
    void feedForward(std::uint32_t layer, KernelTimes& times);
    void head(std::span<const std::uint32_t> wanted, KernelTimes& times);
    void multiply(KernelTimes& times, trace::KernelKind kind, std::uint16_t layer,
                  std::span<const kernels::Product> products, const float* x, std::uint32_t rows);
    template <class Call>
    void timed(KernelTimes& times, trace::KernelKind kind, std::uint16_t layer, std::uint64_t flops, Call&& call);

    std::shared_ptr<const Weights> m_weights;
    const kernels::Kernels& m_kernels;
    kernels::Arithmetic m_arithmetic;
    std::unique_ptr<kernels::Stream> m_stream;
    kernels::OwnedRopeTable m_rope;
    const Clock& m_clock;

    // Of the running pass.
    kernels::AttentionBatch m_batch;
    std::uint64_t m_attendedSlots = 0;
    std::vector<TokenId> m_tokens;                         // [rows]
    std::vector<std::uint32_t> m_sequenceOf, m_positionOf; // [rows]
    std::vector<const std::uint32_t*> m_tables;            // [sequences]
    std::vector<float> m_x, m_normed;                      // [rows, embedding]
    std::vector<float> m_q, m_attended;                    // [rows, queryHeads * headDim]
    std::vector<float> m_k, m_v;                           // [rows, kvHeads * headDim]
    std::vector<float> m_gate, m_up;                       // [rows, feedForward]
    std::vector<float> m_wantedX;                          // [wanted, embedding]
    std::vector<float> m_logits;                           // [wanted, vocabulary]
};

} // namespace kvatlas::engine

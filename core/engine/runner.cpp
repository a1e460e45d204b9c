// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runner.h"

#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <new>
#include <system_error>

namespace kvatlas::engine {

using kernels::Product;
using trace::KernelKind;

namespace {

constexpr std::uint32_t kMostPositions = 1u << 20; // OwnedRopeTable's limit

constexpr std::uint16_t kAllLayers = trace::KernelSpan::kAllLayers;

void fit(std::vector<float>& buffer, std::size_t size) {
    if (buffer.size() < size)
        buffer.resize(size);
}

} // namespace

Result<std::unique_ptr<Runner>> Runner::create(std::shared_ptr<const Weights> weights, kernels::Arithmetic arithmetic,
                                               unsigned threads, std::uint32_t positions, const Clock& clock) {
    if (arithmetic == kernels::Arithmetic::Integer)
        return makeError(ErrorKind::Refused,
                         "arithmetic \"integer\" (int8 attention) is not available yet; use \"fast\" or \"exact\"");
    if (positions > kMostPositions)
        return makeError(ErrorKind::Refused, "max_model_len is {}, more than {}; lower it in the strategy", positions,
                         kMostPositions);
    try {
        auto stream = weights->kernels().createStream(threads);
        if (!stream)
            return makeError(ErrorKind::Failed, "the {} backend does not run on this machine; choose another backend",
                             weights->kernels().name);
        return std::unique_ptr<Runner>(new Runner(std::move(weights), arithmetic, std::move(stream), positions, clock));
    } catch (const std::bad_alloc&) {
        return makeError(ErrorKind::OutOfMemory, "no memory for a run of {} positions; lower max_model_len", positions);
    } catch (const std::system_error& error) {
        return makeError(ErrorKind::Failed, "cannot start {} threads ({}); ask for fewer", threads, error.what());
    }
}

Runner::Runner(std::shared_ptr<const Weights> weights, kernels::Arithmetic arithmetic,
               std::unique_ptr<kernels::Stream> stream, std::uint32_t positions, const Clock& clock)
    : m_weights(std::move(weights))
    , m_kernels(m_weights->kernels())
    , m_arithmetic(arithmetic)
    , m_stream(std::move(stream))
    , m_rope(positions, m_weights->config().headDim, m_weights->config().ropeFreqBase, m_weights->model().ropeFactors())
    , m_clock(clock) {}

template <class Call>
void Runner::timed(KernelTimes& times, KernelKind kind, std::uint16_t layer, std::uint64_t flops, Call&& call) {
    const std::int64_t beforeNs = m_clock.nowNs();
    const std::uint64_t bytes = call();
    times.add(kind, layer, m_clock.nowNs() - beforeNs, bytes, flops);
}

void Runner::multiply(KernelTimes& times, KernelKind kind, std::uint16_t layer, std::span<const Product> products,
                      const float* x, std::uint32_t rows) {
    std::uint64_t flops = 0;
    for (const Product& product : products)
        flops += 2 * std::uint64_t{product.weight->rows} * product.weight->cols * rows;
    timed(times, kind, layer, flops, [&] { return m_kernels.multiply(*m_stream, products, x, rows, m_arithmetic); });
}

void Runner::gather(std::span<const SequenceRows> sequences) {
    m_tokens.clear();
    m_sequenceOf.clear();
    m_positionOf.clear();
    m_tables.clear();
    m_attendedSlots = 0;
    for (const SequenceRows& sequence : sequences) {
        assert(sequence.first + sequence.tokens.size() <= m_rope.view().positions);
        for (std::uint32_t i = 0; i < sequence.tokens.size(); ++i) {
            m_tokens.push_back(sequence.tokens[i]);
            m_sequenceOf.push_back(static_cast<std::uint32_t>(m_tables.size()));
            m_positionOf.push_back(sequence.first + i);
            m_attendedSlots += sequence.first + i + 1;
        }
        m_tables.push_back(sequence.blocks.data());
    }
    m_batch.rows = static_cast<std::uint32_t>(m_tokens.size());
    m_batch.sequenceOf = m_sequenceOf.data();
    m_batch.positionOf = m_positionOf.data();
    m_batch.sequences = static_cast<std::uint32_t>(m_tables.size());
    m_batch.blockTables = m_tables.data();

    const model::ModelConfig& config = m_weights->config();
    const std::size_t rows = m_batch.rows;
    fit(m_x, rows * config.embedding);
    fit(m_normed, rows * config.embedding);
    fit(m_q, rows * config.queryHeads * config.headDim);
    fit(m_attended, rows * config.queryHeads * config.headDim);
    fit(m_k, rows * config.kvHeads * config.headDim);
    fit(m_v, rows * config.kvHeads * config.headDim);
    fit(m_gate, rows * config.feedForward);
    fit(m_up, rows * config.feedForward);
}

std::span<const float> Runner::forward(std::span<const SequenceRows> sequences, std::span<const std::uint32_t> wanted,
                                       const kernels::KvArena& arena, KernelTimes& times) {
    gather(sequences);
    timed(times, KernelKind::Embed, kAllLayers, 0, [&] {
        return m_kernels.embed(*m_stream, m_weights->tokenEmbedding(), m_tokens.data(), m_batch.rows, m_x.data());
    });
    for (std::uint32_t layer = 0; layer < m_weights->layers().size(); ++layer) {
        attention(layer, arena, times);
        feedForward(layer, times);
    }
    head(wanted, times);
    return {m_logits.data(), wanted.size() * m_weights->config().vocabulary};
}

void Runner::attention(std::uint32_t layer, const kernels::KvArena& arena, KernelTimes& times) {
    const model::ModelConfig& config = m_weights->config();
    const LayerMatrices& weights = m_weights->layers()[layer];
    const std::uint32_t rows = m_batch.rows, embedding = config.embedding;
    const auto id = static_cast<std::uint16_t>(layer);
    const std::size_t values = std::size_t{rows} * embedding;
    const auto epsilon = static_cast<float>(config.rmsEpsilon);

    timed(times, KernelKind::RmsNorm, id, 4 * values, [&] {
        return m_kernels.rmsNorm(*m_stream, m_x.data(), weights.attentionNorm.data(), epsilon, rows, embedding,
                                 m_normed.data());
    });
    const std::array<Product, 3> qkv{
        {{weights.query.get(), m_q.data()}, {weights.key.get(), m_k.data()}, {weights.value.get(), m_v.data()}}};
    multiply(times, KernelKind::Multiply, id, qkv, m_normed.data(), rows);
    const auto rotate = [&](float* x, std::uint32_t heads) {
        timed(times, KernelKind::Rope, id, std::uint64_t{3} * rows * heads * config.headDim, [&] {
            return m_kernels.rope(*m_stream, x, m_batch.positionOf, rows, heads, m_rope.view(),
                                  kernels::RopePairs::Interleaved);
        });
    };
    rotate(m_q.data(), config.queryHeads);
    rotate(m_k.data(), config.kvHeads);
    timed(times, KernelKind::StoreKv, id, 0,
          [&] { return m_kernels.storeKv(*m_stream, m_k.data(), m_v.data(), m_batch, arena, layer); });
    const float scale = 1.0F / std::sqrt(static_cast<float>(config.headDim));
    timed(times, KernelKind::Attend, id, 4 * m_attendedSlots * config.queryHeads * config.headDim, [&] {
        return m_kernels.attend(*m_stream, m_q.data(), config.queryHeads, scale, m_batch, arena, layer,
                                m_attended.data());
    });
    const Product out{weights.attentionOut.get(), m_normed.data()};
    multiply(times, KernelKind::Multiply, id, {&out, 1}, m_attended.data(), rows);
    timed(times, KernelKind::Add, id, values,
          [&] { return m_kernels.add(*m_stream, m_x.data(), m_normed.data(), values); });
}

void Runner::feedForward(std::uint32_t layer, KernelTimes& times) {
    const model::ModelConfig& config = m_weights->config();
    const LayerMatrices& weights = m_weights->layers()[layer];
    const std::uint32_t rows = m_batch.rows, embedding = config.embedding;
    const auto id = static_cast<std::uint16_t>(layer);
    const std::size_t values = std::size_t{rows} * embedding, hidden = std::size_t{rows} * config.feedForward;

    timed(times, KernelKind::RmsNorm, id, 4 * values, [&] {
        return m_kernels.rmsNorm(*m_stream, m_x.data(), weights.feedForwardNorm.data(),
                                 static_cast<float>(config.rmsEpsilon), rows, embedding, m_normed.data());
    });
    const std::array<Product, 2> gateUp{{{weights.gate.get(), m_gate.data()}, {weights.up.get(), m_up.data()}}};
    multiply(times, KernelKind::Multiply, id, gateUp, m_normed.data(), rows);
    timed(times, KernelKind::SiluMultiply, id, 5 * hidden,
          [&] { return m_kernels.siluMultiply(*m_stream, m_gate.data(), m_up.data(), hidden); });
    const Product down{weights.down.get(), m_normed.data()};
    multiply(times, KernelKind::Multiply, id, {&down, 1}, m_gate.data(), rows);
    timed(times, KernelKind::Add, id, values,
          [&] { return m_kernels.add(*m_stream, m_x.data(), m_normed.data(), values); });
}

void Runner::head(std::span<const std::uint32_t> wanted, KernelTimes& times) {
    if (wanted.empty())
        return;
    const model::ModelConfig& config = m_weights->config();
    const auto count = static_cast<std::uint32_t>(wanted.size());
    const std::size_t embedding = config.embedding;
    fit(m_wantedX, count * embedding);
    fit(m_logits, std::size_t{count} * config.vocabulary);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        assert(wanted[i] < m_batch.rows);
        std::memcpy(m_wantedX.data() + i * embedding, m_x.data() + wanted[i] * embedding, embedding * sizeof(float));
    }
    timed(times, KernelKind::RmsNorm, kAllLayers, 4 * count * embedding, [&] {
        return m_kernels.rmsNorm(*m_stream, m_wantedX.data(), m_weights->outputNorm().data(),
                                 static_cast<float>(config.rmsEpsilon), count, config.embedding, m_wantedX.data());
    });
    const Product logits{&m_weights->output(), m_logits.data()};
    multiply(times, KernelKind::Head, kAllLayers, {&logits, 1}, m_wantedX.data(), count);
}

} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
// What kind of network a model file holds, read from its metadata and kept within limits that the rest of the program
// can rely on: every count below is at least 1 and at most its kMax, headDim and ropeDimensions are even, kvHeads
// divides queryHeads. Whether the tensors agree is Model's check (model.h). Plain values, any thread. Errors: Refused,
// one sentence.
#pragma once

#include "core/model/gguf.h"

#include <cstdint>
#include <string>

namespace kvatlas::model {

struct ModelConfig {
    static constexpr std::uint32_t kMaxLayers = 1024;
    static constexpr std::uint32_t kMaxHeads = 1024;
    static constexpr std::uint32_t kMaxHeadDim = 1024;
    static constexpr std::uint32_t kMaxEmbedding = 1 << 17;
    static constexpr std::uint32_t kMaxFeedForward = 1 << 20;
    static constexpr std::uint32_t kMaxContextTokens = 1 << 24;
    static constexpr std::uint32_t kMaxVocabulary = 1 << 22;

    std::string architecture; // "llama"
    std::string name;         // valid UTF-8: the file's, without .gguf (general.name is often a training run's)
    std::uint32_t layers = 0;
    std::uint32_t embedding = 0; // length of a token's vector
    std::uint32_t feedForward = 0;
    std::uint32_t queryHeads = 0;
    std::uint32_t kvHeads = 0;
    std::uint32_t headDim = 0;
    std::uint32_t ropeDimensions = 0; // = headDim; channels are rotated in pairs (2i, 2i + 1)
    std::uint32_t contextTokens = 0;
    std::uint32_t vocabulary = 0;
    double ropeFreqBase = 10'000.0;
    double rmsEpsilon = 0.0;

    // K and V of one token in all layers, in values (not bytes).
    std::uint64_t kvValuesPerToken() const { return std::uint64_t{2} * layers * kvHeads * headDim; }
};

// Refuses what is no complete language model of a known architecture (a projector, an adapter, a vocabulary, one part
// of a split model, another architecture, a feature that would change the results) with a sentence of its own.
// `vocabulary` is the number of rows of the token embedding.
Result<ModelConfig> readModelConfig(const GgufFile& file);

} // namespace kvatlas::model

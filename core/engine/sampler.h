// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from the logits. The same choice on every machine: candidates in the order (logit descending,
// id ascending), sums in double in that order, exponentials of our own, and counter-based random numbers keyed by
// (seed, request, position), so that the batch and the schedule change nothing. One thread; keeps scratch memory.
//
// Order of the truncations: llama.cpp's - top_k, top_p, min_p (both on probabilities at temperature 1), temperature.
// A logit that is not a number counts as the smallest.
#pragma once

#include "core/base/ids.h"
#include "core/trace/event.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kvatlas::engine {

struct Sampling {
    double temperature = 0; // 0 = greedy, and then nothing below counts
    std::uint32_t topK = 0; // 0 = off
    double topP = 1;        // 1 = off
    double minP = 0;        // 0 = off
    std::uint64_t seed = 0;
};

struct Sampled {
    TokenId token = 0;
    std::array<trace::Candidate, 8> top{}; // of the whole vocabulary, before truncation, at the sampling's temperature
};

class Sampler {
public:
    // logits [vocabulary], at least one. `position` is the one that the new token will take.
    Sampled sample(std::span<const float> logits, const Sampling& sampling, RequestId request, Position position);

private:
    TokenId draw(const Sampling& sampling, RequestId request, Position position);
    void sortByLogit();

    // A logit and its token in one number: the greater, the earlier in the order of candidates.
    std::vector<std::uint64_t> m_candidates, m_scratch;
    std::vector<double> m_weights;
};

// Philox 4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Uniform in [0, 1), 53 bits.
double uniform(std::uint64_t seed, RequestId request, Position position);

} // namespace kvatlas::engine

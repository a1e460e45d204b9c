// SPDX-License-Identifier: Apache-2.0
// The model alone, without scheduler or events: tokens in, logits out. For judging: losses, comparisons, the oracle.
// One thread at a time. Errors: Refused (empty, too long, unknown token, logits that are not numbers), OutOfMemory, as
// Runner::create.
#pragma once

#include "core/engine/runner.h"

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace kvatlas::engine {

struct ForwardOptions {
    kernels::Arithmetic arithmetic = kernels::Arithmetic::Exact;
    kernels::StorageFormat kFormat = kernels::StorageFormat::F32;
    kernels::StorageFormat vFormat = kernels::StorageFormat::F32;
    std::uint32_t chunkTokens = 256;
    std::uint32_t blockTokens = 16;
    unsigned threads = 1;
};

// Calls `take(position, logits [vocabulary])` for each of the wanted positions, ascending. The logits at position p
// predict the token at p + 1. Positions past the end are left out.
using TakeLogits = std::function<void(Position, std::span<const float>)>;
Result<void> forwardTokens(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                           std::span<const Position> wanted, const ForwardOptions& options, const TakeLogits& take);

// As above, for every position.
Result<void> forwardTokens(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                           const ForwardOptions& options, const TakeLogits& take);

// None when every logit is a finite number; else the sentence about the model.
std::optional<std::string> logitsFault(std::span<const float> logits);

// ln(sum e^logit), in double; minus infinity is skipped.
double logSumExp(std::span<const float> logits);

// Mean of -ln p(token | tokens before) over all tokens but the first. REQUIRES: two tokens at least.
Result<double> meanLoss(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                        const ForwardOptions& options);

} // namespace kvatlas::engine

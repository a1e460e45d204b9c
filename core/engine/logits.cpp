// SPDX-License-Identifier: Apache-2.0
#include "core/engine/logits.h"

#include "core/base/counted.h"
#include "core/engine/kv_store.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvatlas::engine {

namespace {

// Row indexes of the wanted positions inside [first, first + count).
std::vector<std::uint32_t> rowsIn(std::span<const Position> wanted, Position first, std::uint32_t count) {
    std::vector<std::uint32_t> rows;
    for (auto at = std::ranges::lower_bound(wanted, first); at != wanted.end() && *at < first + count; ++at)
        rows.push_back(*at - first);
    return rows;
}

} // namespace

Result<void> forwardTokens(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                           std::span<const Position> wanted, const ForwardOptions& options, const TakeLogits& take) {
    const model::ModelConfig& config = weights->config();
    if (tokens.empty() || tokens.size() > config.contextTokens)
        return makeError(ErrorKind::Refused, "{} given; the model takes 1 to {}", counted(tokens.size(), "token"),
                         config.contextTokens);
    for (const TokenId token : tokens)
        if (token < 0 || static_cast<std::uint32_t>(token) >= config.vocabulary)
            return makeError(ErrorKind::Refused, "token {} is not among the model's 0 to {}", token,
                             config.vocabulary - 1);
    const auto count = static_cast<std::uint32_t>(tokens.size());
    const SteadyClock clock;
    auto runner = Runner::create(std::move(weights), options.arithmetic, options.threads, count, clock);
    if (!runner)
        return tl::unexpected(runner.error());
    std::vector<std::uint32_t> blocks((tokens.size() + options.blockTokens - 1) / options.blockTokens);
    std::iota(blocks.begin(), blocks.end(), 0u);
    const auto store = KvStore::allocate(
        {config.layers, config.kvHeads, config.headDim, options.blockTokens, options.kFormat, options.vFormat},
        static_cast<std::uint32_t>(blocks.size()));
    if (!store)
        return tl::unexpected(store.error());

    KernelTimes times;
    for (std::uint32_t first = 0; first < count; first += options.chunkTokens) {
        const std::uint32_t chunk = std::min(options.chunkTokens, count - first);
        const SequenceRows sequence{tokens.subspan(first, chunk), first, blocks};
        const std::vector<std::uint32_t> rows = rowsIn(wanted, first, chunk);
        auto logits = (*runner)->forward({&sequence, 1}, rows, store->arena(), times);
        for (const std::uint32_t row : rows) {
            if (const auto fault = logitsFault(logits.first(config.vocabulary)))
                return makeError(ErrorKind::Refused, "{}", *fault);
            take(first + row, logits.first(config.vocabulary));
            logits = logits.subspan(config.vocabulary);
        }
    }
    return {};
}

Result<void> forwardTokens(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                           const ForwardOptions& options, const TakeLogits& take) {
    std::vector<Position> all(tokens.size());
    std::iota(all.begin(), all.end(), 0u);
    return forwardTokens(std::move(weights), tokens, all, options, take);
}

std::optional<std::string> logitsFault(std::span<const float> logits) {
    constexpr std::uint32_t kExponent = 0x7F80'0000; // all ones: infinite or not a number
    bool finite = true;
    for (const float logit : logits)
        finite &= (std::bit_cast<std::uint32_t>(logit) & kExponent) != kExponent;
    if (finite)
        return {};
    return "the model computes logits that are not numbers: its file is damaged or unsuited to this arithmetic; fetch "
           "it "
           "again, or try --arithmetic exact";
}

double logSumExp(std::span<const float> logits) {
    assert(!logits.empty());
    const double maximum = static_cast<double>(*std::ranges::max_element(logits));
    double sum = 0;
    for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit) - maximum);
    return maximum + std::log(sum);
}

Result<double> meanLoss(std::shared_ptr<const Weights> weights, std::span<const TokenId> tokens,
                        const ForwardOptions& options) {
    assert(tokens.size() >= 2);
    double loss = 0;
    const auto done =
        forwardTokens(std::move(weights), tokens, options, [&](Position at, std::span<const float> logits) {
            if (at + 1 < tokens.size())
                loss += logSumExp(logits) - static_cast<double>(logits[static_cast<std::size_t>(tokens[at + 1])]);
        });
    if (!done)
        return tl::unexpected(done.error());
    return loss / static_cast<double>(tokens.size() - 1);
}

} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/byte_size.h"
#include "core/strategy/keys.h"
#include "core/strategy/strategy.h"

#include <algorithm>

namespace kvatlas::strategy {

namespace {

std::uint64_t blocksOf(std::uint64_t tokens, std::uint32_t blockTokens) {
    return (tokens + blockTokens - 1) / blockTokens;
}

// layers * kvHeads * headDim * blockTokens * 4 bytes * 2 must stay far from the end of 64 bits, whatever a model file
// says.
bool layoutFits(const kernels::KvLayout& layout) {
    constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;
    std::uint64_t elements = 1;
    for (const std::uint64_t factor : {layout.layers, layout.kvHeads, layout.headDim, layout.blockTokens}) {
        if (factor == 0 || factor > kMaxElements / elements)
            return false;
        elements *= factor;
    }
    return true;
}

} // namespace

Result<std::uint32_t> maxModelLenFor(const Strategy& strategy, std::uint32_t contextTokens) {
    if (contextTokens == 0)
        return makeError(ErrorKind::Refused, "The model states a context of 0 tokens: nothing can run with it.");
    if (!strategy.maxModelLenTokens)
        return std::min(contextTokens, kDefaultMaxModelLenTokens);
    if (*strategy.maxModelLenTokens > contextTokens)
        return makeError(
            ErrorKind::Refused,
            "The strategy's max_model_len is {} tokens and the model's context is {}: lower max_model_len.",
            *strategy.maxModelLenTokens, contextTokens);
    return *strategy.maxModelLenTokens;
}

kernels::KvLayout layoutFor(const Strategy& strategy, std::uint32_t layers, std::uint32_t kvHeads,
                            std::uint32_t headDim) {
    return {.layers = layers,
            .kvHeads = kvHeads,
            .headDim = headDim,
            .blockTokens = strategy.blockTokens,
            .kFormat = strategy.kFormat,
            .vFormat = strategy.vFormat};
}

Result<std::uint32_t> poolBlocksFor(const Strategy& strategy, const kernels::KvLayout& layout,
                                    std::uint32_t maxModelLenTokens, std::uint64_t freeDeviceBytes) {
    if (!layoutFits(layout))
        return makeError(
            ErrorKind::Refused,
            "A block of {} tokens in {} layers of {} KV heads of {} has no size that can be allocated: check "
            "block_tokens and the model.",
            layout.blockTokens, layout.layers, layout.kvHeads, layout.headDim);
    const std::uint64_t blockBytes = layout.blockBytes();
    std::uint64_t blocks = 0;
    if (strategy.poolBlocks) {
        blocks = *strategy.poolBlocks;
    } else if (strategy.kvMemory.kind == KvMemory::Kind::Auto) {
        blocks = std::max(kDefaultKvMemoryBytes / blockBytes, blocksOf(maxModelLenTokens, layout.blockTokens));
    } else {
        const std::uint64_t bytes =
            strategy.kvMemory.kind == KvMemory::Kind::Bytes
                ? strategy.kvMemory.bytes
                : static_cast<std::uint64_t>(strategy.kvMemory.share * static_cast<double>(freeDeviceBytes));
        blocks = bytes / blockBytes;
        if (blocks == 0)
            return makeError(
                ErrorKind::OutOfMemory,
                "kv_memory gives {} and one block of {} tokens takes {}: give more, or take smaller blocks.",
                textFromBytes(bytes, " "), layout.blockTokens, textFromBytes(blockBytes, " "));
    }
    if (blocks > kMaxPoolBlocks)
        return makeError(ErrorKind::Refused,
                         "The pool would have {} blocks and may have {}: take larger blocks or less memory.", blocks,
                         kMaxPoolBlocks);
    if (freeDeviceBytes > 0 && blocks > freeDeviceBytes / blockBytes)
        return makeError(ErrorKind::OutOfMemory,
                         "The KV pool would take {} blocks of {} and {} MiB are free: lower kv_memory, pool_blocks or "
                         "max_model_len.",
                         blocks, textFromBytes(blockBytes, " "), freeDeviceBytes >> 20);
    return static_cast<std::uint32_t>(blocks);
}

} // namespace kvatlas::strategy

// SPDX-License-Identifier: Apache-2.0
#include "core/cache/invariants.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace kvatlas::cache {

using trace::BlockKind;

namespace {

std::optional<std::string> checkTable(const BlockPool& pool, const BlockTable& table,
                                      std::vector<std::uint32_t>& occurrences) {
    const std::uint32_t sequence = table.sequence().value, blockTokens = pool.blockTokens();
    const auto blocks = table.blocks();
    if (table.activeBlocks() > blocks.size())
        return fmt::format("sequence {} has more active blocks than its table is long", sequence);
    if (table.slotsWritten() > std::uint64_t{table.activeBlocks()} * blockTokens)
        return fmt::format("sequence {} has {} slots written, its {} active blocks hold fewer", sequence,
                           table.slotsWritten(), table.activeBlocks());
    for (std::uint32_t logical = 0; logical < blocks.size(); ++logical) {
        const std::uint32_t index = blocks[logical].index();
        if (index >= pool.blocks())
            return fmt::format("sequence {} names block {} of a pool of {}", sequence, index, pool.blocks());
        ++occurrences[index];
        const BlockInfo info = pool.block(index);
        const BlockKind kind = logical < table.activeBlocks() ? BlockKind::Active : BlockKind::Reserved;
        if (info.kind != kind)
            return fmt::format("block {} of sequence {} is of another kind than its table says", index, sequence);
        const std::uint64_t firstSlot = std::uint64_t{logical} * blockTokens;
        const std::uint64_t used = table.slotsWritten() > firstSlot
                                       ? std::min<std::uint64_t>(table.slotsWritten() - firstSlot, blockTokens)
                                       : 0;
        if (info.usedSlots != used)
            return fmt::format("block {} of sequence {} counts {} used slots, {} are written", index, sequence,
                               info.usedSlots, used);
    }
    return std::nullopt;
}

} // namespace

std::optional<std::string> brokenInvariant(const BlockPool& pool, std::span<const BlockTable* const> live) {
    std::vector<std::uint32_t> occurrences(pool.blocks(), 0);
    for (const BlockTable* table : live)
        if (auto broken = checkTable(pool, *table, occurrences))
            return broken;

    std::vector<bool> listed(pool.blocks(), false);
    for (const std::uint32_t index : pool.freeList()) {
        if (listed[index])
            return fmt::format("block {} is on the free list twice", index);
        listed[index] = true;
    }

    BlockCounts counts;
    std::uint64_t usedSlots = 0;
    for (std::uint32_t index = 0; index < pool.blocks(); ++index) {
        const BlockInfo info = pool.block(index);
        if (info.references != occurrences[index])
            return fmt::format("block {} counts {} references, {} tables hold it", index, info.references,
                               occurrences[index]);
        if ((info.kind == BlockKind::Free) != listed[index] || (info.references == 0) != listed[index])
            return fmt::format("block {} is on the free list and in use, or neither", index);
        ++(info.kind == BlockKind::Free     ? counts.free
           : info.kind == BlockKind::Active ? counts.active
                                            : counts.reserved);
        usedSlots += info.usedSlots;
    }
    if (!(counts == pool.counts()))
        return fmt::format("{} free, {} active, {} reserved counted; the pool says {}, {}, {}", counts.free,
                           counts.active, counts.reserved, pool.counts().free, pool.counts().active,
                           pool.counts().reserved);
    if (usedSlots != pool.usedSlots())
        return fmt::format("{} used slots counted, the pool says {}", usedSlots, pool.usedSlots());
    return std::nullopt;
}

} // namespace kvatlas::cache

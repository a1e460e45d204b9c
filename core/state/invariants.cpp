// SPDX-License-Identifier: Apache-2.0
#include "core/state/invariants.h"

#include <algorithm>
#include <vector>

namespace kvatlas::state {

namespace {

template <class... Args> tl::unexpected<Error> broken(fmt::format_string<Args...> text, Args&&... args) {
    return makeError(ErrorKind::Failed, text, std::forward<Args>(args)...);
}

// Per pool and block: how often the tables name it.
using References = std::vector<std::vector<std::uint32_t>>;

Result<void> checkTable(const Snapshot& snapshot, const SequenceState& sequence, References& references) {
    std::uint32_t active = 0;
    std::uint32_t blockTokens = 0;
    bool reservedSeen = false;
    for (std::uint32_t logical = 0; logical < sequence.table->size(); ++logical) {
        const BlockId id = (*sequence.table)[logical];
        if (id.pool().value >= snapshot.pools.size() || id.index() >= snapshot.pools[id.pool().value].shape.blocks)
            return broken("Sequence {} names block {}, which no pool has.", sequence.sequence.value, id.index());
        const PoolState& pool = snapshot.pools[id.pool().value];
        const BlockState& block = pool.block(id.index());
        ++references[id.pool().value][id.index()];
        blockTokens = pool.shape.blockTokens;
        if (block.kind != BlockKind::Active && block.kind != BlockKind::Reserved)
            return broken("Sequence {} names block {}, which is neither active nor reserved.", sequence.sequence.value,
                          id.index());
        if (block.kind == BlockKind::Active && reservedSeen)
            return broken("Sequence {} has an active block behind a reserved one.", sequence.sequence.value);
        reservedSeen = reservedSeen || block.kind == BlockKind::Reserved;
        active += block.kind == BlockKind::Active ? 1 : 0;
        if (block.owner == sequence.sequence && block.logical != logical)
            return broken("Block {} says it is at {} of sequence {}, but is at {}.", id.index(), block.logical,
                          sequence.sequence.value, logical);
        const std::uint64_t before = std::uint64_t{logical} * blockTokens;
        const std::uint64_t used =
            sequence.slotsWritten > before ? std::min<std::uint64_t>(blockTokens, sequence.slotsWritten - before) : 0;
        if (block.references == 1 && block.usedSlots != used)
            return broken("Block {} has {} used slots, but sequence {} wrote {} of it.", id.index(), block.usedSlots,
                          sequence.sequence.value, used);
    }
    // A block may be allocated a moment before its slots are written, never the other way round.
    if (sequence.slotsWritten > std::uint64_t{active} * blockTokens)
        return broken("Sequence {} has {} slots written in {} active blocks.", sequence.sequence.value,
                      sequence.slotsWritten, active);
    return {};
}

Result<void> checkPool(const PoolState& pool, const std::vector<std::uint32_t>& references) {
    BlockCounts counts;
    std::uint64_t usedSlots = 0;
    for (std::uint32_t i = 0; i < pool.shape.blocks; ++i) {
        const BlockState& block = pool.block(i);
        switch (block.kind) {
        case BlockKind::Free:
            ++counts.free;
            break;
        case BlockKind::Active:
            ++counts.active;
            usedSlots += block.usedSlots;
            break;
        case BlockKind::Cached:
            ++counts.cached;
            break;
        case BlockKind::Reserved:
            ++counts.reserved;
            break;
        }
        if (block.references != references[i])
            return broken("Block {} says {} references, but {} tables name it.", i, block.references, references[i]);
        const bool idle = block.kind == BlockKind::Free || block.kind == BlockKind::Cached;
        if (idle != (block.references == 0))
            return broken("Block {} is {} with {} references.", i, idle ? "on the free list" : "in use",
                          block.references);
        if (block.usedSlots > pool.shape.blockTokens)
            return broken("Block {} has {} used slots of {}.", i, block.usedSlots, pool.shape.blockTokens);
        if (block.kind == BlockKind::Reserved && block.usedSlots != 0)
            return broken("Block {} is reserved and has {} used slots.", i, block.usedSlots);
    }
    if (counts != pool.counts)
        return broken("Pool {} says {} free, {} active, {} cached, {} reserved, but has {}, {}, {}, {}.",
                      pool.shape.pool.value, pool.counts.free, pool.counts.active, pool.counts.cached,
                      pool.counts.reserved, counts.free, counts.active, counts.cached, counts.reserved);
    if (usedSlots != pool.usedSlots)
        return broken("Pool {} says {} used slots, but has {}.", pool.shape.pool.value, pool.usedSlots, usedSlots);
    return {};
}

Result<void> checkRequest(const Snapshot& snapshot, const RequestState& request) {
    if (request.tokens->size() != std::size_t{request.promptTokens} + request.outputTokens)
        return broken("Request {} has {} tokens, but {} of prompt and {} of output.", request.request.value,
                      request.tokens->size(), request.promptTokens, request.outputTokens);
    if (request.sequence.value == 0)
        return {};
    const auto at =
        std::lower_bound(snapshot.sequences.begin(), snapshot.sequences.end(), request.sequence,
                         [](const SequenceState& sequence, SequenceId id) { return sequence.sequence < id; });
    if (at == snapshot.sequences.end() || at->sequence != request.sequence || at->request != request.request)
        return broken("Request {} names sequence {}, which is not its own.", request.request.value,
                      request.sequence.value);
    if (at->slotsWritten > request.tokens->size())
        return broken("Sequence {} has {} slots written, but request {} only {} tokens.", at->sequence.value,
                      at->slotsWritten, request.request.value, request.tokens->size());
    return {};
}

} // namespace

Result<void> checkInvariants(const Snapshot& snapshot) {
    References references;
    for (const PoolState& pool : snapshot.pools)
        references.emplace_back(pool.shape.blocks, 0);
    for (const SequenceState& sequence : snapshot.sequences)
        if (auto ok = checkTable(snapshot, sequence, references); !ok)
            return ok;
    for (std::size_t i = 0; i < snapshot.pools.size(); ++i)
        if (auto ok = checkPool(snapshot.pools[i], references[i]); !ok)
            return ok;
    for (const RequestState& request : snapshot.requests)
        if (auto ok = checkRequest(snapshot, request); !ok)
            return ok;
    return {};
}

} // namespace kvatlas::state

// SPDX-License-Identifier: Apache-2.0
#include "core/state/cache_model.h"

#include <algorithm>
#include <utility>

namespace kvatlas::state {

namespace {

std::uint32_t& countOf(BlockCounts& counts, BlockKind kind) {
    switch (kind) {
    case BlockKind::Active:
        return counts.active;
    case BlockKind::Cached:
        return counts.cached;
    case BlockKind::Reserved:
        return counts.reserved;
    case BlockKind::Free:
        break;
    }
    return counts.free;
}

std::uint64_t elementOf(BlockId id, const BlockState& block) {
    return trace::blockElement(id, block.kind, block.references, block.usedSlots);
}

std::uint64_t elementOf(RequestId id, const Request& request) {
    return trace::requestElement(id, request.status, request.promptTokens, request.outputTokens, request.preemptions);
}

std::uint64_t elementOf(SequenceId id, const Sequence& sequence) {
    return trace::sequenceElement(id, sequence.request, sequence.slotsWritten);
}

} // namespace

const BlockState* CacheState::Impl::find(BlockId block) const {
    const std::size_t pool = block.pool().value;
    if (pool >= pools.size() || block.index() >= pools[pool].shape.blocks)
        return nullptr;
    return &pools[pool].block(block.index());
}

void CacheState::Impl::start(const trace::RunStarted& started) {
    run = std::make_shared<trace::RunStarted>(started);
    const auto free = std::make_shared<BlockChunk>();
    for (const trace::PoolShape& shape : run->pools) {
        const std::uint32_t chunks = (shape.blocks + kChunkBlocks - 1) / kChunkBlocks;
        Pool& pool = pools.emplace_back();
        pool.shape = shape;
        pool.chunks.assign(chunks, free);
        pool.owned.assign(chunks, 0);
        pool.counts.free = shape.blocks;
    }
}

BlockState& CacheState::Impl::changeable(BlockId block) {
    Pool& pool = pools[block.pool().value];
    const std::uint32_t chunk = block.index() / kChunkBlocks;
    if (!pool.owned[chunk]) {
        pool.chunks[chunk] = std::make_shared<BlockChunk>(*pool.chunks[chunk]);
        pool.owned[chunk] = 1;
    }
    return (*pool.chunks[chunk])[block.index() % kChunkBlocks];
}

void CacheState::Impl::setBlock(BlockId id, const BlockState& next) {
    Pool& pool = pools[id.pool().value];
    BlockState& block = changeable(id);
    if (block.kind != BlockKind::Free)
        hash.remove(elementOf(id, block));
    if (block.kind == BlockKind::Active)
        pool.usedSlots -= block.usedSlots;
    --countOf(pool.counts, block.kind);
    block = next;
    ++countOf(pool.counts, block.kind);
    if (block.kind == BlockKind::Active)
        pool.usedSlots += block.usedSlots;
    if (block.kind != BlockKind::Free)
        hash.add(elementOf(id, block));
}

void CacheState::Impl::addRequest(RequestId id, Request request) {
    const auto at = requests.emplace(id, std::move(request)).first;
    hash.add(elementOf(id, at->second));
}

void CacheState::Impl::setStatus(RequestId id, Request& request, RequestStatus status) {
    hash.remove(elementOf(id, request));
    request.status = status;
    hash.add(elementOf(id, request));
}

void CacheState::Impl::countPreemption(RequestId id, Request& request) {
    hash.remove(elementOf(id, request));
    request.status = RequestStatus::Preempted;
    ++request.preemptions;
    hash.add(elementOf(id, request));
}

void CacheState::Impl::appendToken(RequestId id, Request& request, TokenId token) {
    hash.remove(elementOf(id, request));
    request.tokens.change().push_back(token);
    ++request.outputTokens;
    hash.add(elementOf(id, request));
}

void CacheState::Impl::removeRequest(RequestId id) {
    const auto at = requests.find(id);
    hash.remove(elementOf(id, at->second));
    requests.erase(at);
}

void CacheState::Impl::startSequence(SequenceId id, RequestId request) {
    Sequence sequence;
    sequence.request = request;
    const auto at = sequences.emplace_hint(sequences.end(), id, std::move(sequence));
    hash.add(elementOf(id, at->second));
    requests.find(request)->second.sequence = id;
    lastSequence = id;
}

void CacheState::Impl::endSequence(SequenceId id) {
    const auto at = sequences.find(id);
    hash.remove(elementOf(id, at->second));
    if (const auto request = requests.find(at->second.request); request != requests.end())
        request->second.sequence = {};
    sequences.erase(at);
}

void CacheState::Impl::appendBlock(SequenceId id, Sequence& sequence, BlockId block, BlockKind kind, Step changedStep) {
    std::vector<BlockId>& table = sequence.table.change();
    const auto logical = static_cast<std::uint32_t>(table.size());
    BlockState next;
    next.kind = kind;
    next.references = 1;
    next.owner = id;
    next.request = sequence.request;
    next.logical = logical;
    next.changedStep = changedStep;
    setBlock(block, next);
    table.push_back(block);
    hash.add(trace::tableElement(id, logical, block));
}

void CacheState::Impl::activate(BlockId block, Step changedStep) {
    BlockState next = *find(block);
    next.kind = BlockKind::Active;
    next.changedStep = changedStep;
    setBlock(block, next);
}

void CacheState::Impl::releaseTable(SequenceId id, Sequence& sequence, Step changedStep) {
    BlockState free;
    free.changedStep = changedStep;
    std::uint32_t logical = 0;
    for (const BlockId block : sequence.table.get()) {
        hash.remove(trace::tableElement(id, logical++, block));
        setBlock(block, free);
    }
    hash.remove(elementOf(id, sequence));
    sequence.table = {};
    sequence.activeBlocks = 0;
    sequence.slotsWritten = 0;
    hash.add(elementOf(id, sequence));
}

void CacheState::Impl::writeSlots(SequenceId id, Sequence& sequence, std::uint32_t count, Step writtenStep) {
    const std::vector<BlockId>& table = sequence.table.get();
    const std::uint32_t blockTokens = pools[table.front().pool().value].shape.blockTokens;
    hash.remove(elementOf(id, sequence));
    const std::uint32_t first = sequence.slotsWritten / blockTokens;
    sequence.slotsWritten += count;
    const std::uint32_t last = (sequence.slotsWritten - 1) / blockTokens;
    hash.add(elementOf(id, sequence));
    for (std::uint32_t logical = first; logical <= last; ++logical) {
        BlockState next = *find(table[logical]);
        next.usedSlots = std::min(blockTokens, sequence.slotsWritten - logical * blockTokens);
        next.writtenStep = writtenStep;
        setBlock(table[logical], next);
    }
}

void CacheState::Impl::markFree(Pool& pool, std::uint32_t first, std::uint32_t count, Step changedStep) {
    const std::uint32_t end = first + count;
    while (first < end) {
        const std::uint32_t chunk = first / kChunkBlocks;
        const std::uint32_t chunkEnd = std::min((chunk + 1) * kChunkBlocks, pool.shape.blocks);
        if (first % kChunkBlocks == 0 && chunkEnd <= end) {
            if (!m_freeChunk || m_freeChunk->front().changedStep != changedStep) {
                m_freeChunk = std::make_shared<BlockChunk>();
                for (BlockState& block : *m_freeChunk)
                    block.changedStep = changedStep;
            }
            pool.chunks[chunk] = m_freeChunk;
            pool.owned[chunk] = 0;
            first = chunkEnd;
            continue;
        }
        for (; first < std::min(end, chunkEnd); ++first)
            changeable(BlockId(pool.shape.pool, first)).changedStep = changedStep;
    }
}

void CacheState::Impl::countBatch() {
    for (const trace::BatchEntry& entry : batch)
        (entry.prefill ? prefillTokens : decodeTokens) += entry.tokens;
}

SequenceId CacheState::Impl::orphan() const {
    for (const auto& [id, sequence] : sequences) {
        const auto request = requests.find(sequence.request);
        if (request == requests.end() || request->second.status == RequestStatus::Preempted)
            return id;
    }
    return {};
}

} // namespace kvatlas::state

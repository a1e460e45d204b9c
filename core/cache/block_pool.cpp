// SPDX-License-Identifier: Apache-2.0
#include "core/cache/block_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvatlas::cache {

using trace::BlockKind;

BlockPool::BlockPool(PoolId pool, std::uint32_t blocks, std::uint32_t blockTokens, trace::EventEmitter& events,
                     trace::StateHash& hash)
    : m_pool(pool)
    , m_blockTokens(blockTokens)
    , m_events(events)
    , m_hash(hash) {
    assert(blocks >= 1 && blocks < (1u << 26) && blockTokens >= 1);
    m_blocks.resize(std::size_t{blocks} + 1);
    for (std::uint32_t i = 0; i <= blocks; ++i) {
        m_blocks[i].next = i == blocks ? 0 : i + 1;
        m_blocks[i].previous = i == 0 ? blocks : i - 1;
    }
    m_counts.free = blocks;
}

BlockTable BlockPool::open(SequenceId sequence, RequestId request) {
    assert(sequence.value != 0);
    BlockTable table;
    table.m_sequence = sequence;
    table.m_request = request;
    m_hash.add(trace::sequenceElement(sequence, request, 0));
    m_events.emit(trace::SequenceStarted{sequence, request});
    return table;
}

bool BlockPool::reserveRun(BlockTable& table, std::uint32_t count) {
    assert(table.isOpen() && table.m_blocks.empty() && count >= 1);
    const auto first = firstFit(count);
    if (!first)
        return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        const BlockId id(m_pool, *first + i);
        unlink(*first + i);
        setKind(*first + i, BlockKind::Reserved, 1, 0);
        m_hash.add(trace::tableElement(table.m_sequence, i, id));
        table.m_blocks.push_back(id);
    }
    m_events.emit(trace::BlocksReserved{table.m_sequence, 0, BlockId(m_pool, *first), count});
    return true;
}

bool BlockPool::grow(BlockTable& table, std::uint32_t tokens) {
    assert(table.isOpen());
    const std::uint32_t wanted = blocksFor(tokens);
    if (wanted <= table.m_activeBlocks)
        return true;
    const std::uint32_t fromFreeList =
        wanted - std::min<std::uint32_t>(wanted, static_cast<std::uint32_t>(table.m_blocks.size()));
    if (fromFreeList > m_counts.free)
        return false;
    trace::BlocksAllocated event{table.m_sequence, table.m_activeBlocks, {}};
    event.blocks.reserve(wanted - table.m_activeBlocks);
    for (std::uint32_t logical = table.m_activeBlocks; logical < wanted; ++logical) {
        if (logical == table.m_blocks.size()) {
            const std::uint32_t index = m_blocks.back().next;
            const BlockId id(m_pool, index);
            unlink(index);
            m_hash.add(trace::tableElement(table.m_sequence, logical, id));
            table.m_blocks.push_back(id);
        }
        setKind(table.m_blocks[logical].index(), BlockKind::Active, 1, 0);
        event.blocks.push_back(table.m_blocks[logical]);
    }
    table.m_activeBlocks = wanted;
    m_events.emit(std::move(event));
    return true;
}

void BlockPool::writeSlots(BlockTable& table, std::uint32_t count) {
    assert(table.isOpen() && count >= 1);
    assert(std::uint64_t{table.m_slotsWritten} + count <= std::uint64_t{table.m_activeBlocks} * m_blockTokens);
    const std::uint32_t first = table.m_slotsWritten, end = first + count;
    for (std::uint32_t slot = first; slot < end;) {
        const std::uint32_t logical = slot / m_blockTokens;
        const std::uint32_t inBlock = std::min(end - slot, m_blockTokens - slot % m_blockTokens);
        const std::uint32_t index = table.m_blocks[logical].index();
        const BlockInfo& info = m_blocks[index].info;
        assert(info.references == 1);
        setKind(index, info.kind, info.references, info.usedSlots + inBlock);
        slot += inBlock;
    }
    m_hash.remove(trace::sequenceElement(table.m_sequence, table.m_request, first));
    m_hash.add(trace::sequenceElement(table.m_sequence, table.m_request, end));
    table.m_slotsWritten = end;
    m_events.emit(trace::SlotsWritten{table.m_sequence, first, count});
}

void BlockPool::close(BlockTable& table, trace::ReleaseReason reason) {
    assert(table.isOpen());
    trace::BlocksReleased event{table.m_sequence, reason, {}};
    event.blocks.reserve(table.m_blocks.size());
    for (std::size_t logical = table.m_blocks.size(); logical-- > 0;) {
        const BlockId id = table.m_blocks[logical];
        assert(m_blocks[id.index()].info.references == 1);
        m_hash.remove(trace::tableElement(table.m_sequence, static_cast<std::uint32_t>(logical), id));
        setKind(id.index(), BlockKind::Free, 0, 0);
        pushBack(id.index());
        event.blocks.push_back(id);
    }
    if (!event.blocks.empty())
        m_events.emit(std::move(event));
    m_hash.remove(trace::sequenceElement(table.m_sequence, table.m_request, table.m_slotsWritten));
    m_events.emit(trace::SequenceEnded{table.m_sequence});
    table = BlockTable();
}

BlockInfo BlockPool::block(std::uint32_t index) const {
    assert(index < blocks());
    return m_blocks[index].info;
}

std::vector<std::uint32_t> BlockPool::freeList() const {
    std::vector<std::uint32_t> list;
    list.reserve(m_counts.free);
    for (std::uint32_t i = m_blocks.back().next; i != blocks(); i = m_blocks[i].next)
        list.push_back(i);
    return list;
}

std::uint32_t BlockPool::longestFreeRun() const {
    std::uint32_t longest = 0, run = 0;
    for (std::uint32_t i = 0; i < blocks(); ++i) {
        run = m_blocks[i].info.kind == BlockKind::Free ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

std::optional<std::uint32_t> BlockPool::firstFit(std::uint32_t count) const {
    if (count > m_counts.free)
        return std::nullopt;
    std::uint32_t run = 0;
    for (std::uint32_t i = 0; i < blocks(); ++i) {
        run = m_blocks[i].info.kind == BlockKind::Free ? run + 1 : 0;
        if (run == count)
            return i + 1 - count;
    }
    return std::nullopt;
}

void BlockPool::unlink(std::uint32_t index) {
    Block& block = m_blocks[index];
    assert(block.info.kind == BlockKind::Free);
    m_blocks[block.previous].next = block.next;
    m_blocks[block.next].previous = block.previous;
}

void BlockPool::pushBack(std::uint32_t index) {
    const std::uint32_t end = blocks(), last = m_blocks[end].previous;
    m_blocks[index].previous = last;
    m_blocks[index].next = end;
    m_blocks[last].next = index;
    m_blocks[end].previous = index;
}

void BlockPool::setKind(std::uint32_t index, BlockKind kind, std::uint32_t references, std::uint32_t usedSlots) {
    const auto count = [this](BlockKind of) -> std::uint32_t& {
        assert(of != BlockKind::Cached);
        return of == BlockKind::Free ? m_counts.free : of == BlockKind::Active ? m_counts.active : m_counts.reserved;
    };
    BlockInfo& info = m_blocks[index].info;
    const BlockId id(m_pool, index);
    if (info.kind != BlockKind::Free)
        m_hash.remove(trace::blockElement(id, info.kind, info.references, info.usedSlots));
    if (kind != BlockKind::Free)
        m_hash.add(trace::blockElement(id, kind, references, usedSlots));
    --count(info.kind);
    ++count(kind);
    m_usedSlots += usedSlots;
    m_usedSlots -= info.usedSlots;
    info = BlockInfo{kind, references, usedSlots};
}

} // namespace kvatlas::cache

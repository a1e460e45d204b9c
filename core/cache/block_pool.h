// SPDX-License-Identifier: Apache-2.0
// The blocks of one pool (one storage format, layer group and tier) and the block tables of the sequences that use
// them. Metadata only: which block is whose; where its bytes lie is the engine's business.
//
// Promise. Every change goes through this class, emits its event at once and keeps the pool's part of the state hash.
// Each block is of exactly one kind: free (on the free list, in no table), active (in a table, slots being written), or
// reserved (in a table, no slot written yet). An operation that does not succeed changes nothing.
//
// Free list: intrusive, doubly linked, O(1) (vLLM V1's FreeKVCacheBlockQueue). The front is the next block to be taken;
// at the start 0, 1, 2, ...; a closed table's blocks are appended in reverse table order, so that the end of a sequence
// is reused before its beginning.
//
// One thread (the engine's). The emitter and the hash outlive it. Errors: none; misuse is an assert.
#pragma once

#include "core/base/ids.h"
#include "core/cache/block_table.h"
#include "core/trace/event_emitter.h"
#include "core/trace/state_hash.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvatlas::cache {

struct BlockCounts {
    std::uint32_t free = 0, active = 0, reserved = 0; // sum = blocks of the pool
    friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

struct BlockInfo {
    trace::BlockKind kind = trace::BlockKind::Free;
    std::uint32_t references = 0; // live block tables that hold it
    std::uint32_t usedSlots = 0;
};

class BlockPool {
public:
    // REQUIRES: 1 <= blocks <= 2^26 - 1, blockTokens >= 1.
    BlockPool(PoolId pool, std::uint32_t blocks, std::uint32_t blockTokens, trace::EventEmitter& events,
              trace::StateHash& hash);

    std::uint32_t blocks() const { return static_cast<std::uint32_t>(m_blocks.size() - 1); }
    std::uint32_t blockTokens() const { return m_blockTokens; }
    std::uint32_t blocksFor(std::uint32_t tokens) const {
        return tokens / m_blockTokens + (tokens % m_blockTokens != 0 ? 1 : 0);
    }
    const BlockCounts& counts() const { return m_counts; }
    std::uint64_t usedSlots() const { return m_usedSlots; } // over active blocks, each block once

    // Begins a sequence with an empty table.
    BlockTable open(SequenceId sequence, RequestId request);

    // Puts `count` consecutive free blocks at the end of an empty table: the lowest run that is long enough (first
    // fit). False when there is none, however many blocks are free.
    bool reserveRun(BlockTable& table, std::uint32_t count);

    // Makes the slots [0, tokens) writable: reserved blocks of the table become active, then blocks are taken from the
    // free list. False when those do not suffice.
    bool grow(BlockTable& table, std::uint32_t tokens);

    // Notes that the next `count` slots are written. REQUIRES: grow() has made them writable; each block they lie in
    // has one reference.
    void writeSlots(BlockTable& table, std::uint32_t count);

    // Ends the sequence: its blocks go to the free list. The table is empty and not open afterwards.
    void close(BlockTable& table, trace::ReleaseReason reason);

    BlockInfo block(std::uint32_t index) const;
    std::vector<std::uint32_t> freeList() const; // front first
    std::uint32_t longestFreeRun() const;        // consecutive free blocks
    std::optional<std::uint32_t> firstFit(std::uint32_t count) const;

private:
    struct Block {
        std::uint32_t previous = 0, next = 0; // in the free list
        BlockInfo info;
    };
    void unlink(std::uint32_t index);
    void pushBack(std::uint32_t index);
    void setKind(std::uint32_t index, trace::BlockKind kind, std::uint32_t references, std::uint32_t usedSlots);

    PoolId m_pool;
    std::uint32_t m_blockTokens;
    trace::EventEmitter& m_events;
    trace::StateHash& m_hash;
    std::vector<Block> m_blocks; // the last one is no block: it closes the list to a ring, its next is the front
    BlockCounts m_counts;
    std::uint64_t m_usedSlots = 0;
};

} // namespace kvatlas::cache

// SPDX-License-Identifier: Apache-2.0
// The mutable state behind CacheState: what it holds and the few changes that keep counts, hash and sharing right.
// Checks live in cache_state.cpp; everything here REQUIRES that its caller has checked. One thread.
#pragma once

#include "core/state/cache_state.h"
#include "core/state/snapshot.h"

#include <map>
#include <memory>
#include <vector>

namespace kvatlas::state {

// A value that snapshots may hold: copied before the first change after it was handed out.
template <class T> class CopyOnWrite {
public:
    CopyOnWrite()
        : m_value(std::make_shared<T>()) {}
    explicit CopyOnWrite(T value)
        : m_value(std::make_shared<T>(std::move(value))) {}

    const T& get() const { return *m_value; }
    T& change() {
        if (m_shared) {
            m_value = std::make_shared<T>(*m_value);
            m_shared = false;
        }
        return *m_value;
    }
    std::shared_ptr<const T> share() {
        m_shared = true;
        return m_value;
    }

private:
    std::shared_ptr<T> m_value;
    bool m_shared = false;
};

struct Pool {
    trace::PoolShape shape;
    std::vector<std::shared_ptr<BlockChunk>> chunks;
    std::vector<char> owned; // per chunk: nobody else holds it
    BlockCounts counts;
    std::uint64_t usedSlots = 0;

    const BlockState& block(std::uint32_t index) const { return (*chunks[index / kChunkBlocks])[index % kChunkBlocks]; }
};

struct Sequence {
    RequestId request;
    std::uint32_t slotsWritten = 0;
    std::uint32_t activeBlocks = 0; // the leading entries of the table; the rest is reserved
    CopyOnWrite<std::vector<BlockId>> table;
};

struct Request {
    std::string title;
    RequestStatus status = RequestStatus::Waiting;
    std::uint32_t promptTokens = 0, outputTokens = 0, cachedTokens = 0, maxTokens = 0, preemptions = 0;
    Step arrivedStep = 0;
    std::int64_t arrivedNs = 0;
    SequenceId sequence;
    CopyOnWrite<std::vector<TokenId>> tokens;
};

struct CacheState::Impl {
    Step step = 0;
    bool inStep = false;
    bool stepEnded = false;
    std::int64_t ns = 0;
    std::uint64_t prefillTokens = 0, decodeTokens = 0;
    SequenceId lastSequence; // the newest ever started
    std::uint32_t waitingRequests = 0;
    std::vector<trace::BatchEntry> batch;
    std::shared_ptr<const trace::RunStarted> run;
    std::vector<Pool> pools;
    std::map<SequenceId, Sequence> sequences;
    std::map<RequestId, Request> requests;
    trace::StateHash hash;

    const BlockState* find(BlockId block) const; // null: no such block
    const trace::ModelShape& model() const { return run->model; }

    void start(const trace::RunStarted& started);
    // Replaces a block's state, keeping counts, used slots and hash. Kinds, references and slots come with `next`.
    void setBlock(BlockId id, const BlockState& next);
    void addRequest(RequestId id, Request request);
    void setStatus(RequestId id, Request& request, RequestStatus status);
    void countPreemption(RequestId id, Request& request);
    void appendToken(RequestId id, Request& request, TokenId token);
    void removeRequest(RequestId id);
    void startSequence(SequenceId id, RequestId request);
    void endSequence(SequenceId id);
    void appendBlock(SequenceId id, Sequence& sequence, BlockId block, BlockKind kind, Step changedStep);
    void activate(BlockId block, Step changedStep); // a reserved one
    void releaseTable(SequenceId id, Sequence& sequence, Step changedStep);
    void writeSlots(SequenceId id, Sequence& sequence, std::uint32_t count, Step writtenStep);
    // Fills a run of free blocks with one changedStep, sharing whole chunks. REQUIRES: a new run.
    void markFree(Pool& pool, std::uint32_t first, std::uint32_t count, Step changedStep);

    // An ended step's batch goes into the totals.
    void countBatch();
    // A sequence whose request is finished or preempted; 0 when there is none.
    SequenceId orphan() const;

private:
    BlockState& changeable(BlockId block);
    std::shared_ptr<BlockChunk> m_freeChunk; // the last whole chunk that markFree made
};

} // namespace kvatlas::state

// SPDX-License-Identifier: Apache-2.0
// Who runs next: first come first served, continuous or static batching, chunked prefill, blocks paged or reserved in
// one run, preemption by recompute. Knows lengths and blocks, not tokens; owns the pool's tables.
//
// Promise.
// - A request that can never fit is refused before it waits, with the numbers.
// - Decoding goes first; a step computes at most chunk_tokens of prompts beside it.
// - When a decoding sequence finds no free block, the request admitted last is preempted: its blocks are released, it
// goes
//   to the front of the queue, its tokens are computed again later. Nothing is admitted in a step that preempted.
// - Progress: the request admitted first is never preempted for lack of blocks, and whoever is admitted finds the
// blocks
//   that everybody needs until its next token is sampled, so that each resume yields at least one token.
// - Every change is an event and part of the state hash (requests here, blocks and sequences in the pool).
//
// One thread (the engine's). Emitter, hash and pool outlive it. Errors: none but refusal().
#pragma once

#include "core/cache/block_pool.h"
#include "core/strategy/strategy.h"
#include "core/trace/event_emitter.h"
#include "core/trace/state_hash.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::engine {

struct ScheduleRules {
    strategy::Layout layout = strategy::Layout::Paged;
    strategy::Reserve reserve = strategy::Reserve::MaxModelLen;
    strategy::Batching batching = strategy::Batching::Continuous;
    std::uint32_t maxModelLenTokens = 0; // slots of the longest sequence
    std::uint32_t maxSequences = 1;
    std::uint32_t chunkTokens = 1;
};

// Why the request at the front of the queue is not running.
struct Waiting {
    enum class Reason : std::uint8_t {
        Nothing,   // nobody waits, or it can be admitted in the next step
        Sequences, // max_sequences run already
        Batch,     // static batching: the running batch has not finished
        Chunk,     // this step's chunk_tokens are used up
        Blocks,    // fewer free blocks than it needs until its first token
        Run,       // contiguous: enough blocks are free, but not side by side
        Preempted, // the last step preempted
    };
    Reason reason = Reason::Nothing;
    RequestId request;
    std::uint32_t neededBlocks = 0, freeBlocks = 0, longestRunBlocks = 0; // of Blocks and Run
};

// What a step computes of one request.
struct ScheduledRows {
    RequestId request;
    SequenceId sequence;
    Position first = 0;
    std::uint32_t tokens = 0;
    bool prefill = false;
    bool samples = false; // its last token is the newest known: a new one is sampled from it
};

class Scheduler {
public:
    Scheduler(const ScheduleRules& rules, cache::BlockPool& pool, trace::EventEmitter& events, trace::StateHash& hash);

    // The sentence for a request that can never run here; nothing for one that can.
    std::optional<std::string> refusal(std::size_t promptTokens, std::uint32_t maxTokens) const;

    // To the end of the queue. REQUIRES: no refusal. RequestArrived has been emitted.
    void submit(RequestId request, std::uint32_t promptTokens, std::uint32_t maxTokens);

    // Emits RequestFinished and releases what it holds. REQUIRES: known.
    void finish(RequestId request, trace::FinishReason reason, const std::string& detail = {});

    // Preempts by command; false when it is not running.
    bool preempt(RequestId request);

    // Decides and makes room for the next step. Empty only when nothing is running or waiting.
    std::vector<ScheduledRows> plan();

    void noteComputed(const ScheduledRows& rows); // its slots are written
    void noteSampled(RequestId request);          // one more token is known

    bool idle() const { return m_running.empty() && m_waiting.empty(); }
    bool knows(RequestId request) const { return m_entries.contains(request); }
    std::uint32_t running() const { return static_cast<std::uint32_t>(m_running.size()); }
    std::uint32_t waiting() const { return static_cast<std::uint32_t>(m_waiting.size()); }
    std::vector<RequestId> runningRequests() const; // in order of admission
    std::uint32_t preemptions(RequestId request) const { return m_entries.at(request)->preemptions; }
    const cache::BlockTable& table(RequestId request) const { return m_entries.at(request)->table; }
    const Waiting& waitingFor() const { return m_waitingFor; } // as the last plan() found it
    std::vector<const cache::BlockTable*> openTables() const;

private:
    struct Entry {
        RequestId request;
        trace::RequestStatus status = trace::RequestStatus::Waiting;
        std::uint32_t promptTokens = 0, outputTokens = 0, preemptions = 0;
        std::uint32_t lifeSlots = 0; // slots that it needs at most
        cache::BlockTable table;

        std::uint32_t known() const { return promptTokens + outputTokens; }
        std::uint32_t computed() const { return table.slotsWritten(); }
        bool decodes() const { return outputTokens > 0 && computed() + 1 == known(); }
    };

    std::uint32_t lifeSlots(std::uint64_t promptTokens, std::uint32_t maxTokens) const;
    std::uint32_t runBlocks(const Entry& entry) const; // contiguous: blocks of its run
    void planDecodes(std::vector<ScheduledRows>& rows);
    void planPrefills(std::vector<ScheduledRows>& rows);
    void planAdmissions(std::vector<ScheduledRows>& rows);
    void schedulePrefill(Entry& entry, std::vector<ScheduledRows>& rows);
    std::uint32_t blocksUntilFirstToken(const Entry& newcomer) const;
    bool admit(Entry& entry);
    void preempt(Entry& entry, trace::PreemptionReason reason);
    bool makeRoom(Entry& entry, std::uint32_t tokens);
    void setStatus(Entry& entry, trace::RequestStatus status);
    std::uint64_t element(const Entry& entry) const;

    ScheduleRules m_rules;
    cache::BlockPool& m_pool;
    trace::EventEmitter& m_events;
    trace::StateHash& m_hash;
    std::map<RequestId, std::unique_ptr<Entry>> m_entries;
    std::deque<Entry*> m_waiting;
    std::vector<Entry*> m_running; // in order of admission
    std::uint32_t m_sequences = 0; // started so far

    // Of the running plan().
    std::uint32_t m_chunkLeft = 0;
    bool m_preempted = false;
    Waiting m_waitingFor;
};

} // namespace kvatlas::engine

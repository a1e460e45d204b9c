// SPDX-License-Identifier: Apache-2.0
// The state of a run as a fold over its events: live, replayed and attached runs share this one definition.
// One thread. Errors: an event that does not fit the state (a damaged or hostile recording, or a mistake of the engine)
// is refused with a sentence and leaves the state as it was.
//
// What fits, event by event; everything else is refused.
// - Order: RunStarted comes first and once. The step of a State event never goes back; inside a step (StepStarted up to
//   its StepEnded) it is that step's; after StepEnded of k it is greater than k. Steps may be skipped. Sample events
//   and EventsLost change nothing and are taken anywhere. Times are not looked at.
// - RunStarted: pools[i].pool == i, at most 64 pools, at most kMaxBlocks blocks in all, blockTokens 1..65,536.
// - CommandApplied changes nothing; what it causes comes as events of its own.
// - RequestArrived: a new id other than 0, tokens within the vocabulary -> Waiting. Ids need not arrive in order.
// - RequestAdmitted: Waiting -> Running; sets cachedTokens (at most the prompt's).
// - SequenceStarted: an id greater than every sequence's before; the request is known and has no sequence. Comes before
//   or after RequestAdmitted or RequestResumed of the same request, as the engine likes.
// - RequestPreempted: Running -> Preempted, preemptions + 1; tokens and output stay.
// - RequestResumed: Preempted -> Running; the sequence that goes on with it is a new one.
// - RequestFinished removes the request, whatever its status. outputTokens is at most the tokens sampled.
// - SequenceEnded: the table is empty (BlocksReleased came before, unless there was never a block); removes the
//   sequence. One whose request was preempted or finished must have ended by the next StepStarted or StepEnded: before
//   or after the request's event, as the engine likes.
// - StepStarted: each sequence at most once, its request Running; tokens >= 1; firstPosition == its slotsWritten; the
//   request knows the tokens (prompt and sampled) up to firstPosition + tokens.
// - BlocksAllocated: a table is a run of active blocks, then a run of reserved ones. firstLogical == the number of
//   active blocks. Each block in turn: where the table has a reserved block at that index it is that one, which turns
//   active; else it is free and is appended. Active means one reference and no used slot. All blocks of a table have
//   the same blockTokens.
// - BlocksReserved: firstLogical == table length; every block of the run is free and is appended, reserved, with one
//   reference and no used slot.
// - SlotsWritten: only inside a step; of a Running request's tokens; firstPosition == slotsWritten of the sequence; all
//   slots lie in active blocks with one reference. slotsWritten += count; usedSlots of each block touched = its slots
//   up to the last written.
// - TokenSampled: only inside a step; the request's own sequence; position == number of the request's tokens. Appends
//   the token (end tokens too) and counts it as output.
// - BlocksReleased: exactly the whole table, each block once, in the order in which they go onto the free list. The
//   blocks are free, the table is empty, slotsWritten is 0.
// - StepEnded: of the running step; every sequence of the batch that is still there has slotsWritten == firstPosition +
//   tokens; a stateHash other than 0 equals ours. Adds the batch to prefillTokens and decodeTokens.
// The state hash sums blockElement of every block that is not free, tableElement of every table entry (reserved ones
// too), sequenceElement of every sequence and requestElement of every unfinished request (waiting ones too).
#pragma once

#include "core/base/result.h"
#include "core/state/snapshot.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace kvatlas::state {

// A run with more blocks in all its pools is refused: block states are kept in memory at 40 bytes each.
constexpr std::uint32_t kMaxBlocks = 1u << 24;

// What RunHistory needs of a pool after each step, without a snapshot.
struct PoolTotals {
    const trace::PoolShape* shape = nullptr; // valid until the next RunStarted or the end of the CacheState
    BlockCounts counts;
    std::uint64_t usedSlots = 0;
};

class CacheState {
public:
    CacheState();
    ~CacheState();
    CacheState(CacheState&&) noexcept;
    CacheState& operator=(CacheState&&) noexcept;

    // Folds one event. StepEnded with a stateHash other than 0 that differs from ours is an error.
    Result<void> apply(const trace::Event& event);

    std::uint64_t stateHash() const; // equals the engine's after each step
    Step step() const;
    bool stepEnded() const; // false: events of step() may still follow

    std::size_t poolCount() const;            // 0 before RunStarted
    PoolTotals pool(std::size_t index) const; // REQUIRES: index < poolCount()

    // O(changed chunks). The result shares what did not change with earlier snapshots.
    std::shared_ptr<const Snapshot> snapshot();

    // A keyframe: pools, tables, unfinished requests; no times. decode(encode()) has the same stateHash, and equal
    // states give equal bytes. Format: see keyframe.cpp.
    std::vector<std::byte> encode() const;
    static Result<CacheState> decode(std::span<const std::byte> keyframe);

    struct Impl; // cache_model.h

private:
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvatlas::state

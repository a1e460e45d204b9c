// SPDX-License-Identifier: Apache-2.0
// An immutable picture of the cache after a step (or in the middle of the newest one). Cheap to take and to keep:
// blocks come in chunks of 256 that are shared with the snapshots before as long as nothing in them changed. Any
// thread.
#pragma once

#include "core/trace/event.h"
#include "core/trace/state_hash.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvatlas::state {

using trace::BlockKind;
using trace::RequestStatus;

struct BlockState {
    BlockKind kind = BlockKind::Free;
    std::uint32_t references = 0;
    std::uint32_t usedSlots = 0;
    SequenceId owner;          // the sequence that allocated or reserved it; 0 when free
    RequestId request;         // of that sequence
    std::uint32_t logical = 0; // its index in the owner's table
    Step changedStep = 0;      // when it last became active, reserved, cached or free
    Step writtenStep = 0;      // when a slot was last written
    friend bool operator==(const BlockState&, const BlockState&) = default;
};

constexpr std::uint32_t kChunkBlocks = 256;
using BlockChunk = std::array<BlockState, kChunkBlocks>;

struct BlockCounts {
    std::uint32_t free = 0, active = 0, cached = 0, reserved = 0;
    friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

struct PoolState {
    trace::PoolShape shape;
    std::vector<std::shared_ptr<const BlockChunk>> chunks;
    BlockCounts counts;
    std::uint64_t usedSlots = 0; // over active blocks, each block once

    const BlockState& block(std::uint32_t index) const { return (*chunks[index / kChunkBlocks])[index % kChunkBlocks]; }
};

struct SequenceState {
    SequenceId sequence;
    RequestId request;
    std::uint32_t slotsWritten = 0;
    std::shared_ptr<const std::vector<BlockId>> table; // logical order; reserved ones included
};

struct RequestState {
    RequestId request;
    std::string title;
    RequestStatus status = RequestStatus::Waiting;
    std::uint32_t promptTokens = 0, outputTokens = 0, cachedTokens = 0, maxTokens = 0, preemptions = 0;
    Step arrivedStep = 0;
    std::int64_t arrivedNs = 0;
    std::shared_ptr<const std::vector<TokenId>> tokens; // prompt, then output
    SequenceId sequence;                                // 0 while it has none
};

struct Snapshot {
    Step step = 0;          // the newest step seen; see stepEnded
    bool stepEnded = false; // false: events of `step` may still follow
    bool inStep = false;    // it has begun and not ended
    std::int64_t ns = 0;
    std::uint64_t stateHash = 0;
    std::uint64_t prefillTokens = 0, decodeTokens = 0; // computed since the run started
    std::shared_ptr<const trace::RunStarted> run;      // null before RunStarted
    std::vector<PoolState> pools;
    std::vector<SequenceState> sequences; // by id
    std::vector<RequestState> requests;   // unfinished, by id
    std::vector<trace::BatchEntry> batch; // of `step`
    std::uint32_t waitingRequests = 0;
    bool ended = false; // the stream is over
};

// Null: it has not arrived, or has finished. Valid as long as the snapshot.
inline const RequestState* findRequest(const Snapshot& snapshot, RequestId id) {
    const auto at =
        std::lower_bound(snapshot.requests.begin(), snapshot.requests.end(), id,
                         [](const RequestState& request, RequestId wanted) { return request.request < wanted; });
    return at != snapshot.requests.end() && at->request == id ? &*at : nullptr;
}

} // namespace kvatlas::state

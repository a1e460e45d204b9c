// SPDX-License-Identifier: Apache-2.0
#include "core/query/inspector.h"

#include "core/query/memory_map.h"

#include <algorithm>
#include <fmt/format.h>

namespace kvatlas::query {

namespace {

using state::BlockKind;
using state::BlockState;
using state::PoolState;
using state::RequestState;
using state::RequestStatus;
using state::SequenceState;
using state::Snapshot;

const SequenceState* findSequence(const Snapshot& snapshot, SequenceId id) {
    const auto at =
        std::lower_bound(snapshot.sequences.begin(), snapshot.sequences.end(), id,
                         [](const SequenceState& sequence, SequenceId wanted) { return sequence.sequence < wanted; });
    return at != snapshot.sequences.end() && at->sequence == id ? &*at : nullptr;
}

std::string stateText(const BlockState& block) {
    switch (block.kind) {
    case BlockKind::Active:
        return block.references > 1 ? fmt::format("active, shared by {}", block.references) : "active";
    case BlockKind::Cached:
        return "cached, evictable";
    case BlockKind::Reserved:
        return "reserved";
    case BlockKind::Free:
        break;
    }
    return "free";
}

const char* changeWord(BlockKind kind) {
    switch (kind) {
    case BlockKind::Active:
        return "Allocated";
    case BlockKind::Cached:
        return "Cached";
    case BlockKind::Reserved:
        return "Reserved";
    case BlockKind::Free:
        break;
    }
    return "Freed";
}

std::vector<SlotToken> slotsOf(const Snapshot& snapshot, const PoolState& pool, const BlockState& block) {
    std::vector<SlotToken> slots;
    if (block.kind != BlockKind::Active && block.kind != BlockKind::Reserved)
        return slots;
    const RequestState* request = findRequest(snapshot, block.request);
    const std::uint64_t first = std::uint64_t{block.logical} * pool.shape.blockTokens;
    slots.reserve(pool.shape.blockTokens);
    for (std::uint32_t slot = 0; slot < pool.shape.blockTokens; ++slot) {
        SlotToken& out = slots.emplace_back();
        out.slot = slot;
        out.position = static_cast<Position>(first + slot);
        out.written = slot < block.usedSlots;
        if (out.written && request && first + slot < request->tokens->size())
            out.token = (*request->tokens)[first + slot];
    }
    return slots;
}

std::vector<RequestId> usersOf(const Snapshot& snapshot, BlockId id, const BlockState& block) {
    if (block.references == 0)
        return {};
    if (block.references == 1)
        return {block.request};
    std::vector<RequestId> users;
    for (const SequenceState& sequence : snapshot.sequences)
        if (std::find(sequence.table->begin(), sequence.table->end(), id) != sequence.table->end())
            users.push_back(sequence.request);
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
}

} // namespace

std::string finishText(trace::FinishReason reason) {
    switch (reason) {
    case trace::FinishReason::EndToken:
        return "end token";
    case trace::FinishReason::StopText:
        return "stop text";
    case trace::FinishReason::MaxTokens:
        return "token limit";
    case trace::FinishReason::Context:
        return "context full";
    case trace::FinishReason::Cancelled:
        return "cancelled";
    case trace::FinishReason::Refused:
        return "refused";
    }
    return "unknown";
}

Fact lastChange(const state::BlockState& block, Thousands separator) {
    if (block.kind == BlockKind::Free && block.changedStep == 0)
        return {changeWord(block.kind), "never used"};
    return {changeWord(block.kind), "step " + numberText(static_cast<std::int64_t>(block.changedStep), separator)};
}

std::optional<BlockFacts> blockFacts(const Snapshot& snapshot, BlockId id, Thousands separator) {
    const std::size_t poolIndex = id.pool().value;
    if (poolIndex >= snapshot.pools.size() || id.index() >= snapshot.pools[poolIndex].shape.blocks)
        return std::nullopt;
    const PoolState& pool = snapshot.pools[poolIndex];
    const BlockState& block = pool.block(id.index());
    const auto number = [separator](std::uint64_t value) {
        return numberText(static_cast<std::int64_t>(value), separator);
    };

    BlockFacts out;
    out.block = id;
    out.title = "Block " + number(id.index());
    out.subtitle = titleOf(pool);
    out.usedBy = usersOf(snapshot, id, block);
    out.slots = slotsOf(snapshot, pool, block);
    out.facts.push_back({"State", stateText(block)});
    out.facts.push_back({"Tokens", fmt::format("{} of {} slots", block.usedSlots, pool.shape.blockTokens)});
    out.facts.push_back({"Size", exactBytesText(pool.shape.blockBytes, separator)});
    const bool owned = block.kind == BlockKind::Active || block.kind == BlockKind::Reserved;
    if (owned) {
        const std::uint64_t first = std::uint64_t{block.logical} * pool.shape.blockTokens;
        out.facts.push_back({"Logical index", number(block.logical)});
        out.facts.push_back({"Positions", number(first) + "\u2013" + number(first + pool.shape.blockTokens - 1)});
        out.facts.push_back({"Owner", fmt::format("request {}, sequence {}", block.request.value, block.owner.value)});
        out.facts.push_back({"References", number(block.references)});
    }
    out.facts.push_back(lastChange(block, separator));
    if (owned && block.usedSlots > 0)
        out.facts.push_back({"Last written", "step " + number(block.writtenStep)});
    return out;
}

std::optional<RequestFacts> requestFacts(const Snapshot& snapshot, RequestId id, Thousands separator) {
    const RequestState* request = findRequest(snapshot, id);
    if (!request)
        return std::nullopt;
    const auto number = [separator](std::uint64_t value) {
        return numberText(static_cast<std::int64_t>(value), separator);
    };
    RequestFacts out;
    out.request = id;
    out.title = fmt::format("Request {}", id.value);
    out.subtitle = request->title;
    out.facts = {{"State", wordOf(request->status)},
                 {"Prompt", number(request->promptTokens) + (request->promptTokens == 1 ? " token" : " tokens")},
                 {"Output", fmt::format("{} of at most {}", number(request->outputTokens), number(request->maxTokens)) +
                                (request->maxTokens == 1 ? " token" : " tokens")},
                 {"From the prefix cache", number(request->cachedTokens) + " tokens"},
                 {"Preempted", number(request->preemptions) + "\u00D7"},
                 {"Arrived", "step " + number(request->arrivedStep)}};
    if (const SequenceState* sequence = findSequence(snapshot, request->sequence)) {
        out.blocks = *sequence->table;
        std::uint64_t bytes = 0;
        for (const BlockId block : out.blocks)
            bytes += snapshot.pools[block.pool().value].shape.blockBytes;
        out.facts.push_back({"Slots written", number(sequence->slotsWritten)});
        out.facts.push_back({"Blocks", number(out.blocks.size())});
        out.facts.push_back({"Size", exactBytesText(bytes, separator)});
    }
    if (request->status != RequestStatus::Running && !snapshot.pools.empty()) {
        const PoolState& pool = snapshot.pools.front();
        const std::uint64_t tokens = std::uint64_t{request->promptTokens} + request->outputTokens;
        const std::uint64_t blocks = (tokens + pool.shape.blockTokens - 1) / pool.shape.blockTokens;
        out.facts.push_back(
            {"Blocks needed", fmt::format("{} at least, free now: {}", number(blocks), number(pool.counts.free))});
    }
    return out;
}

RequestFacts requestFacts(const trace::RequestRow& row, Step step, Thousands separator) {
    const auto number = [separator](std::uint64_t value) {
        return numberText(static_cast<std::int64_t>(value), separator);
    };
    RequestFacts out;
    out.request = row.request;
    out.title = fmt::format("Request {}", row.request.value);
    out.subtitle = row.title;
    if (row.arrivedStep > step) {
        out.facts = {{"State", "to come"}, {"Arrives", "step " + number(row.arrivedStep)}};
        return out;
    }
    const char* unfinished = row.admittedStep ? "running" : "waiting";
    out.facts = {{"State", row.finishReason ? "finished: " + finishText(*row.finishReason) : unfinished},
                 {"Prompt", number(row.promptTokens) + " tokens"},
                 {"Output", number(row.outputTokens) + " tokens"},
                 {"From the prefix cache", number(row.cachedTokens) + " tokens"},
                 {"Preempted", number(row.preemptions) + "\u00D7"},
                 {"Arrived", "step " + number(row.arrivedStep)}};
    if (row.firstTokenNs) {
        out.facts.push_back({"First token", "step " + number(row.firstTokenStep.value_or(0))});
        out.facts.push_back({"Time to first token", durationText(*row.firstTokenNs - row.arrivedNs)});
    }
    if (row.finishedNs) {
        out.facts.push_back({"Finished", "step " + number(row.finishedStep.value_or(0))});
        if (row.firstTokenNs && row.outputTokens > 1)
            out.facts.push_back({"Time per token", durationText((*row.finishedNs - *row.firstTokenNs) /
                                                                (std::int64_t{row.outputTokens} - 1))});
    }
    if (!row.detail.empty())
        out.facts.push_back({"Reason", row.detail});
    return out;
}

} // namespace kvatlas::query

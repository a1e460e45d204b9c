// SPDX-License-Identifier: Apache-2.0
// CacheState as bytes. Version 1, in the words of core/trace/codec.h:
//   version u8 = 1; step; flags u8 (1 in step, 2 step ended, 4 run started); prefillTokens; decodeTokens; lastSequence;
//   without a run nothing but the hash follows.
//   run: length, then a one-event batch of the codec, with step and ns 0.
//   waitingRequests; batch: as in StepStarted.
//   requests by id: count, then id difference, title, status u8, promptTokens, outputTokens, cachedTokens, maxTokens,
//     preemptions, arrivedStep, then promptTokens + outputTokens tokens.
//   sequences by id: count, then id difference, request, slotsWritten, activeBlocks, table (block list); then per table
//     entry: step - changedStep, and for active ones step - writtenStep.
//   per pool: runs over its free blocks in ascending order: length, step - changedStep.
//   state hash u64 fixed.
// What follows from these (kind, references, slots and owner of a block, counts, a request's sequence) is not stored,
// so that it cannot contradict them.
#include "core/state/cache_model.h"

#include "core/base/bytes.h"
#include "core/trace/codec.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace kvatlas::state {

namespace {

using namespace trace;
using Model = CacheState::Impl;

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kInStep = 1, kStepEnded = 2, kHasRun = 4;

void writeRequests(ByteWriter& out, const Model& model) {
    out.varint(model.requests.size());
    std::uint64_t before = 0;
    for (const auto& [id, request] : model.requests) {
        out.varint(id.value - std::exchange(before, id.value));
        out.text(request.title);
        out.fixed(static_cast<std::uint8_t>(request.status));
        for (const std::uint32_t number : {request.promptTokens, request.outputTokens, request.cachedTokens,
                                           request.maxTokens, request.preemptions, request.arrivedStep})
            out.varint(number);
        for (const TokenId token : request.tokens.get())
            out.varint(static_cast<std::uint32_t>(token));
    }
}

void writeSequences(ByteWriter& out, const Model& model) {
    out.varint(model.sequences.size());
    std::uint32_t before = 0;
    for (const auto& [id, sequence] : model.sequences) {
        out.varint(id.value - std::exchange(before, id.value));
        out.varint(sequence.request.value);
        out.varint(sequence.slotsWritten);
        out.varint(sequence.activeBlocks);
        const std::vector<BlockId>& table = sequence.table.get();
        out.varint(table.size());
        std::uint32_t last = 0;
        for (const BlockId block : table)
            out.signedVarint(std::int64_t{block.value} - std::int64_t{std::exchange(last, block.value)});
        for (const BlockId block : table) {
            const BlockState& state = *model.find(block);
            out.varint(model.step - state.changedStep);
            if (state.kind == BlockKind::Active)
                out.varint(model.step - state.writtenStep);
        }
    }
}

void writeFreeBlocks(ByteWriter& out, const Model& model) {
    for (const Pool& pool : model.pools) {
        std::uint32_t length = 0;
        Step step = 0;
        const auto flush = [&] {
            if (length > 0) {
                out.varint(length);
                out.varint(model.step - step);
            }
        };
        for (std::uint32_t i = 0; i < pool.shape.blocks; ++i) {
            const BlockState& block = pool.block(i);
            if (block.kind != BlockKind::Free)
                continue;
            if (length > 0 && block.changedStep == step) {
                ++length;
                continue;
            }
            flush();
            length = 1;
            step = block.changedStep;
        }
        flush();
    }
}

// ---- Reading: everything is checked as it comes; any doubt fails the reader.

class KeyframeReader {
public:
    KeyframeReader(std::span<const std::byte> bytes, Model& model)
        : m_in(bytes)
        , m_model(model) {}

    Result<void> read() {
        const auto version = m_in.fixed<std::uint8_t>();
        if (!m_in.ok() || version != kVersion)
            return makeError(ErrorKind::Refused, "The keyframe is in format {}, but this program reads format {}.",
                             version, kVersion);
        readAll();
        if (!m_in.ok() || !m_in.atEnd())
            return makeError(ErrorKind::Refused, "The keyframe is damaged near byte {}.", m_in.position());
        return {};
    }

private:
    std::uint32_t number32(std::uint64_t max = std::numeric_limits<std::uint32_t>::max()) {
        const std::uint64_t value = m_in.varint();
        require(value <= max);
        return static_cast<std::uint32_t>(value);
    }
    void require(bool condition) {
        if (!condition)
            m_in.fail();
    }
    Step pastStep() { return m_model.step - number32(m_model.step); }

    void readAll() {
        m_model.step = number32();
        const auto flags = m_in.fixed<std::uint8_t>();
        require((flags & ~(kInStep | kStepEnded | kHasRun)) == 0 && (flags & (kInStep | kStepEnded)) != 3);
        m_model.inStep = (flags & kInStep) != 0;
        m_model.stepEnded = (flags & kStepEnded) != 0;
        m_model.prefillTokens = m_in.varint();
        m_model.decodeTokens = m_in.varint();
        m_model.lastSequence = SequenceId(number32());
        if ((flags & kHasRun) != 0) {
            readRun();
            readBatch();
            readRequests();
            readSequences();
            readFreeBlocks();
            checkBatch();
        }
        const auto hash = m_in.fixed<std::uint64_t>();
        require(hash == m_model.hash.value());
    }

    void readRun() {
        const auto bytes = m_in.bytes(m_in.count());
        if (!m_in.ok())
            return;
        auto events = trace::decode(bytes);
        require(events && events->size() == 1 && std::holds_alternative<RunStarted>(events->front().body));
        if (!m_in.ok())
            return;
        // The run's own checks are those of the event.
        CacheState state;
        Event& event = events->front();
        event.step = 0;
        require(state.apply(event).has_value());
        if (m_in.ok())
            m_model.start(std::get<RunStarted>(event.body));
    }

    void readBatch() {
        m_model.waitingRequests = number32();
        const std::size_t count = m_in.count(4);
        for (std::size_t i = 0; i < count && m_in.ok(); ++i) {
            BatchEntry& entry = m_model.batch.emplace_back();
            entry.sequence = SequenceId(number32());
            entry.firstPosition = number32();
            entry.tokens = number32();
            const auto prefill = m_in.fixed<std::uint8_t>();
            require(prefill <= 1 && entry.tokens > 0);
            entry.prefill = prefill == 1;
        }
    }

    // Entries of the batch while its step runs: what StepEnded will ask for.
    void checkBatch() {
        std::vector<SequenceId> seen;
        for (const BatchEntry& entry : m_model.batch) {
            require(entry.sequence.value > 0 && entry.sequence <= m_model.lastSequence);
            seen.push_back(entry.sequence);
        }
        std::sort(seen.begin(), seen.end());
        require(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    }

    void readRequests() {
        const std::size_t count = m_in.count(9);
        const std::uint32_t vocabulary = m_in.ok() ? m_model.model().vocabulary : 0;
        const std::uint32_t lastToken = vocabulary == 0 ? 0x7FFF'FFFFu : vocabulary - 1;
        std::uint64_t id = 0;
        for (std::size_t i = 0; i < count && m_in.ok(); ++i) {
            const std::uint64_t difference = m_in.varint();
            require(difference > 0 && difference <= std::numeric_limits<std::uint64_t>::max() - id);
            id += difference;
            Request request;
            request.title = m_in.text();
            const auto status = m_in.fixed<std::uint8_t>();
            require(status >= 1 && status <= 3);
            request.status = static_cast<RequestStatus>(status);
            request.promptTokens = number32();
            request.outputTokens = number32();
            request.cachedTokens = number32(request.promptTokens);
            request.maxTokens = number32();
            request.preemptions = number32();
            request.arrivedStep = number32(m_model.step);
            const std::uint64_t tokens = std::uint64_t{request.promptTokens} + request.outputTokens;
            require(tokens <= m_in.remaining());
            if (!m_in.ok())
                return;
            std::vector<TokenId>& list = request.tokens.change();
            list.reserve(tokens);
            for (std::uint64_t t = 0; t < tokens; ++t)
                list.push_back(static_cast<TokenId>(number32(std::min(lastToken, 0x7FFF'FFFFu))));
            if (m_in.ok())
                m_model.addRequest(RequestId(id), std::move(request));
        }
    }

    void readSequences() {
        const std::size_t count = m_in.count(5);
        const SequenceId newest = m_model.lastSequence;
        std::uint64_t id = 0;
        for (std::size_t i = 0; i < count && m_in.ok(); ++i) {
            const std::uint64_t difference = m_in.varint();
            require(difference > 0 && difference <= newest.value && id + difference <= newest.value);
            id += difference;
            const RequestId owner(m_in.varint());
            if (!m_in.ok())
                return;
            const auto request = m_model.requests.find(owner);
            if (request == m_model.requests.end())
                readOrphan(SequenceId(static_cast<std::uint32_t>(id)), owner);
            else {
                require(request->second.sequence.value == 0);
                if (!m_in.ok())
                    return;
                m_model.startSequence(SequenceId(static_cast<std::uint32_t>(id)), owner);
            }
            readTable(SequenceId(static_cast<std::uint32_t>(id)));
        }
        m_model.lastSequence = newest;
    }

    // Between RequestFinished and SequenceEnded a sequence may stand alone.
    void readOrphan(SequenceId id, RequestId owner) {
        m_model.addRequest(owner, {});
        m_model.startSequence(id, owner);
        m_model.removeRequest(owner);
    }

    void readTable(SequenceId id) {
        const std::uint32_t slotsWritten = number32();
        const std::uint32_t activeBlocks = number32();
        const std::size_t length = m_in.count(1);
        require(activeBlocks <= length);
        if (!m_in.ok())
            return;
        Sequence& sequence = m_model.sequences.find(id)->second;
        std::uint32_t last = 0;
        std::uint32_t blockTokens = 0;
        for (std::size_t i = 0; i < length; ++i) {
            const std::uint64_t value = std::uint64_t{last} + static_cast<std::uint64_t>(m_in.signedVarint());
            require(value <= std::numeric_limits<std::uint32_t>::max());
            if (!m_in.ok())
                return;
            BlockId block;
            block.value = last = static_cast<std::uint32_t>(value);
            const BlockState* state = m_model.find(block);
            require(state && state->kind == BlockKind::Free);
            if (!m_in.ok())
                return;
            const std::uint32_t tokens = m_model.pools[block.pool().value].shape.blockTokens;
            require(blockTokens == 0 || tokens == blockTokens);
            blockTokens = tokens;
            m_model.appendBlock(id, sequence, block, i < activeBlocks ? BlockKind::Active : BlockKind::Reserved, 0);
        }
        sequence.activeBlocks = activeBlocks;
        require(slotsWritten <= std::uint64_t{activeBlocks} * blockTokens);
        if (const auto request = m_model.requests.find(sequence.request); request != m_model.requests.end())
            require(slotsWritten <= request->second.tokens.get().size());
        if (!m_in.ok())
            return;
        if (slotsWritten > 0)
            m_model.writeSlots(id, sequence, slotsWritten, 0);
        for (std::size_t i = 0; i < length && m_in.ok(); ++i) {
            const BlockId block = sequence.table.get()[i];
            BlockState state = *m_model.find(block);
            state.changedStep = pastStep();
            if (i < activeBlocks)
                state.writtenStep = pastStep();
            m_model.setBlock(block, state);
        }
    }

    void readFreeBlocks() {
        for (std::size_t i = 0; i < m_model.pools.size() && m_in.ok(); ++i) {
            Pool& pool = m_model.pools[i];
            std::uint32_t left = pool.counts.free;
            std::uint32_t at = 0;
            while (left > 0 && m_in.ok()) {
                std::uint32_t length = number32(left);
                const Step changed = pastStep();
                require(length > 0);
                if (!m_in.ok())
                    return;
                left -= length;
                while (length > 0)
                    at = markRun(pool, at, length, changed);
            }
        }
    }

    // Marks the next free blocks that lie together, at most `length`, and takes them off it; returns where they end.
    std::uint32_t markRun(Pool& pool, std::uint32_t at, std::uint32_t& length, Step changed) {
        while (pool.block(at).kind != BlockKind::Free)
            ++at;
        std::uint32_t end = at;
        while (length > 0 && end < pool.shape.blocks && pool.block(end).kind == BlockKind::Free) {
            ++end;
            --length;
        }
        if (changed != 0)
            m_model.markFree(pool, at, end - at, changed);
        return end;
    }

    ByteReader m_in;
    Model& m_model;
};

} // namespace

std::vector<std::byte> CacheState::encode() const {
    const Impl& model = *m_impl;
    std::vector<std::byte> bytes;
    ByteWriter out(bytes);
    out.fixed(kVersion);
    out.varint(model.step);
    out.fixed(static_cast<std::uint8_t>((model.inStep ? kInStep : 0) | (model.stepEnded ? kStepEnded : 0) |
                                        (model.run ? kHasRun : 0)));
    out.varint(model.prefillTokens);
    out.varint(model.decodeTokens);
    out.varint(model.lastSequence.value);
    if (model.run) {
        const Event run{0, 0, *model.run};
        const std::vector<std::byte> runBytes = trace::encode(std::span(&run, 1));
        out.varint(runBytes.size());
        out.bytes(runBytes);
        out.varint(model.waitingRequests);
        out.varint(model.batch.size());
        for (const BatchEntry& entry : model.batch) {
            out.varint(entry.sequence.value);
            out.varint(entry.firstPosition);
            out.varint(entry.tokens);
            out.fixed(static_cast<std::uint8_t>(entry.prefill ? 1 : 0));
        }
        writeRequests(out, model);
        writeSequences(out, model);
        writeFreeBlocks(out, model);
    }
    out.fixed(model.hash.value());
    return bytes;
}

Result<CacheState> CacheState::decode(std::span<const std::byte> keyframe) {
    CacheState state;
    if (auto ok = KeyframeReader(keyframe, *state.m_impl).read(); !ok)
        return tl::unexpected(ok.error());
    return state;
}

} // namespace kvatlas::state

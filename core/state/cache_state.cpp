// SPDX-License-Identifier: Apache-2.0
// The checks of every event. A check that fails returns before anything is changed.
#include "core/state/cache_state.h"

#include "core/state/cache_model.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

namespace kvatlas::state {

namespace {

using namespace trace;
using Model = CacheState::Impl;

template <class... Args> tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
    return makeError(ErrorKind::Refused, text, std::forward<Args>(args)...);
}

std::string nameOfBlock(BlockId block) {
    return fmt::format("block {} of pool {}", block.index(), block.pool().value);
}

bool isToken(const Model& model, TokenId token) {
    const std::uint32_t vocabulary = model.model().vocabulary;
    return token >= 0 && (vocabulary == 0 || static_cast<std::uint32_t>(token) < vocabulary);
}

Result<Request*> findRequest(Model& model, RequestId id) {
    const auto at = model.requests.find(id);
    if (at == model.requests.end())
        return refuse("request {} is unknown or finished", id.value);
    return &at->second;
}

Result<Sequence*> findSequence(Model& model, SequenceId id) {
    const auto at = model.sequences.find(id);
    if (at == model.sequences.end())
        return refuse("sequence {} is unknown or ended", id.value);
    return &at->second;
}

Result<Request*> findRequest(Model& model, RequestId id, RequestStatus status) {
    auto request = findRequest(model, id);
    if (request && (*request)->status != status)
        return refuse("request {} is {}, not {}", id.value, wordOf((*request)->status), wordOf(status));
    return request;
}

// All blocks of a table have the same number of slots.
Result<void> checkJoins(const Model& model, const Sequence& sequence, BlockId block, std::uint32_t blockTokens) {
    if (model.pools[block.pool().value].shape.blockTokens != blockTokens)
        return refuse("{} has another number of slots than the blocks of sequence's table of request {}",
                      nameOfBlock(block), sequence.request.value);
    return {};
}

Result<void> checkFree(const Model& model, BlockId block) {
    const BlockState* state = model.find(block);
    if (!state)
        return refuse("there is no {}", nameOfBlock(block));
    if (state->kind != BlockKind::Free)
        return refuse("{} is {}, not free", nameOfBlock(block), wordOf(state->kind));
    return {};
}

Result<void> checkDistinct(std::vector<BlockId> blocks) {
    std::sort(blocks.begin(), blocks.end());
    if (const auto twice = std::adjacent_find(blocks.begin(), blocks.end()); twice != blocks.end())
        return refuse("{} is named twice", nameOfBlock(*twice));
    return {};
}

// ---- Each on... checks, then changes.

Result<void> on(Model& model, const Event&, const RunStarted& e) {
    if (model.run)
        return refuse("the run has started already");
    if (e.pools.size() > 64)
        return refuse("{} pools are more than 64", e.pools.size());
    std::uint64_t blocks = 0;
    for (std::size_t i = 0; i < e.pools.size(); ++i) {
        const PoolShape& pool = e.pools[i];
        if (pool.pool.value != i)
            return refuse("pool {} stands in place {}", pool.pool.value, i);
        if (pool.blockTokens < 1 || pool.blockTokens > 65'536)
            return refuse("pool {} has blocks of {} tokens", i, pool.blockTokens);
        if (pool.blockBytes > (std::uint64_t{1} << 32))
            return refuse("pool {} has blocks of {} bytes", i, pool.blockBytes);
        blocks += pool.blocks;
    }
    if (blocks > kMaxBlocks)
        return refuse("{} blocks are more than {}", blocks, kMaxBlocks);
    model.start(e);
    return {};
}

Result<void> on(Model&, const Event&, const CommandApplied&) {
    return {};
}

Result<void> on(Model& model, const Event& event, const RequestArrived& e) {
    if (e.request.value == 0 || model.requests.contains(e.request))
        return refuse("request {} is there already", e.request.value);
    for (const TokenId token : e.promptTokens)
        if (!isToken(model, token))
            return refuse("token {} of request {} is not in the vocabulary", token, e.request.value);
    Request request;
    request.title = e.title;
    request.promptTokens = static_cast<std::uint32_t>(e.promptTokens.size());
    request.maxTokens = e.maxTokens;
    request.arrivedStep = event.step;
    request.arrivedNs = event.ns;
    request.tokens = CopyOnWrite<std::vector<TokenId>>(e.promptTokens);
    model.addRequest(e.request, std::move(request));
    return {};
}

Result<void> on(Model& model, const Event&, const RequestAdmitted& e) {
    const auto request = findRequest(model, e.request, RequestStatus::Waiting);
    if (!request)
        return tl::unexpected(request.error());
    if (e.cachedTokens > (*request)->promptTokens)
        return refuse("request {} has {} prompt tokens, not the {} said to be cached", e.request.value,
                      (*request)->promptTokens, e.cachedTokens);
    (*request)->cachedTokens = e.cachedTokens;
    model.setStatus(e.request, **request, RequestStatus::Running);
    return {};
}

Result<void> on(Model& model, const Event&, const RequestPreempted& e) {
    const auto request = findRequest(model, e.request, RequestStatus::Running);
    if (!request)
        return tl::unexpected(request.error());
    model.countPreemption(e.request, **request);
    return {};
}

Result<void> on(Model& model, const Event&, const RequestResumed& e) {
    const auto request = findRequest(model, e.request, RequestStatus::Preempted);
    if (!request)
        return tl::unexpected(request.error());
    if ((*request)->sequence.value != 0)
        return refuse("request {} still has sequence {}", e.request.value, (*request)->sequence.value);
    model.setStatus(e.request, **request, RequestStatus::Running);
    return {};
}

Result<void> on(Model& model, const Event&, const RequestFinished& e) {
    const auto request = findRequest(model, e.request);
    if (!request)
        return tl::unexpected(request.error());
    if (e.outputTokens > (*request)->outputTokens)
        return refuse("request {} has {} output tokens, not {}", e.request.value, (*request)->outputTokens,
                      e.outputTokens);
    model.removeRequest(e.request);
    return {};
}

Result<void> on(Model& model, const Event&, const SequenceStarted& e) {
    if (e.sequence <= model.lastSequence)
        return refuse("sequence {} starts after sequence {}", e.sequence.value, model.lastSequence.value);
    const auto request = findRequest(model, e.request);
    if (!request)
        return tl::unexpected(request.error());
    if ((*request)->sequence.value != 0)
        return refuse("request {} has sequence {} already", e.request.value, (*request)->sequence.value);
    model.startSequence(e.sequence, e.request);
    return {};
}

Result<void> on(Model& model, const Event&, const SequenceEnded& e) {
    const auto sequence = findSequence(model, e.sequence);
    if (!sequence)
        return tl::unexpected(sequence.error());
    if (!(*sequence)->table.get().empty())
        return refuse("sequence {} still holds {} blocks", e.sequence.value, (*sequence)->table.get().size());
    model.endSequence(e.sequence);
    return {};
}

Result<void> checkNoOrphans(const Model& model) {
    if (const SequenceId orphan = model.orphan(); orphan.value != 0)
        return refuse("sequence {} goes on although its request is finished or preempted", orphan.value);
    return {};
}

Result<void> checkEntry(Model& model, const BatchEntry& entry) {
    const auto sequence = findSequence(model, entry.sequence);
    if (!sequence)
        return tl::unexpected(sequence.error());
    const auto request = findRequest(model, (*sequence)->request, RequestStatus::Running);
    if (!request)
        return tl::unexpected(request.error());
    if (entry.tokens == 0)
        return refuse("sequence {} is in the batch with no token", entry.sequence.value);
    if (entry.firstPosition != (*sequence)->slotsWritten)
        return refuse("sequence {} has {} slots written, so its batch cannot begin at {}", entry.sequence.value,
                      (*sequence)->slotsWritten, entry.firstPosition);
    if (std::uint64_t{entry.firstPosition} + entry.tokens > (*request)->tokens.get().size())
        return refuse("sequence {} has only {} tokens", entry.sequence.value, (*request)->tokens.get().size());
    return {};
}

Result<void> on(Model& model, const Event&, const StepStarted& e) {
    if (model.inStep)
        return refuse("step {} has not ended", model.step);
    if (auto ok = checkNoOrphans(model); !ok)
        return ok;
    std::vector<SequenceId> seen;
    seen.reserve(e.batch.size());
    for (const BatchEntry& entry : e.batch) {
        if (auto ok = checkEntry(model, entry); !ok)
            return ok;
        seen.push_back(entry.sequence);
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end())
        return refuse("a sequence is in the batch twice");
    model.batch = e.batch;
    model.waitingRequests = e.waitingRequests;
    model.inStep = true;
    return {};
}

Result<void> on(Model& model, const Event&, const StepEnded& e) {
    if (!model.inStep)
        return refuse("no step is running");
    if (auto ok = checkNoOrphans(model); !ok)
        return ok;
    for (const BatchEntry& entry : model.batch) {
        const auto at = model.sequences.find(entry.sequence);
        if (at != model.sequences.end() && at->second.slotsWritten != std::uint64_t{entry.firstPosition} + entry.tokens)
            return refuse("sequence {} has {} slots written, not up to {}", entry.sequence.value,
                          at->second.slotsWritten, std::uint64_t{entry.firstPosition} + entry.tokens);
    }
    if (e.stateHash != 0 && e.stateHash != model.hash.value())
        return refuse("the engine's state hash is {:016x} and the folded one {:016x}", e.stateHash, model.hash.value());
    model.countBatch();
    model.inStep = false;
    return {};
}

Result<void> on(Model& model, const Event& event, const BlocksAllocated& e) {
    const auto found = findSequence(model, e.sequence);
    if (!found)
        return tl::unexpected(found.error());
    Sequence& sequence = **found;
    const std::vector<BlockId>& table = sequence.table.get();
    if (e.blocks.empty())
        return refuse("no block is named");
    if (e.firstLogical != sequence.activeBlocks)
        return refuse("sequence {} has {} active blocks, so none can come at {}", e.sequence.value,
                      sequence.activeBlocks, e.firstLogical);
    if (!model.find(e.blocks.front()))
        return refuse("there is no {}", nameOfBlock(e.blocks.front()));
    const BlockId pattern = table.empty() ? e.blocks.front() : table.front();
    const std::uint32_t blockTokens = model.pools[pattern.pool().value].shape.blockTokens;
    const std::size_t reserved = table.size() - sequence.activeBlocks;
    for (std::size_t i = 0; i < e.blocks.size(); ++i) {
        if (i < reserved) {
            if (e.blocks[i] != table[e.firstLogical + i])
                return refuse("sequence {} has reserved {} at {}, not {}", e.sequence.value,
                              nameOfBlock(table[e.firstLogical + i]), e.firstLogical + i, nameOfBlock(e.blocks[i]));
            continue;
        }
        if (auto ok = checkFree(model, e.blocks[i]); !ok)
            return ok;
        if (auto ok = checkJoins(model, sequence, e.blocks[i], blockTokens); !ok)
            return ok;
    }
    if (e.blocks.size() > 1)
        if (auto ok = checkDistinct(e.blocks); !ok)
            return ok;
    for (std::size_t i = 0; i < e.blocks.size(); ++i) {
        if (i < reserved)
            model.activate(e.blocks[i], event.step);
        else
            model.appendBlock(e.sequence, sequence, e.blocks[i], BlockKind::Active, event.step);
        ++sequence.activeBlocks;
    }
    return {};
}

Result<void> on(Model& model, const Event& event, const BlocksReserved& e) {
    const auto found = findSequence(model, e.sequence);
    if (!found)
        return tl::unexpected(found.error());
    Sequence& sequence = **found;
    if (e.firstLogical != sequence.table.get().size())
        return refuse("the table of sequence {} has {} blocks, so none can come at {}", e.sequence.value,
                      sequence.table.get().size(), e.firstLogical);
    if (e.count == 0)
        return refuse("no block is named");
    if (!model.find(e.first))
        return refuse("there is no {}", nameOfBlock(e.first));
    const PoolShape& shape = model.pools[e.first.pool().value].shape;
    if (e.count > shape.blocks - e.first.index())
        return refuse("pool {} has no {} blocks from {} on", shape.pool.value, e.count, e.first.index());
    if (!sequence.table.get().empty()) {
        const BlockId pattern = sequence.table.get().front();
        const std::uint32_t blockTokens = model.pools[pattern.pool().value].shape.blockTokens;
        if (auto ok = checkJoins(model, sequence, e.first, blockTokens); !ok)
            return ok;
    }
    for (std::uint32_t i = 0; i < e.count; ++i)
        if (auto ok = checkFree(model, BlockId(shape.pool, e.first.index() + i)); !ok)
            return ok;
    for (std::uint32_t i = 0; i < e.count; ++i)
        model.appendBlock(e.sequence, sequence, BlockId(shape.pool, e.first.index() + i), BlockKind::Reserved,
                          event.step);
    return {};
}

Result<void> on(Model& model, const Event& event, const BlocksReleased& e) {
    const auto found = findSequence(model, e.sequence);
    if (!found)
        return tl::unexpected(found.error());
    Sequence& sequence = **found;
    if (e.blocks.size() != sequence.table.get().size())
        return refuse("sequence {} holds {} blocks, but {} are released", e.sequence.value, sequence.table.get().size(),
                      e.blocks.size());
    for (const BlockId block : e.blocks) {
        const BlockState* state = model.find(block);
        if (!state || state->kind == BlockKind::Free || state->owner != e.sequence)
            return refuse("{} is not in the table of sequence {}", nameOfBlock(block), e.sequence.value);
    }
    if (auto ok = checkDistinct(e.blocks); !ok)
        return ok;
    model.releaseTable(e.sequence, sequence, event.step);
    return {};
}

Result<void> on(Model& model, const Event& event, const SlotsWritten& e) {
    const auto found = findSequence(model, e.sequence);
    if (!found)
        return tl::unexpected(found.error());
    Sequence& sequence = **found;
    if (!model.inStep)
        return refuse("no step is running");
    if (e.count == 0)
        return refuse("no slot is written");
    if (e.firstPosition != sequence.slotsWritten)
        return refuse("sequence {} has {} slots written, so none can come at {}", e.sequence.value,
                      sequence.slotsWritten, e.firstPosition);
    const auto request = findRequest(model, sequence.request, RequestStatus::Running);
    if (!request)
        return tl::unexpected(request.error());
    if (std::uint64_t{e.firstPosition} + e.count > (*request)->tokens.get().size())
        return refuse("request {} has only {} tokens", sequence.request.value, (*request)->tokens.get().size());
    const std::vector<BlockId>& table = sequence.table.get();
    const std::uint64_t blockTokens = table.empty() ? 1 : model.pools[table.front().pool().value].shape.blockTokens;
    if (std::uint64_t{e.firstPosition} + e.count > sequence.activeBlocks * blockTokens)
        return refuse("slots up to {} do not fit into the {} active blocks of sequence {}",
                      std::uint64_t{e.firstPosition} + e.count, sequence.activeBlocks, e.sequence.value);
    const auto end = static_cast<std::uint32_t>((std::uint64_t{e.firstPosition} + e.count - 1) / blockTokens);
    for (auto logical = static_cast<std::uint32_t>(e.firstPosition / blockTokens); logical <= end; ++logical)
        if (model.find(table[logical])->references != 1)
            return refuse("{} is shared and cannot be written", nameOfBlock(table[logical]));
    model.writeSlots(e.sequence, sequence, e.count, event.step);
    return {};
}

Result<void> on(Model& model, const Event&, const TokenSampled& e) {
    const auto request = findRequest(model, e.request, RequestStatus::Running);
    if (!request)
        return tl::unexpected(request.error());
    if (!model.inStep)
        return refuse("no step is running");
    if (e.sequence.value == 0 || (*request)->sequence != e.sequence)
        return refuse("sequence {} does not belong to request {}", e.sequence.value, e.request.value);
    if (e.position != (*request)->tokens.get().size())
        return refuse("request {} has {} tokens, so none can come at {}", e.request.value,
                      (*request)->tokens.get().size(), e.position);
    if (!isToken(model, e.token))
        return refuse("token {} is not in the vocabulary", e.token);
    model.appendToken(e.request, **request, e.token);
    return {};
}

Result<void> on(Model&, const Event&, std::monostate) {
    return refuse("it holds nothing");
}

template <class T>
constexpr bool kChangesNothing =
    std::is_same_v<T, KernelSpan> || std::is_same_v<T, MemoryCounter> || std::is_same_v<T, EventsLost>;

Result<void> checkOrder(const Model& model, const Event& event) {
    if (!model.run && !std::holds_alternative<RunStarted>(event.body))
        return refuse("the run has not started");
    if (event.step < model.step)
        return refuse("step {} was reached before", model.step);
    if (model.inStep && event.step != model.step)
        return refuse("step {} has not ended", model.step);
    if (model.stepEnded && event.step == model.step)
        return refuse("step {} has ended", model.step);
    return {};
}

} // namespace

CacheState::CacheState()
    : m_impl(std::make_unique<Impl>()) {}
CacheState::~CacheState() = default;
CacheState::CacheState(CacheState&&) noexcept = default;
CacheState& CacheState::operator=(CacheState&&) noexcept = default;

Result<void> CacheState::apply(const Event& event) {
    Impl& model = *m_impl;
    return std::visit(
        [&](const auto& body) -> Result<void> {
            using Body = std::decay_t<decltype(body)>;
            if constexpr (kChangesNothing<Body>) {
                return {};
            } else {
                Result<void> result = checkOrder(model, event);
                if (result)
                    result = on(model, event, body);
                if (!result) {
                    const bool named = !std::is_same_v<Body, std::monostate>;
                    return refuse("The event \"{}\" at step {} does not fit the state: {}.",
                                  named ? nameOf(event.kind()) : "none", event.step, result.error().message);
                }
                model.step = event.step;
                model.ns = event.ns;
                model.stepEnded = std::is_same_v<Body, StepEnded>;
                return {};
            }
        },
        event.body);
}

std::uint64_t CacheState::stateHash() const {
    return m_impl->hash.value();
}
Step CacheState::step() const {
    return m_impl->step;
}
bool CacheState::stepEnded() const {
    return m_impl->stepEnded;
}
std::size_t CacheState::poolCount() const {
    return m_impl->pools.size();
}

PoolTotals CacheState::pool(std::size_t index) const {
    assert(index < m_impl->pools.size());
    const Pool& pool = m_impl->pools[index];
    return {&pool.shape, pool.counts, pool.usedSlots};
}

std::shared_ptr<const Snapshot> CacheState::snapshot() {
    Impl& model = *m_impl;
    auto out = std::make_shared<Snapshot>();
    out->step = model.step;
    out->stepEnded = model.stepEnded;
    out->inStep = model.inStep;
    out->ns = model.ns;
    out->stateHash = model.hash.value();
    out->prefillTokens = model.prefillTokens;
    out->decodeTokens = model.decodeTokens;
    out->run = model.run;
    out->batch = model.batch;
    out->waitingRequests = model.waitingRequests;
    out->pools.reserve(model.pools.size());
    for (Pool& pool : model.pools) {
        PoolState& to = out->pools.emplace_back();
        to.shape = pool.shape;
        to.chunks.assign(pool.chunks.begin(), pool.chunks.end());
        to.counts = pool.counts;
        to.usedSlots = pool.usedSlots;
        std::fill(pool.owned.begin(), pool.owned.end(), char{0});
    }
    out->sequences.reserve(model.sequences.size());
    for (auto& [id, sequence] : model.sequences)
        out->sequences.push_back({id, sequence.request, sequence.slotsWritten, sequence.table.share()});
    out->requests.reserve(model.requests.size());
    for (auto& [id, request] : model.requests) {
        RequestState& to = out->requests.emplace_back();
        to.request = id;
        to.title = request.title;
        to.status = request.status;
        to.promptTokens = request.promptTokens;
        to.outputTokens = request.outputTokens;
        to.cachedTokens = request.cachedTokens;
        to.maxTokens = request.maxTokens;
        to.preemptions = request.preemptions;
        to.arrivedStep = request.arrivedStep;
        to.arrivedNs = request.arrivedNs;
        to.tokens = request.tokens.share();
        to.sequence = request.sequence;
    }
    return out;
}

} // namespace kvatlas::state

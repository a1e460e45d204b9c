// SPDX-License-Identifier: Apache-2.0
#include "core/engine/scheduler.h"

#include "core/base/counted.h"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>

namespace kvatlas::engine {

using strategy::Batching;
using strategy::Layout;
using trace::RequestStatus;

Scheduler::Scheduler(const ScheduleRules& rules, cache::BlockPool& pool, trace::EventEmitter& events,
                     trace::StateHash& hash)
    : m_rules(rules)
    , m_pool(pool)
    , m_events(events)
    , m_hash(hash) {
    assert(rules.maxModelLenTokens >= 1 && rules.maxSequences >= 1 && rules.chunkTokens >= 1);
}

// The last sampled token is never computed, so it needs no slot.
std::uint32_t Scheduler::lifeSlots(std::uint64_t promptTokens, std::uint32_t maxTokens) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(promptTokens + std::max(maxTokens, 1u) - 1, m_rules.maxModelLenTokens));
}

std::uint32_t Scheduler::runBlocks(const Entry& entry) const {
    return m_pool.blocksFor(m_rules.reserve == strategy::Reserve::MaxModelLen ? m_rules.maxModelLenTokens
                                                                              : entry.lifeSlots);
}

std::optional<std::string> Scheduler::refusal(std::size_t promptTokens, std::uint32_t maxTokens) const {
    if (promptTokens == 0)
        return "nothing to run: the prompt is empty and the model puts no token in front; give it at least one token";
    if (maxTokens == 0)
        return "nothing to run: max_tokens is 0; ask for at least one token";
    if (promptTokens > m_rules.maxModelLenTokens)
        return fmt::format("the prompt has {} > {} (max_model_len); shorten it or raise max_model_len",
                           counted(promptTokens, "token"), m_rules.maxModelLenTokens);
    Entry entry;
    entry.lifeSlots = lifeSlots(promptTokens, maxTokens);
    const bool run = m_rules.layout == Layout::Contiguous;
    const std::uint32_t needed = run ? runBlocks(entry) : m_pool.blocksFor(entry.lifeSlots);
    if (needed <= m_pool.blocks())
        return std::nullopt;
    return fmt::format(
        "needs {} of {} ({}), the pool has {}; raise kv_memory or pool_blocks, or lower {}", counted(needed, "block"),
        counted(m_pool.blockTokens(), "token"),
        run && m_rules.reserve == strategy::Reserve::MaxModelLen
            ? fmt::format("a reserved run of max_model_len {}", m_rules.maxModelLenTokens)
            : fmt::format("{} and up to {}", counted(promptTokens, "prompt token"), counted(maxTokens, "new one")),
        m_pool.blocks(), run && m_rules.reserve == strategy::Reserve::MaxModelLen ? "max_model_len" : "max_tokens");
}

void Scheduler::submit(RequestId request, std::uint32_t promptTokens, std::uint32_t maxTokens) {
    assert(!refusal(promptTokens, maxTokens));
    auto entry = std::make_unique<Entry>();
    entry->request = request;
    entry->promptTokens = promptTokens;
    entry->lifeSlots = lifeSlots(promptTokens, maxTokens);
    m_hash.add(element(*entry));
    m_waiting.push_back(entry.get());
    m_entries.emplace(request, std::move(entry));
}

void Scheduler::finish(RequestId request, trace::FinishReason reason, const std::string& detail) {
    Entry& entry = *m_entries.at(request);
    if (entry.table.isOpen())
        m_pool.close(entry.table, trace::ReleaseReason::Finished);
    std::erase(m_running, &entry);
    std::erase(m_waiting, &entry);
    m_hash.remove(element(entry));
    m_events.emit(trace::RequestFinished{request, reason, entry.outputTokens, detail});
    m_entries.erase(request);
}

bool Scheduler::preempt(RequestId request) {
    const auto found = m_entries.find(request);
    if (found == m_entries.end() || found->second->status != RequestStatus::Running)
        return false;
    preempt(*found->second, trace::PreemptionReason::Command);
    return true;
}

void Scheduler::preempt(Entry& entry, trace::PreemptionReason reason) {
    const std::uint32_t lost = entry.computed();
    m_pool.close(entry.table, trace::ReleaseReason::Preempted);
    m_hash.remove(element(entry));
    entry.status = RequestStatus::Preempted;
    ++entry.preemptions;
    m_hash.add(element(entry));
    std::erase(m_running, &entry);
    m_waiting.push_front(&entry);
    m_events.emit(trace::RequestPreempted{entry.request, reason, lost});
}

std::vector<ScheduledRows> Scheduler::plan() {
    std::vector<ScheduledRows> rows;
    m_chunkLeft = m_rules.chunkTokens;
    m_preempted = false;
    m_waitingFor = {};
    planDecodes(rows);
    planPrefills(rows);
    planAdmissions(rows);
    return rows;
}

void Scheduler::planDecodes(std::vector<ScheduledRows>& rows) {
    const bool prefillTogether = m_rules.batching == Batching::Static &&
                                 !std::ranges::all_of(m_running, [](const Entry* e) { return e->decodes(); });
    if (prefillTogether)
        return;
    for (std::size_t i = 0; i < m_running.size(); ++i) {
        Entry& entry = *m_running[i];
        if (entry.decodes() && makeRoom(entry, 1))
            rows.push_back({entry.request, entry.table.sequence(), entry.computed(), 1, false, true});
    }
}

// Preempts from the end of the running ones until `tokens` more slots of `entry` are writable; false when `entry`
// itself had to go.
bool Scheduler::makeRoom(Entry& entry, std::uint32_t tokens) {
    while (!m_pool.grow(entry.table, entry.computed() + tokens)) {
        Entry& victim = *m_running.back();
        preempt(victim, trace::PreemptionReason::BlocksExhausted);
        m_preempted = true;
        if (&victim == &entry)
            return false;
    }
    return true;
}

void Scheduler::planPrefills(std::vector<ScheduledRows>& rows) {
    for (std::size_t i = 0; i < m_running.size() && m_chunkLeft > 0; ++i)
        if (!m_running[i]->decodes())
            schedulePrefill(*m_running[i], rows);
}

void Scheduler::schedulePrefill(Entry& entry, std::vector<ScheduledRows>& rows) {
    const std::uint32_t tokens = std::min(m_chunkLeft, entry.known() - entry.computed());
    if (tokens == 0 || !makeRoom(entry, tokens))
        return;
    m_chunkLeft -= tokens;
    rows.push_back({entry.request, entry.table.sequence(), entry.computed(), tokens, true,
                    entry.computed() + tokens == entry.known()});
}

void Scheduler::planAdmissions(std::vector<ScheduledRows>& rows) {
    const bool together = m_rules.batching == Batching::Static;
    const bool batchRuns = together && !m_running.empty();
    while (!m_waiting.empty()) {
        Entry& entry = *m_waiting.front();
        m_waitingFor = {Waiting::Reason::Nothing, entry.request, 0, 0, 0};
        if (m_preempted)
            m_waitingFor.reason = Waiting::Reason::Preempted;
        else if (batchRuns)
            m_waitingFor.reason = Waiting::Reason::Batch;
        else if (m_running.size() >= m_rules.maxSequences)
            m_waitingFor.reason = Waiting::Reason::Sequences;
        else if (m_chunkLeft == 0 && !together)
            m_waitingFor.reason = Waiting::Reason::Chunk;
        if (m_waitingFor.reason != Waiting::Reason::Nothing || !admit(entry))
            return;
        m_waitingFor = {};
        schedulePrefill(entry, rows);
    }
}

// Blocks that must be free now, so that everybody who runs and the newcomer find theirs until the newcomer's next token
// is sampled: prompts in full, and one slot for each decoding sequence and step until then.
std::uint32_t Scheduler::blocksUntilFirstToken(const Entry& newcomer) const {
    std::uint64_t pendingTokens = newcomer.known();
    for (const Entry* entry : m_running)
        if (!entry->decodes())
            pendingTokens += entry->known() - entry->computed();
    const std::uint64_t steps = (pendingTokens + m_rules.chunkTokens - 1) / m_rules.chunkTokens;
    std::uint64_t blocks = m_pool.blocksFor(newcomer.known());
    for (const Entry* entry : m_running) {
        const std::uint64_t slots = std::min<std::uint64_t>(entry->known() + steps, entry->lifeSlots);
        blocks += m_pool.blocksFor(static_cast<std::uint32_t>(slots)) - entry->table.activeBlocks();
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, 0xFFFF'FFFFu));
}

bool Scheduler::admit(Entry& entry) {
    const bool contiguous = m_rules.layout == Layout::Contiguous;
    const std::uint32_t needed = contiguous ? runBlocks(entry) : blocksUntilFirstToken(entry);
    const std::uint32_t free = m_pool.counts().free;
    if (needed > free || (contiguous && !m_pool.firstFit(needed))) {
        m_waitingFor = {needed > free ? Waiting::Reason::Blocks : Waiting::Reason::Run, entry.request, needed, free,
                        contiguous ? m_pool.longestFreeRun() : 0};
        return false;
    }
    const bool resumes = entry.status == RequestStatus::Preempted;
    setStatus(entry, RequestStatus::Running);
    if (resumes)
        m_events.emit(trace::RequestResumed{entry.request});
    else
        m_events.emit(trace::RequestAdmitted{entry.request, 0});
    entry.table = m_pool.open(SequenceId(++m_sequences), entry.request);
    if (contiguous) {
        [[maybe_unused]] const bool reserved = m_pool.reserveRun(entry.table, needed);
        assert(reserved);
    }
    m_waiting.pop_front();
    m_running.push_back(&entry);
    return true;
}

void Scheduler::noteComputed(const ScheduledRows& rows) {
    m_pool.writeSlots(m_entries.at(rows.request)->table, rows.tokens);
}

void Scheduler::noteSampled(RequestId request) {
    Entry& entry = *m_entries.at(request);
    m_hash.remove(element(entry));
    ++entry.outputTokens;
    m_hash.add(element(entry));
}

std::vector<RequestId> Scheduler::runningRequests() const {
    std::vector<RequestId> requests;
    requests.reserve(m_running.size());
    for (const Entry* entry : m_running)
        requests.push_back(entry->request);
    return requests;
}

std::vector<const cache::BlockTable*> Scheduler::openTables() const {
    std::vector<const cache::BlockTable*> tables;
    tables.reserve(m_running.size());
    for (const Entry* entry : m_running)
        tables.push_back(&entry->table);
    return tables;
}

void Scheduler::setStatus(Entry& entry, RequestStatus status) {
    m_hash.remove(element(entry));
    entry.status = status;
    m_hash.add(element(entry));
}

std::uint64_t Scheduler::element(const Entry& entry) const {
    return trace::requestElement(entry.request, entry.status, entry.promptTokens, entry.outputTokens,
                                 entry.preemptions);
}

} // namespace kvatlas::engine

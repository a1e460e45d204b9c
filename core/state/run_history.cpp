// SPDX-License-Identifier: Apache-2.0
#include "core/state/run_history.h"

#include <iterator>

namespace kvatlas::state {

namespace {

using namespace trace;

void addTotals(StepRow& row, const CacheState& after) {
    for (std::size_t i = 0; i < after.poolCount(); ++i) {
        const PoolTotals pool = after.pool(i);
        if (pool.shape->tier != Tier::Device)
            continue;
        const std::uint64_t blockBytes = pool.shape->blockBytes;
        row.activeBytes += pool.counts.active * blockBytes;
        row.cachedBytes += pool.counts.cached * blockBytes;
        row.reservedBytes += pool.counts.reserved * blockBytes;
        row.capacityBytes += pool.shape->blocks * blockBytes;
        row.usedBytes += pool.usedSlots * (blockBytes / pool.shape->blockTokens);
        row.activeBlocks += pool.counts.active;
        row.cachedBlocks += pool.counts.cached;
        row.reservedBlocks += pool.counts.reserved;
        row.freeBlocks += pool.counts.free;
    }
}

} // namespace

RequestRow* RunHistory::find(RequestId id) {
    const auto at = m_requests.find(id);
    return at == m_requests.end() ? nullptr : &at->second;
}

std::optional<StepRow> RunHistory::apply(const Event& event, const CacheState& after) {
    if (const auto* started = std::get_if<StepStarted>(&event.body)) {
        m_step = {};
        m_step.step = event.step;
        m_step.startNs = event.ns;
        m_step.sequences = static_cast<std::uint32_t>(started->batch.size());
        m_step.waitingRequests = started->waitingRequests;
        for (const BatchEntry& entry : started->batch)
            (entry.prefill ? m_step.prefillTokens : m_step.decodeTokens) += entry.tokens;
    } else if (const auto* ended = std::get_if<StepEnded>(&event.body)) {
        StepRow row = m_step;
        row.endNs = event.ns;
        row.computeNs = ended->computeNs;
        row.waitNs = ended->waitNs;
        row.stateHash = after.stateHash();
        addTotals(row, after);
        return row;
    } else {
        applyToRequest(event);
    }
    return std::nullopt;
}

void RunHistory::applyToRequest(const Event& event) {
    if (const auto* arrived = std::get_if<RequestArrived>(&event.body)) {
        RequestRow& row = m_requests[arrived->request];
        row = {};
        row.request = arrived->request;
        row.title = arrived->title;
        row.promptTokens = static_cast<std::uint32_t>(arrived->promptTokens.size());
        row.arrivedStep = event.step;
        row.arrivedNs = event.ns;
    } else if (const auto* admitted = std::get_if<RequestAdmitted>(&event.body)) {
        if (RequestRow* row = find(admitted->request)) {
            row->admittedStep = event.step;
            row->cachedTokens = admitted->cachedTokens;
        }
    } else if (const auto* preempted = std::get_if<RequestPreempted>(&event.body)) {
        if (RequestRow* row = find(preempted->request))
            ++row->preemptions;
    } else if (const auto* sampled = std::get_if<TokenSampled>(&event.body)) {
        if (RequestRow* row = find(sampled->request)) {
            if (row->outputTokens++ == 0) {
                row->firstTokenStep = event.step;
                row->firstTokenNs = event.ns;
            }
        }
    } else if (const auto* finished = std::get_if<RequestFinished>(&event.body)) {
        if (RequestRow* row = find(finished->request)) {
            row->outputTokens = finished->outputTokens;
            row->finishedStep = event.step;
            row->finishedNs = event.ns;
            row->finishReason = finished->reason;
            row->detail = finished->detail;
        }
    }
}

void RunHistory::forgetFinished() {
    std::erase_if(m_requests, [](const auto& entry) { return entry.second.finishReason.has_value(); });
}

} // namespace kvatlas::state

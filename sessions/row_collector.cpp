// SPDX-License-Identifier: Apache-2.0
#include "sessions/row_collector.h"

#include "sessions/event_json.h"
#include "sessions/schema.h"

#include <algorithm>

namespace kvatlas::sessions {

using namespace trace;

std::map<std::string, std::string> metaOf(const RunStarted& run) {
    const auto json = fieldsOf(Event{0, 0, run});
    return {{"model_name", run.model.name},
            {"model_sha256", run.model.sha256},
            {"model", toLine(json["model"])},
            {"pools", toLine(json["pools"])},
            {"backend", run.backend},
            {"arithmetic", run.arithmetic},
            {"threads", std::to_string(run.threads)},
            {"strategy", run.strategyJson},
            {"scenario", run.scenarioJson},
            {"seed", std::to_string(run.seed)},
            {"program_version", run.programVersion},
            {"machine", run.machine}};
}

Result<void> RowCollector::startFrom(std::span<const std::byte> keyframe) {
    auto state = state::CacheState::decode(keyframe);
    if (!state)
        return tl::unexpected(state.error());
    m_state = std::move(*state);
    if (const auto snapshot = m_state.snapshot(); snapshot->run)
        m_batch.meta.merge(metaOf(*snapshot->run));
    return {};
}

void RowCollector::clearBatch() {
    m_batch = {};
    m_history.forgetFinished();
}

void RowCollector::apply(const Event& event) {
    if (!m_error.empty())
        return;
    if (const auto fitted = m_state.apply(event); !fitted) {
        m_error = fitted.error().message;
        return;
    }
    if (auto row = m_history.apply(event, m_state))
        m_batch.steps.push_back(*row);
    noteBody(event);
}

void RowCollector::noteBody(const Event& event) {
    const auto visitor = [&]<class Body>(const Body& body) {
        if constexpr (std::is_same_v<Body, RunStarted>) {
            m_batch.meta.merge(metaOf(body));
        } else if constexpr (std::is_same_v<Body, RequestArrived>) {
            for (std::size_t i = 0; i < body.promptTokens.size(); ++i) {
                m_batch.tokens.push_back(
                    {body.request, static_cast<Position>(i), SequenceId(0), body.promptTokens[i], {}, {}});
                notePiece(body.promptTokens[i]);
            }
            noteRequest(body.request);
        } else if constexpr (std::is_same_v<Body, TokenSampled>) {
            TokenRow row{body.request, body.position, body.sequence, body.token, event.step, {}};
            for (const Candidate& candidate : body.top) {
                if (candidate.token == body.token && candidate.probability > 0 && !row.probability)
                    row.probability = candidate.probability;
                if (candidate.probability > 0)
                    notePiece(candidate.token);
            }
            notePiece(body.token);
            m_batch.tokens.push_back(row);
            noteRequest(body.request);
        } else if constexpr (std::is_same_v<Body, RequestAdmitted> || std::is_same_v<Body, RequestPreempted> ||
                             std::is_same_v<Body, RequestResumed> || std::is_same_v<Body, RequestFinished>) {
            noteRequest(body.request);
        } else if constexpr (std::is_same_v<Body, KernelSpan>) {
            noteKernel(event.step, body);
        } else if constexpr (std::is_same_v<Body, MemoryCounter>) {
            noteMetric(event.step, "arena bytes", body.arenaBytes, m_arenaBytes);
            noteMetric(event.step, "resident bytes", body.residentBytes, m_residentBytes);
        } else if constexpr (std::is_same_v<Body, EventsLost>) {
            m_lostInStep = event.step == m_lostStep ? m_lostInStep + body.count : body.count;
            m_lostStep = event.step;
            m_batch.metrics[{event.step, "events lost"}] = static_cast<std::int64_t>(m_lostInStep);
        }
    };
    std::visit(visitor, event.body);
}

void RowCollector::notePiece(TokenId token) {
    if (token >= 0 && m_seenPieces.insert(token).second)
        m_batch.pieces.push_back(token);
}

void RowCollector::noteRequest(RequestId request) {
    const auto found = m_history.requests().find(request);
    if (found != m_history.requests().end())
        m_batch.requests[request] = found->second;
}

void RowCollector::noteKernel(Step step, const KernelSpan& span) {
    if (!m_kernelWindow || step < *m_kernelWindow || step - *m_kernelWindow >= kKeyframeSteps) {
        m_kernelWindow = step;
        m_kernels = {};
    }
    const auto index = static_cast<std::size_t>(span.kernel);
    if (index >= m_kernels.size())
        return;
    KernelRow& row = m_kernels[index];
    row.firstStep = *m_kernelWindow;
    row.lastStep = std::max(row.lastStep, step);
    row.kernel = span.kernel;
    row.calls += span.calls;
    row.durationNs += span.durationNs;
    row.bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(row.bytes) + span.bytes);
    row.flops = static_cast<std::int64_t>(static_cast<std::uint64_t>(row.flops) + span.flops);
    m_batch.kernels[{row.firstStep, row.kernel}] = row;
}

void RowCollector::noteMetric(Step step, const char* name, std::uint64_t value, std::uint64_t& last) {
    if (value == last)
        return;
    last = value;
    m_batch.metrics[{step, name}] = static_cast<std::int64_t>(value);
}

} // namespace kvatlas::sessions

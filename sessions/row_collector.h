// SPDX-License-Identifier: Apache-2.0
// Events in, the rows of a session file out: folds the stream and keeps what has changed since the last take. The
// recorder writes these rows; `session check` compares a file's rows with them. One thread.
#pragma once

#include "core/state/cache_state.h"
#include "core/state/run_history.h"
#include "core/trace/event.h"
#include "core/trace/rows.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace kvatlas::sessions {

struct TokenRow {
    RequestId request;
    Position position = 0;
    SequenceId sequence; // that sampled it; 0 for a prompt's token
    TokenId token = 0;
    std::optional<Step> step;          // that sampled it; none for a prompt's token
    std::optional<double> probability; // when it was among the top 8
    friend bool operator==(const TokenRow&, const TokenRow&) = default;
};

// The work of one kernel over the steps [firstStep, lastStep].
struct KernelRow {
    Step firstStep = 0, lastStep = 0;
    trace::KernelKind kernel = trace::KernelKind::Embed;
    std::int64_t calls = 0, durationNs = 0, bytes = 0, flops = 0;
    friend bool operator==(const KernelRow&, const KernelRow&) = default;
};

using MetricKey = std::pair<Step, std::string>;

// What changed; a row replaces an older one of the same key.
struct RowBatch {
    std::vector<trace::StepRow> steps;
    std::map<RequestId, trace::RequestRow> requests;
    std::vector<TokenRow> tokens;
    std::map<MetricKey, std::int64_t> metrics;
    std::map<std::pair<Step, trace::KernelKind>, KernelRow> kernels;
    std::map<std::string, std::string> meta;
    std::vector<TokenId> pieces; // seen for the first time
};

class RowCollector {
public:
    void apply(const trace::Event& event);

    // The run is joined under way: the state so far.
    Result<void> startFrom(std::span<const std::byte> keyframe);

    const RowBatch& batch() const { return m_batch; }
    void clearBatch();

    const state::CacheState& state() const { return m_state; }
    bool stateKnown() const { return m_error.empty(); }
    const std::string& error() const { return m_error; } // of the first event that did not fit; no rows after it

private:
    void noteBody(const trace::Event& event);
    void notePiece(TokenId token);
    void noteRequest(RequestId request);
    void noteKernel(Step step, const trace::KernelSpan& span);
    void noteMetric(Step step, const char* name, std::uint64_t value, std::uint64_t& last);

    state::CacheState m_state;
    state::RunHistory m_history;
    RowBatch m_batch;
    std::string m_error;
    std::unordered_set<TokenId> m_seenPieces;
    std::array<KernelRow, 32> m_kernels{}; // of the current window, by kernel
    std::optional<Step> m_kernelWindow;    // its first step
    std::uint64_t m_arenaBytes = ~0ULL, m_residentBytes = ~0ULL;
    Step m_lostStep = 0;
    std::uint64_t m_lostInStep = 0;
};

// The rows of `meta` that a run's start gives.
std::map<std::string, std::string> metaOf(const trace::RunStarted& run);

} // namespace kvatlas::sessions

// SPDX-License-Identifier: Apache-2.0
// Folds events into one row per step and one per request. The session recorder writes these rows, the command line
// computes its report from them. One thread. Rows of steps are handed to the caller as they are completed and not kept.
// Events of a request whose arrival was not seen (joined later) leave no row.
#pragma once

#include "core/state/cache_state.h"
#include "core/trace/rows.h"

#include <map>
#include <optional>

namespace kvatlas::state {

class RunHistory {
public:
    // `after`: the state that this event has already been folded into. Returns the row of a step that this event ended.
    std::optional<trace::StepRow> apply(const trace::Event& event, const CacheState& after);

    // Every request seen, by id; rows of finished requests stay until forgotten.
    const std::map<RequestId, trace::RequestRow>& requests() const { return m_requests; }
    void forgetFinished();

private:
    trace::RequestRow* find(RequestId id); // null: not seen
    void applyToRequest(const trace::Event& event);

    trace::StepRow m_step; // of the step that runs
    std::map<RequestId, trace::RequestRow> m_requests;
};

} // namespace kvatlas::state

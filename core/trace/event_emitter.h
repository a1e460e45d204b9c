// SPDX-License-Identifier: Apache-2.0
// Where the engine and the cache put their events: stamps each with the step and the time since the run started, keeps
// them until flush() and hands them to the sink in one go. One thread (the engine's). The sink and the clock outlive
// it.
#pragma once

#include "core/base/clock.h"
#include "core/trace/event_sink.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace kvatlas::trace {

class EventEmitter {
public:
    // The moment of construction is time 0 of the run.
    EventEmitter(EventSink& sink, const Clock& clock)
        : m_sink(sink)
        , m_clock(clock)
        , m_startNs(clock.nowNs()) {}

    void emit(EventBody body) { m_pending.push_back(Event{m_step, nowNs(), std::move(body)}); }

    // The step of the events to come.
    void setStep(Step step) { m_step = step; }
    Step step() const { return m_step; }

    std::int64_t nowNs() const { return m_clock.nowNs() - m_startNs; }

    void flush() {
        if (m_pending.empty())
            return;
        const std::int64_t beforeNs = m_clock.nowNs();
        m_sink.onEvents(m_pending);
        m_waitedNs += m_clock.nowNs() - beforeNs;
        m_pending.clear();
    }

    // Time spent in the sink since the last call.
    std::int64_t takeWaitedNs() { return std::exchange(m_waitedNs, 0); }

private:
    EventSink& m_sink;
    const Clock& m_clock;
    std::int64_t m_startNs;
    std::int64_t m_waitedNs = 0;
    Step m_step = 0;
    std::vector<Event> m_pending;
};

} // namespace kvatlas::trace

// SPDX-License-Identifier: Apache-2.0
// Where events go. A sink is called from one thread at a time, in the order of the stream, and must not block for long:
// what is slow (a disk, a window) queues and works on its own thread.
#pragma once

#include "core/trace/event.h"

#include <cstddef>
#include <span>
#include <vector>

namespace kvatlas::trace {

class EventSink {
public:
    virtual ~EventSink() = default;

    virtual void onEvents(std::span<const Event> events) = 0;

    // The state so far is replaced by a serialised one (CacheState::encode): a seek in a replay, or joining a run that
    // is under way. `step` is the last step that the keyframe includes.
    virtual void onKeyframe(Step step, std::span<const std::byte> keyframe) = 0;

    // The stream has ended; nothing follows, unless a replay seeks back, which begins with onKeyframe.
    virtual void onEnd() {}
};

// Delivers to several sinks in order. The sinks outlive it; the list is fixed before the first delivery.
class FanOut final : public EventSink {
public:
    void add(EventSink& sink) { m_sinks.push_back(&sink); }

    void onEvents(std::span<const Event> events) override {
        for (EventSink* sink : m_sinks)
            sink->onEvents(events);
    }
    void onKeyframe(Step step, std::span<const std::byte> keyframe) override {
        for (EventSink* sink : m_sinks)
            sink->onKeyframe(step, keyframe);
    }
    void onEnd() override {
        for (EventSink* sink : m_sinks)
            sink->onEnd();
    }

private:
    std::vector<EventSink*> m_sinks;
};

} // namespace kvatlas::trace

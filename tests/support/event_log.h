// SPDX-License-Identifier: Apache-2.0
// A sink that keeps every event. One thread.
#pragma once

#include "core/trace/event_sink.h"

#include <vector>

namespace kvatlas::testing {

class EventLog final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> more) override {
        events.insert(events.end(), more.begin(), more.end());
    }
    void onKeyframe(Step, std::span<const std::byte>) override {}

    template <class Body> std::vector<Body> all() const {
        std::vector<Body> found;
        for (const trace::Event& event : events)
            if (const Body* body = std::get_if<Body>(&event.body))
                found.push_back(*body);
        return found;
    }

    std::vector<trace::Event> events;
};

} // namespace kvatlas::testing

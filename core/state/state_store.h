// SPDX-License-Identifier: Apache-2.0
// The sink between a source and whoever looks: folds events as they are delivered, hands out the newest snapshot on
// demand. onEvents, onKeyframe and onEnd on the delivery thread; snapshot() and error() on any thread, never waiting
// for more than one event batch. After an event that does not fit, nothing more is folded until the next keyframe.
#pragma once

#include "core/state/cache_state.h"
#include "core/trace/event_sink.h"

#include <memory>
#include <mutex>
#include <string>

namespace kvatlas::state {

class StateStore final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> events) override;
    void onKeyframe(Step step, std::span<const std::byte> keyframe) override;
    void onEnd() override;

    std::shared_ptr<const Snapshot> snapshot() const; // never null
    std::string error() const;                        // of the first event that did not fit; empty when all did

private:
    mutable std::mutex m_mutex;
    mutable CacheState m_state;
    mutable std::shared_ptr<const Snapshot> m_latest; // null when the state has changed since
    std::string m_error;
    bool m_broken = false; // until the next keyframe
    bool m_ended = false;
};

} // namespace kvatlas::state

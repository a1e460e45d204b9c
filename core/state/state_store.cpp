// SPDX-License-Identifier: Apache-2.0
#include "core/state/state_store.h"

#include <utility>

namespace kvatlas::state {

void StateStore::onEvents(std::span<const trace::Event> events) {
    const std::lock_guard lock(m_mutex);
    if (m_broken)
        return;
    m_latest.reset();
    for (const trace::Event& event : events) {
        if (auto folded = m_state.apply(event); !folded) {
            m_broken = true;
            if (m_error.empty())
                m_error = folded.error().message;
            return;
        }
    }
}

void StateStore::onKeyframe(Step, std::span<const std::byte> keyframe) {
    auto decoded = keyframe.empty() ? Result<CacheState>(CacheState()) : CacheState::decode(keyframe);
    const std::lock_guard lock(m_mutex);
    if (!decoded) {
        m_broken = true;
        if (m_error.empty())
            m_error = decoded.error().message;
        return;
    }
    m_state = std::move(*decoded);
    m_latest.reset();
    m_broken = false;
    m_ended = false; // a seek back from the end
}

void StateStore::onEnd() {
    const std::lock_guard lock(m_mutex);
    m_ended = true;
    m_latest.reset();
}

std::shared_ptr<const Snapshot> StateStore::snapshot() const {
    const std::lock_guard lock(m_mutex);
    if (!m_latest) {
        m_latest = m_state.snapshot();
        if (m_ended) {
            auto last = std::make_shared<Snapshot>(*m_latest);
            last->ended = true;
            m_latest = std::move(last);
        }
    }
    return m_latest;
}

std::string StateStore::error() const {
    const std::lock_guard lock(m_mutex);
    return m_error;
}

} // namespace kvatlas::state

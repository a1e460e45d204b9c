// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"

#include <chrono>

namespace kvatlas {

std::int64_t SteadyClock::nowNs() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void HoldableClock::hold() {
    if (!m_held)
        m_heldAtNs = m_clock.nowNs();
    m_held = true;
}

void HoldableClock::release() {
    if (m_held)
        m_leftOutNs += m_clock.nowNs() - m_heldAtNs;
    m_held = false;
}

} // namespace kvatlas

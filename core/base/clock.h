// SPDX-License-Identifier: Apache-2.0
// Time as a thing that is handed in, so that tests decide what time it is.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvatlas {

// Any thread.
class Clock {
public:
    virtual ~Clock() = default;
    virtual std::int64_t nowNs() const = 0; // nanoseconds since an arbitrary fixed moment; never goes back
};

class SteadyClock final : public Clock {
public:
    std::int64_t nowNs() const override;
};

// Another clock less the time for which this one was held. One thread at a time; `clock` outlives it.
class HoldableClock final : public Clock {
public:
    explicit HoldableClock(const Clock& clock)
        : m_clock(clock) {}
    std::int64_t nowNs() const override { return (m_held ? m_heldAtNs : m_clock.nowNs()) - m_leftOutNs; }
    void hold();    // stands still from here on
    void release(); // goes on from where it stood

private:
    const Clock& m_clock;
    bool m_held = false;
    std::int64_t m_heldAtNs = 0, m_leftOutNs = 0;
};

// Moves only when told. Any thread.
class ManualClock final : public Clock {
public:
    std::int64_t nowNs() const override { return m_nowNs.load(); }
    void advance(std::int64_t ns) { m_nowNs += ns; }

private:
    std::atomic<std::int64_t> m_nowNs{0};
};

} // namespace kvatlas

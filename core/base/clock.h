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

// Moves only when told. Any thread.
class ManualClock final : public Clock {
public:
    std::int64_t nowNs() const override { return m_nowNs.load(); }
    void advance(std::int64_t ns) { m_nowNs += ns; }

private:
    std::atomic<std::int64_t> m_nowNs{0};
};

} // namespace kvatlas

// SPDX-License-Identifier: Apache-2.0
// The bounded queue between the engine and everything that listens: single producer, single consumer. State events are
// never dropped: push waits for room and says for how long. Sample events are dropped when there is no room, and
// counted.
//
// Threads: push, pushAll, tryPush, takeLost on the producer's; pop on the consumer's; close on any. After close, what
// was queued can still be popped, and what is pushed is thrown away, so that neither side ever waits for one that has
// left.
#pragma once

#include "core/trace/event.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace kvatlas::trace {

class EventRing {
public:
    // About 3,000 steps of eight decoding sequences (~20 state events each): more than a second of a fast run.
    static constexpr std::size_t kDefaultCapacity = 65'536;

    explicit EventRing(std::size_t capacity = kDefaultCapacity); // REQUIRES: capacity > 0

    std::size_t capacity() const { return m_slots.size(); }

    // Both return the nanoseconds waited for room, 0 when there was room at once.
    std::int64_t push(Event event);
    std::int64_t pushAll(std::span<Event> events); // moved from; visible to the consumer together where they fit

    bool tryPush(Event event); // false: no room, counted as lost
    std::uint64_t takeLost();  // lost since the last call, for an EventsLost

    // Appends 1..max events to `out`, waiting for the first up to `timeout`. Returns the number appended; 0 after the
    // time-out or when the ring is closed and empty (see drained()).
    std::size_t pop(std::vector<Event>& out, std::size_t max, std::chrono::nanoseconds timeout);
    bool drained() const; // closed, and nothing is left to pop

    void close();
    bool closed() const { return m_closed.load(); }

private:
    std::size_t room() const;
    void publish(std::uint64_t tail);
    bool waitForRoom(); // false: closed

    std::vector<Event> m_slots;
    std::uint64_t m_lost = 0;                         // producer's
    alignas(64) std::atomic<std::uint64_t> m_tail{0}; // events pushed so far
    alignas(64) std::atomic<std::uint64_t> m_head{0}; // events popped so far
    alignas(64) std::atomic<bool> m_consumerWaits{false};
    std::atomic<bool> m_producerWaits{false};
    std::atomic<bool> m_closed{false};
    std::mutex m_mutex; // only for going to sleep
    std::condition_variable m_moved;
};

} // namespace kvatlas::trace

// SPDX-License-Identifier: Apache-2.0
// Sleeping follows Dekker's pattern: the one who sleeps announces it and looks again, the other publishes and then
// looks for an announcement; all four in one total order (seq_cst), so that at least one of them sees the other.
#include "core/trace/ring.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvatlas::trace {

namespace {

// Looks before sleeping. A wake-up costs ~5 us of the other side's time, a look ~20 ns.
constexpr int kSpins = 200;

} // namespace

EventRing::EventRing(std::size_t capacity)
    : m_slots(capacity) {
    assert(capacity > 0);
}

std::size_t EventRing::room() const {
    return m_slots.size() - static_cast<std::size_t>(m_tail.load(std::memory_order_relaxed) - m_head.load());
}

void EventRing::publish(std::uint64_t tail) {
    m_tail.store(tail);
    if (m_consumerWaits.load()) {
        const std::lock_guard lock(m_mutex);
        m_moved.notify_all();
    }
}

bool EventRing::waitForRoom() {
    for (int spin = 0; spin < kSpins; ++spin)
        if (room() > 0)
            return !m_closed.load();
    std::unique_lock lock(m_mutex);
    m_producerWaits.store(true);
    m_moved.wait(lock, [this] { return room() > 0 || m_closed.load(); });
    m_producerWaits.store(false);
    return !m_closed.load();
}

std::int64_t EventRing::pushAll(std::span<Event> events) {
    std::int64_t waitedNs = 0;
    std::uint64_t tail = m_tail.load(std::memory_order_relaxed);
    while (!events.empty() && !m_closed.load()) {
        std::size_t fits = std::min(room(), events.size());
        if (fits == 0) {
            const auto before = std::chrono::steady_clock::now();
            const bool open = waitForRoom();
            waitedNs += std::max<std::int64_t>(1, (std::chrono::steady_clock::now() - before).count());
            if (!open)
                break;
            fits = std::min(room(), events.size());
        }
        for (std::size_t i = 0; i < fits; ++i)
            m_slots[tail++ % m_slots.size()] = std::move(events[i]);
        events = events.subspan(fits);
        publish(tail);
    }
    return waitedNs;
}

std::int64_t EventRing::push(Event event) {
    return pushAll(std::span(&event, 1));
}

bool EventRing::tryPush(Event event) {
    if (m_closed.load() || room() == 0) {
        ++m_lost;
        return false;
    }
    const std::uint64_t tail = m_tail.load(std::memory_order_relaxed);
    m_slots[tail % m_slots.size()] = std::move(event);
    publish(tail + 1);
    return true;
}

std::uint64_t EventRing::takeLost() {
    return std::exchange(m_lost, 0);
}

std::size_t EventRing::pop(std::vector<Event>& out, std::size_t max, std::chrono::nanoseconds timeout) {
    const std::uint64_t head = m_head.load(std::memory_order_relaxed);
    const auto ready = [&] { return m_tail.load() != head || m_closed.load(); };
    for (int spin = 0; spin < kSpins && !ready(); ++spin) {
    }
    if (!ready()) {
        std::unique_lock lock(m_mutex);
        m_consumerWaits.store(true);
        m_moved.wait_for(lock, timeout, ready);
        m_consumerWaits.store(false);
    }
    const std::size_t count = std::min(max, static_cast<std::size_t>(m_tail.load() - head));
    for (std::size_t i = 0; i < count; ++i) {
        Event& slot = m_slots[(head + i) % m_slots.size()];
        out.push_back(std::move(slot));
        slot = Event{}; // frees what the event held
    }
    if (count == 0)
        return 0;
    m_head.store(head + count);
    if (m_producerWaits.load()) {
        const std::lock_guard lock(m_mutex);
        m_moved.notify_all();
    }
    return count;
}

bool EventRing::drained() const {
    return m_closed.load() && m_tail.load() == m_head.load();
}

void EventRing::close() {
    m_closed.store(true);
    const std::lock_guard lock(m_mutex);
    m_moved.notify_all();
}

} // namespace kvatlas::trace

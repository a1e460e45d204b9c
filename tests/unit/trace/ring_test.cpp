// SPDX-License-Identifier: Apache-2.0
#include "core/trace/ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace kvatlas::trace {
namespace {

using namespace std::chrono_literals;

Event numbered(std::uint64_t number) {
    return {0, 0, EventsLost{number}};
}
std::uint64_t numberOf(const Event& event) {
    return std::get<EventsLost>(event.body).count;
}

TEST(EventRing, givesEventsBackInOrderAcrossItsEnd) {
    EventRing ring(4);
    std::vector<Event> out;
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < 30; i += 3) {
        for (std::uint64_t k = 0; k < 3; ++k)
            EXPECT_EQ(ring.push(numbered(i + k)), 0);
        EXPECT_EQ(ring.pop(out, 2, 0ns), 2u);
        EXPECT_EQ(ring.pop(out, 99, 0ns), 1u);
    }
    ASSERT_EQ(out.size(), 30u);
    for (const Event& event : out)
        EXPECT_EQ(numberOf(event), next++);
}

TEST(EventRing, dropsAndCountsSamplesWhenFull) {
    EventRing ring(2);
    EXPECT_TRUE(ring.tryPush(numbered(0)));
    EXPECT_TRUE(ring.tryPush(numbered(1)));
    EXPECT_FALSE(ring.tryPush(numbered(2)));
    EXPECT_FALSE(ring.tryPush(numbered(3)));
    EXPECT_EQ(ring.takeLost(), 2u);
    EXPECT_EQ(ring.takeLost(), 0u);
    std::vector<Event> out;
    EXPECT_EQ(ring.pop(out, 1, 0ns), 1u);
    EXPECT_TRUE(ring.tryPush(numbered(4)));
    EXPECT_EQ(ring.pop(out, 9, 0ns), 2u);
    EXPECT_EQ(numberOf(out[2]), 4u);
}

TEST(EventRing, popGivesUpAfterTheTimeOut) {
    EventRing ring(2);
    std::vector<Event> out;
    EXPECT_EQ(ring.pop(out, 1, 1ms), 0u);
    EXPECT_FALSE(ring.drained());
}

TEST(EventRing, whatWasQueuedBeforeCloseIsStillDelivered) {
    EventRing ring(4);
    ring.push(numbered(1));
    ring.close();
    ring.push(numbered(2));
    EXPECT_FALSE(ring.drained());
    std::vector<Event> out;
    EXPECT_EQ(ring.pop(out, 9, 1h), 1u);
    EXPECT_TRUE(ring.drained());
    EXPECT_EQ(ring.pop(out, 9, 1h), 0u);
}

TEST(EventRing, closeWakesAProducerThatWaitsForRoom) {
    EventRing ring(1);
    ring.push(numbered(1));
    std::int64_t waitedNs = 0;
    std::thread producer([&] { waitedNs = ring.push(numbered(2)); });
    std::this_thread::sleep_for(5ms);
    ring.close();
    producer.join();
    EXPECT_GT(waitedNs, 0);
}

TEST(EventRing, closeWakesAConsumerThatWaitsForEvents) {
    EventRing ring(1);
    std::vector<Event> out;
    std::thread consumer([&] { EXPECT_EQ(ring.pop(out, 1, 1h), 0u); });
    std::this_thread::sleep_for(5ms);
    ring.close();
    consumer.join();
}

// A small ring, so that both sides sleep often: nothing is lost, doubled or turned round, and both always wake up.
TEST(EventRing, twoThreadsPassEverythingInOrder) {
    constexpr std::uint64_t kEvents = 60'000;
    EventRing ring(16);
    std::vector<std::uint64_t> got;
    std::thread consumer([&] {
        std::vector<Event> out;
        while (!ring.drained()) {
            out.clear();
            ring.pop(out, 7, 1h);
            for (const Event& event : out)
                got.push_back(numberOf(event));
        }
    });
    std::int64_t waitedNs = 0;
    std::uint64_t lost = 0;
    for (std::uint64_t i = 0; i < kEvents;) {
        std::vector<Event> batch;
        for (std::uint64_t n = i % 40 + 1; n > 0 && i < kEvents; --n)
            batch.push_back(numbered(i++));
        waitedNs += ring.pushAll(batch);
        ring.tryPush({0, 0, EventsLost{kEvents}}); // a sample, perhaps dropped
        lost += ring.takeLost();
    }
    ring.close();
    consumer.join();
    std::uint64_t samples = 0, next = 0;
    for (const std::uint64_t number : got) {
        if (number == kEvents)
            ++samples;
        else
            ASSERT_EQ(number, next++);
    }
    EXPECT_EQ(next, kEvents);
    EXPECT_GT(waitedNs, 0);
    EXPECT_GT(samples + lost, 0u);
}

} // namespace
} // namespace kvatlas::trace

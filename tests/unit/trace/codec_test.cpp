// SPDX-License-Identifier: Apache-2.0
#include "core/trace/codec.h"
#include "tests/unit/trace/every_event.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace kvatlas::trace {
namespace {

std::vector<std::byte> bytesOf(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values)
        out.push_back(static_cast<std::byte>(value));
    return out;
}

TEST(Codec, bringsEveryKindBackWithEveryField) {
    const auto events = test::everyEvent();
    for (const Event& event : events) {
        const auto one = decode(encode(std::span(&event, 1)));
        ASSERT_TRUE(one) << nameOf(event.kind()) << ": " << one.error().message;
        EXPECT_EQ(one->at(0), event) << nameOf(event.kind());
    }
    const auto all = decode(encode(events));
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(*all, events);
}

TEST(Codec, bringsExtremesBack) {
    std::vector<Event> events{
        {std::numeric_limits<Step>::max(), std::numeric_limits<std::int64_t>::min(), EventsLost{0}},
        {0, std::numeric_limits<std::int64_t>::max(),
         StepEnded{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), 0}},
        {1, -1, BlocksReleased{SequenceId(0), ReleaseReason::Finished, {}}},
        {1, -1, RequestArrived{RequestId(std::numeric_limits<std::uint64_t>::max()), {}, 0, ""}}};
    const auto back = decode(encode(events));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, events);
}

TEST(Codec, anEmptyBatchIsTwoBytes) {
    EXPECT_EQ(encode({}), bytesOf({1, 0}));
    EXPECT_TRUE(decode(bytesOf({1, 0})).value().empty());
}

// The layout that codec.h describes, byte by byte.
TEST(Codec, writesTheDocumentedBytes) {
    const std::vector<Event> events{
        {3, 100, BlocksAllocated{SequenceId(2), 1, {BlockId(PoolId(0), 5), BlockId(PoolId(0), 4)}}},
        {3, 164, RequestPreempted{RequestId(300), PreemptionReason::Command, 0}}};
    EXPECT_EQ(encode(events), bytesOf({1, 2,                                  // version, count
                                       13, 6, 0xC8, 0x01, 2, 1, 2, 10, 1,     // kind, +3, +100, s2, at 1, 2: +5 -1
                                       5, 0, 0x80, 0x01, 0xAC, 0x02, 2, 0})); // kind, +0, +64, r300, by command, 0
}

TEST(Codec, refusesAnUnknownKindByItsNumber) {
    const auto refused = decode(bytesOf({1, 1, 9, 0, 0, 1}));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("unknown kind 9"), std::string::npos) << refused.error().message;
}

TEST(Codec, refusesAnotherVersionWithBothNumbers) {
    const auto refused = decode(bytesOf({2, 0}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "The events are in format 2, but this program reads format 1.");
}

TEST(Codec, refusesWhatCannotBeTrue) {
    EXPECT_FALSE(decode({}));
    EXPECT_FALSE(decode(bytesOf({1, 0, 0})));                                            // a byte left over
    EXPECT_FALSE(decode(bytesOf({1, 5, 6, 0, 0, 1})));                                   // five events in four bytes
    EXPECT_FALSE(decode(bytesOf({1, 1, 5, 0, 0, 1, 3, 0})));                             // reason 3
    EXPECT_FALSE(decode(bytesOf({1, 1, 5, 0, 0, 1, 0, 0})));                             // reason 0
    EXPECT_FALSE(decode(bytesOf({1, 1, 6, 1, 0, 1})));                                   // step -1
    EXPECT_FALSE(decode(bytesOf({1, 1, 10, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F})));       // sequence 2^33 - 1
    EXPECT_FALSE(decode(bytesOf({1, 1, 13, 0, 0, 1, 0, 1, 1})));                         // block -1
    EXPECT_FALSE(decode(bytesOf({1, 1, 13, 0, 0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}))); // 4 G blocks follow
    EXPECT_FALSE(decode(bytesOf({1, 1, 11, 0, 0, 1, 1, 0, 1, 2, 0})));                   // prefill = 2
}

TEST(Codec, refusesProbabilitiesThatAreNoNumbers) {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        TokenSampled sampled{RequestId(1), SequenceId(1), 1, 1, {}};
        sampled.top[3].probability = wrong;
        const Event event{0, 0, sampled};
        EXPECT_FALSE(decode(encode(std::span(&event, 1))));
    }
}

// Damage is refused or gives events that encode again to what was read; it never reads past the end (ASan sees to it).
TEST(Codec, survivesThousandsOfMutants) {
    const auto good = encode(test::everyEvent());
    std::mt19937 random(20261130);
    int refused = 0;
    for (int i = 0; i < 6000; ++i) {
        auto bytes = good;
        switch (random() % 4) {
        case 0:
            bytes.resize(random() % bytes.size());
            break;
        case 1:
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
            break;
        case 2:
            bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
            break;
        default: {
            const std::size_t from = random() % bytes.size();
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(from), 1 + random() % 9,
                         static_cast<std::byte>(random() % 2 ? 0xFF : 0x00));
        }
        }
        const auto events = decode(bytes);
        if (!events) {
            ++refused;
            EXPECT_FALSE(events.error().message.empty());
            continue;
        }
        const auto again = decode(encode(*events));
        ASSERT_TRUE(again);
        EXPECT_EQ(*again, *events);
    }
    EXPECT_GT(refused, 3000);
    EXPECT_LT(refused, 6000);
}

TEST(Codec, survivesNoise) {
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> bytes(random() % 200);
        for (std::byte& byte : bytes)
            byte = static_cast<std::byte>(random() % 3 ? random() % 35 : random());
        if (bytes.size() > 1)
            bytes[0] = std::byte{1};
        if (const auto events = decode(bytes)) {
            EXPECT_EQ(decode(encode(*events)).value(), *events);
        }
    }
}

} // namespace
} // namespace kvatlas::trace

// SPDX-License-Identifier: Apache-2.0
#include "core/state/cache_state.h"
#include "core/state/invariants.h"
#include "tests/support/state_notation.h"
#include "tests/support/synthetic_run.h"
#include "tests/unit/state/expect_same.h"

#include <gtest/gtest.h>

#include <random>

namespace kvatlas::state {
namespace {

using test::StateNotation;
using test::SyntheticOptions;
using test::SyntheticRun;

CacheState decoded(const std::vector<std::byte>& bytes) {
    auto state = CacheState::decode(bytes);
    EXPECT_TRUE(state) << state.error().message;
    return state ? std::move(*state) : CacheState();
}

TEST(Keyframe, ofTheEmptyStateIsTheEmptyState) {
    CacheState back = decoded(CacheState().encode());
    EXPECT_EQ(back.stateHash(), 0u);
    test::expectSame(*back.snapshot(), *CacheState().snapshot());
}

// At every event of runs with reservation, preemption, finishing: decode(encode()) shows the same and encodes the same.
TEST(Keyframe, bringsTheStateBackAtEveryEvent) {
    for (const bool contiguous : {false, true}) {
        SyntheticOptions options;
        options.steps = 60;
        options.poolBlocks = contiguous ? 600 : 24;
        options.blockTokens = 4;
        options.maxPromptTokens = 40;
        options.contiguous = contiguous;
        options.arrivalsPerStep = 0.5;
        CacheState state;
        std::uint32_t preemptions = 0;
        for (const trace::Event& event : SyntheticRun::all(options)) {
            ASSERT_TRUE(state.apply(event));
            preemptions += std::holds_alternative<trace::RequestPreempted>(event.body) ? 1 : 0;
            const auto bytes = state.encode();
            CacheState back = decoded(bytes);
            EXPECT_EQ(back.stateHash(), state.stateHash());
            EXPECT_EQ(back.encode(), bytes);
            test::expectSame(*back.snapshot(), *state.snapshot());
            if (HasFailure())
                return;
        }
        EXPECT_EQ(preemptions > 0, !contiguous);
    }
}

TEST(Keyframe, foldedFromInTheMiddleGivesTheSameEnd) {
    SyntheticOptions options;
    options.steps = 300;
    options.poolBlocks = 64;
    const auto events = SyntheticRun::all(options);
    CacheState whole;
    for (const trace::Event& event : events)
        ASSERT_TRUE(whole.apply(event));
    for (const std::size_t cut : {std::size_t{1}, events.size() / 3, events.size() / 2, events.size() - 1}) {
        CacheState first;
        for (std::size_t i = 0; i < cut; ++i)
            ASSERT_TRUE(first.apply(events[i]));
        CacheState second = decoded(first.encode());
        for (std::size_t i = cut; i < events.size(); ++i) {
            const auto folded = second.apply(events[i]);
            ASSERT_TRUE(folded) << folded.error().message;
        }
        EXPECT_EQ(second.encode(), whole.encode());
        test::expectSame(*second.snapshot(), *whole.snapshot());
    }
}

TEST(Keyframe, holdsNoTimes) {
    SyntheticOptions slow, fast;
    slow.steps = fast.steps = 40;
    fast.stepNs = 1'000'000;
    CacheState one, other;
    for (const trace::Event& event : SyntheticRun::all(slow))
        ASSERT_TRUE(one.apply(event));
    for (const trace::Event& event : SyntheticRun::all(fast))
        ASSERT_TRUE(other.apply(event));
    EXPECT_EQ(one.encode(), other.encode());
}

TEST(Keyframe, aSequenceWhoseRequestHasFinishedComesBack) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=8 tokens=4 | arrive r1 6 | admit r1 | start s1 r1 | alloc s1 b0 b3 | finish r1"), "");
    CacheState back = decoded(run.state.encode());
    EXPECT_EQ(StateNotation::print(*back.snapshot()), run.print());
    EXPECT_EQ(back.encode(), run.state.encode());
}

TEST(Keyframe, millionFreeBlocksTakeFewBytes) {
    StateNotation run;
    ASSERT_EQ(run.run("run blocks=1000000 tokens=16 | arrive r1 6 | admit r1 | start s1 r1 | reserve s1 b100 900000 |"
                      "step | end | free s1 | stop s1 | finish r1 | step | end"),
              "");
    const auto bytes = run.state.encode();
    EXPECT_LT(bytes.size(), 200u);
    test::expectSame(*decoded(bytes).snapshot(), *run.state.snapshot());
}

TEST(Keyframe, refusesOtherVersionsWithBothNumbers) {
    auto bytes = CacheState().encode();
    bytes[0] = std::byte{9};
    const auto refused = CacheState::decode(bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "The keyframe is in format 9, but this program reads format 1.");
    EXPECT_FALSE(CacheState::decode({}));
}

// Its own hash and all that is derived make nearly every damage visible; what passes is a sound state.
TEST(Keyframe, survivesThousandsOfMutants) {
    SyntheticOptions options;
    options.steps = 25;
    options.poolBlocks = 40;
    options.blockTokens = 4;
    options.maxPromptTokens = 20;
    CacheState state;
    for (const trace::Event& event : SyntheticRun::all(options))
        ASSERT_TRUE(state.apply(event));
    const auto good = state.encode();
    std::mt19937 random(11);
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
        auto bytes = good;
        if (random() % 5 == 0)
            bytes.resize(random() % bytes.size());
        else
            for (std::uint32_t n = random() % 3 + 1; n > 0; --n)
                bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 4 ? random() : 0xFF);
        auto back = CacheState::decode(bytes);
        if (!back) {
            ++refused;
            continue;
        }
        const auto sound = checkInvariants(*back->snapshot());
        EXPECT_TRUE(sound) << sound.error().message;
        EXPECT_EQ(CacheState::decode(back->encode()).value().stateHash(), back->stateHash());
    }
    EXPECT_GT(refused, 2500);
}

} // namespace
} // namespace kvatlas::state

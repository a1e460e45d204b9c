// SPDX-License-Identifier: Apache-2.0
#include "core/state/invariants.h"
#include "core/state/state_store.h"
#include "tests/support/synthetic_run.h"
#include "tests/unit/state/expect_same.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace kvatlas::state {
namespace {

using test::SyntheticOptions;
using test::SyntheticRun;

TEST(StateStore, handsOutTheSameSnapshotUntilSomethingHappens) {
    StateStore store;
    ASSERT_NE(store.snapshot(), nullptr);
    EXPECT_EQ(store.snapshot(), store.snapshot());
    SyntheticRun run({});
    const auto before = store.snapshot();
    store.onEvents(run.nextStep());
    EXPECT_NE(store.snapshot(), before);
    EXPECT_EQ(store.snapshot()->stateHash, run.stateHash());
    EXPECT_EQ(store.error(), "");
}

TEST(StateStore, keepsTheLastGoodStateAndTheFirstErrorUntilAKeyframe) {
    SyntheticRun run({});
    StateStore store;
    store.onEvents(run.nextStep());
    const auto good = store.snapshot();
    CacheState elsewhere;
    for (const trace::Event& event : SyntheticRun::all({}))
        ASSERT_TRUE(elsewhere.apply(event));

    run.nextStep(); // lost
    store.onEvents(std::vector<trace::Event>{{0, 0, trace::CommandApplied{"pause", {}}}});
    store.onEvents(run.nextStep());
    EXPECT_NE(store.error().find("\"command applied\" at step 0"), std::string::npos) << store.error();
    EXPECT_EQ(store.snapshot()->stateHash, good->stateHash);

    store.onKeyframe(elsewhere.step(), elsewhere.encode());
    test::expectSame(*store.snapshot(), *elsewhere.snapshot());
    EXPECT_NE(store.error(), "");
}

TEST(StateStore, refusesADamagedKeyframeAndTakesAnEmptyOneAsNothing) {
    StateStore store;
    store.onEvents(SyntheticRun({}).nextStep());
    const auto before = store.snapshot()->stateHash;
    store.onKeyframe(3, std::vector<std::byte>(5));
    EXPECT_NE(store.error(), "");
    EXPECT_EQ(store.snapshot()->stateHash, before);
    store.onKeyframe(0, {});
    EXPECT_EQ(store.snapshot()->run, nullptr);
    store.onEvents(SyntheticRun({}).nextStep());
    EXPECT_NE(store.snapshot()->run, nullptr);
}

TEST(StateStore, saysWhenTheStreamIsOver) {
    StateStore store;
    store.onEvents(SyntheticRun({}).nextStep());
    EXPECT_FALSE(store.snapshot()->ended);
    store.onEnd();
    EXPECT_TRUE(store.snapshot()->ended);
}

// One thread delivers, another looks: what it sees is always a sound state (TSan sees to the rest).
TEST(StateStore, isReadWhileItIsFed) {
    SyntheticOptions options;
    options.steps = 120;
    options.poolBlocks = 64;
    StateStore store;
    std::atomic<bool> over{false};
    std::thread delivery([&] {
        SyntheticRun run(options);
        while (!run.done())
            store.onEvents(run.nextStep());
        store.onEnd();
        over = true;
    });
    Step last = 0;
    while (!over) {
        const auto snapshot = store.snapshot();
        const auto sound = checkInvariants(*snapshot);
        EXPECT_TRUE(sound) << sound.error().message;
        EXPECT_GE(snapshot->step, last);
        last = snapshot->step;
    }
    delivery.join();
    EXPECT_EQ(store.error(), "");
    EXPECT_EQ(store.snapshot()->step, options.steps - 1);
}

} // namespace
} // namespace kvatlas::state

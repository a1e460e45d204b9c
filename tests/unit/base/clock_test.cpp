// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"

#include <gtest/gtest.h>

namespace kvatlas {
namespace {

TEST(HoldableClock, leavesOutTheTimeForWhichItWasHeld) {
    ManualClock wall;
    wall.advance(100);
    HoldableClock clock(wall);
    EXPECT_EQ(clock.nowNs(), 100);
    wall.advance(5);
    clock.hold();
    wall.advance(1000);
    EXPECT_EQ(clock.nowNs(), 105);
    clock.hold(); // held already
    wall.advance(1000);
    clock.release();
    EXPECT_EQ(clock.nowNs(), 105);
    clock.release();
    wall.advance(7);
    EXPECT_EQ(clock.nowNs(), 112);
    clock.hold();
    clock.release();
    EXPECT_EQ(clock.nowNs(), 112);
}

} // namespace
} // namespace kvatlas

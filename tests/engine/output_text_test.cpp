// SPDX-License-Identifier: Apache-2.0
#include "core/engine/output_text.h"

#include <gtest/gtest.h>

namespace kvatlas::engine {
namespace {

TEST(outputTextTest, findsAStopTextOverTokenBorders) {
    OutputText text({"STOP"});
    EXPECT_FALSE(text.push("one S"));
    EXPECT_FALSE(text.push("T"));
    EXPECT_TRUE(text.push("OP and more"));
    EXPECT_EQ(text.valid(), "one ");
}

TEST(outputTextTest, cutsBeforeTheEarliestOfSeveral) {
    OutputText text({"later", "b"});
    EXPECT_TRUE(text.push("a b later"));
    EXPECT_EQ(text.valid(), "a ");
}

TEST(outputTextTest, anEmptyStopTextNeverMatches) {
    OutputText text({""});
    EXPECT_FALSE(text.push("abc"));
}

TEST(outputTextTest, aRepeatedBeginningStillMatches) {
    OutputText text({"aab"});
    EXPECT_FALSE(text.push("a"));
    EXPECT_FALSE(text.push("a"));
    EXPECT_FALSE(text.push("a"));
    EXPECT_TRUE(text.push("b"));
    EXPECT_EQ(text.valid(), "a");
}

TEST(outputTextTest, whatIsNoCharacterBecomesTheReplacementCharacter) {
    OutputText text({});
    text.push("\xC3");
    EXPECT_EQ(text.valid(), "\xEF\xBF\xBD");
    text.push("\xA9");
    EXPECT_EQ(text.valid(), "\xC3\xA9");
}

} // namespace
} // namespace kvatlas::engine

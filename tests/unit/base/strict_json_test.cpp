// SPDX-License-Identifier: Apache-2.0
#include "core/base/strict_json.h"

#include "core/base/small_file.h"

#include <array>
#include <gtest/gtest.h>

namespace kvatlas {
namespace {

TEST(StrictJson, buildsTheSameValueAsThePlainParser) {
    const std::string text =
        R"({"a": [1, -2, 3.5, true, null, "x\u00e9", {}, []], "b": {"c": {"d": 18446744073709551615}}})";
    const auto value = parseStrictJson(text, "t");
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(*value, Json::parse(text));
}

TEST(StrictJson, refusesTooManyValuesAndTooMuchText) {
    EXPECT_FALSE(parseStrictJson("[1,2,3]", "t", {.maxValues = 3}));
    EXPECT_TRUE(parseStrictJson("[1,2,3]", "t", {.maxValues = 4}));
    EXPECT_FALSE(parseStrictJson("[1,2,3]", "t", {.maxBytes = 6}));
    EXPECT_TRUE(parseStrictJson("[[]]", "t", {.maxDepth = 2}));
    EXPECT_FALSE(parseStrictJson("[[[]]]", "t", {.maxDepth = 2}));
}

TEST(StrictJson, duplicateKeysInDifferentObjectsAreFine) {
    EXPECT_TRUE(parseStrictJson(R"([{"a": 1}, {"a": {"a": 2}}])", "t"));
    EXPECT_FALSE(parseStrictJson(R"([{"a": 1, "b": {"a": 2}, "a": 3}])", "t"));
}

TEST(StrictJson, refusesNulBytesWhereverTheyStand) {
    using namespace std::string_literals;
    for (const std::string& text : {"[1]\0"s, "[1]\0[2]"s, "[1,\0 2]"s, "\0"s, "[\"a\0b\"]"s})
        EXPECT_NE(parseStrictJson(text, "t").error().message.find("a NUL byte"), std::string::npos);
    EXPECT_EQ(parseStrictJson("[1,\n 2]\0"s, "t").error().message.substr(0, 22), "t: line 2, column 4: a");
    EXPECT_TRUE(parseStrictJson(R"(["a\u0000b"])", "t"));
}

TEST(StrictJson, writesInvalidTextWithReplacementCharacters) {
    EXPECT_EQ(jsonText(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(StrictJson, findsTheNearestWord) {
    constexpr std::array<std::string_view, 3> kWords{"layout", "reserve", "batching"};
    EXPECT_EQ(nearestWord("layuot", kWords), "layout"); // one transposition
    EXPECT_EQ(nearestWord("batch", kWords), "batching");
    EXPECT_EQ(nearestWord("xyzzy", kWords), std::nullopt);
    EXPECT_EQ(nearestWord(std::string(1'000'000, 'a'), kWords), std::nullopt);
}

TEST(SmallFile, saysWhyAFileCannotBeRead) {
    EXPECT_NE(readSmallFile("no/such/file", 10).error().message.find("cannot be opened"), std::string::npos);
    EXPECT_NE(readSmallFile("/tmp", 10).error().message.find("is a folder or a device"), std::string::npos);
    EXPECT_NE(readSmallFile("/dev/zero", 10).error().message.find("is a folder or a device"), std::string::npos);
}

} // namespace
} // namespace kvatlas

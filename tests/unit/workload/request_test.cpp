// SPDX-License-Identifier: Apache-2.0
#include "core/workload/request.h"

#include <gtest/gtest.h>

namespace kvatlas::workload {
namespace {

void expectRefused(std::string_view json, std::string_view part) {
    const auto parsed = parseRequest(json, "r");
    ASSERT_FALSE(parsed) << json;
    EXPECT_EQ(parsed.error().kind, ErrorKind::Refused);
    EXPECT_NE(parsed.error().message.find(part), std::string::npos)
        << json << "\n  said: " << parsed.error().message << "\n  expected: " << part;
}

TEST(Request, aPromptAloneIsGreedyWithDefaults) {
    const auto parsed = parseRequest(R"({"prompt": "Hello"})");
    ASSERT_TRUE(parsed) << parsed.error().message;
    Request expected;
    expected.prompt = "Hello";
    EXPECT_EQ(*parsed, expected);
    EXPECT_EQ(parsed->temperature, 0);
    EXPECT_EQ(parsed->seed, std::nullopt);
}

TEST(Request, readsEveryKey) {
    const auto parsed = parseRequest(R"({"title": "t", "messages": [{"role": "system", "content": "s"},
        {"role": "user", "content": ""}], "max_tokens": 7, "ignore_eos": true, "stop": ["a", "b"], "temperature": 0.5,
        "top_k": 40, "top_p": 0.9, "min_p": 0.05, "seed": 18446744073709551615, "n": 1, "priority": -3})");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->kind, PromptKind::Messages);
    EXPECT_EQ(parsed->messages, (std::vector<Message>{{"system", "s"}, {"user", ""}}));
    EXPECT_EQ(parsed->maxTokens, 7u);
    EXPECT_TRUE(parsed->ignoreEndToken);
    EXPECT_EQ(parsed->stop, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(parsed->temperature, 0.5);
    EXPECT_EQ(parsed->topK, 40u);
    EXPECT_EQ(parsed->topP, 0.9);
    EXPECT_EQ(parsed->minP, 0.05);
    EXPECT_EQ(parsed->seed, 18446744073709551615u);
    EXPECT_EQ(parsed->priority, -3);
    EXPECT_EQ(parseRequest(R"({"prompt": "", "temp": 0.8})")->temperature, 0.8);
    EXPECT_EQ(parseRequest(R"({"prompt": "", "stop": "end"})")->stop, std::vector<std::string>{"end"});
}

TEST(Request, whatIsWrittenReadsBackEqual) {
    for (const char* json : {R"({"prompt": "a \" b \n ü \ud83d\ude00", "raw": true, "seed": 5, "top_p": 0.1})",
                             R"({"tokens": [1, 2, 2147483647], "min_p": 0.3, "stop": ["x"]})",
                             R"({"messages": [{"role": "assistant", "content": "c"}], "ignore_eos": true})"}) {
        const auto first = parseRequest(json);
        ASSERT_TRUE(first) << first.error().message;
        const auto again = parseRequest(toJson(*first));
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_EQ(*again, *first);
    }
}

TEST(Request, needsExactlyOneKindOfPrompt) {
    expectRefused("{}", "this one has none");
    expectRefused(R"({"prompt": "a", "tokens": [1]})", "this one has several");
    expectRefused(R"({"messages": []})", "a list of 1 to");
    expectRefused(R"({"messages": [{"role": "user"}]})", "needs \"role\" and \"content\"");
    expectRefused(R"({"messages": [{"role": "robot", "content": "a"}]})", "message 1");
    expectRefused(R"({"messages": [{"role": "user", "content": "a", "name": "b"}]})", "unknown key \"name\"");
    expectRefused(R"({"messages": [{"role": "user", "content": "a"}], "raw": true})", "chat template");
    expectRefused(R"({"tokens": [-1]})", "\"tokens\" holds -1");
    expectRefused(R"({"tokens": [2147483648]})", "a token id is a whole number");
    expectRefused(R"({"tokens": [1.5]})", "a token id is a whole number");
    expectRefused(R"({"tokens": "1,2"})", "a list of at most");
    expectRefused(R"({"prompt": 3})", "a text of at most");
}

TEST(Request, keepsNumbersInTheirRanges) {
    for (const char* key : {"max_tokens", "top_k", "top_p", "min_p", "temperature", "priority", "seed", "n"})
        expectRefused(std::string(R"({"prompt": "a", ")") + key + R"(": -1.5})",
                      std::string("\"") + key + "\" is -1.5");
    expectRefused(R"({"prompt": "a", "max_tokens": 0})", "from 1 to");
    expectRefused(R"({"prompt": "a", "max_tokens": 16777217})", "from 1 to");
    expectRefused(R"({"prompt": "a", "top_p": 0})", "above 0");
    expectRefused(R"({"prompt": "a", "top_p": 1.01})", "from 0 to 1");
    expectRefused(R"({"prompt": "a", "seed": 18446744073709551616})", "whole number");
    expectRefused(R"({"prompt": "a", "priority": 18446744073709551615})", "whole number");
    expectRefused(R"({"prompt": "a", "stop": ""})", "each of 1 to 256 bytes");
    expectRefused(R"({"prompt": "a", "stop": [1]})", "each of 1 to 256 bytes");
}

TEST(Request, saysWhatIsNotAvailableYet) {
    expectRefused(R"({"prompt": "a", "n": 2})", "is not available yet");
    expectRefused(R"({"prompt": "a", "salt": "pepper"})", "is not available yet");
}

TEST(Request, namesTheNearestKeyAndRefusesDuplicates) {
    expectRefused(R"({"prompt": "a", "max_token": 3})", "did you mean \"max_tokens\"?");
    expectRefused(R"({"promt": "a"})", "did you mean \"prompt\"?");
    expectRefused(R"({"prompt": "a", "prompt": "b"})", "twice");
    expectRefused(R"({"prompt": "a", "temp": 1, "temperature": 1})", "the same");
    expectRefused(R"({"prompt": "a", "at": 3})", "belongs into a scenario");
    expectRefused(std::string(1000, '{'), "not JSON");
    expectRefused("\xff", "not JSON");
}

} // namespace
} // namespace kvatlas::workload

// SPDX-License-Identifier: Apache-2.0
#include "core/workload/scenario.h"

#include <gtest/gtest.h>
#include <set>

namespace kvatlas::workload {
namespace {

void expectRefused(std::string_view json, std::string_view part) {
    const auto parsed = parseScenario(json, "s.json");
    ASSERT_FALSE(parsed) << json;
    EXPECT_EQ(parsed.error().kind, ErrorKind::Refused);
    EXPECT_NE(parsed.error().message.find(part), std::string::npos)
        << json << "\n  said: " << parsed.error().message << "\n  expected: " << part;
}

TEST(Scenario, arrivesInStepsUnlessToldOtherwise) {
    const auto steps = parseScenario(R"({"requests": [{"prompt": "a"}, {"prompt": "b", "at": 12}]})");
    ASSERT_TRUE(steps) << steps.error().message;
    EXPECT_EQ(steps->arrival, Arrival::Steps);
    EXPECT_EQ(steps->requests[1].arrivalStep, 12u);
    const auto seconds = parseScenario(R"({"arrival": "seconds", "requests": [{"prompt": "b", "at": 0.25}]})");
    ASSERT_TRUE(seconds) << seconds.error().message;
    EXPECT_EQ(seconds->requests[0].arrivalSeconds, 0.25);
    expectRefused(R"({"requests": [{"prompt": "b", "at": 0.25}]})", "s.json, request 1: \"at\" is 0.25");
}

TEST(Scenario, carriesAStrategyAsAnObjectOrAPreset) {
    EXPECT_EQ(parseScenario(R"({"strategy": "paged-f16", "requests": [{"prompt": "a"}]})")->strategyPreset,
              "paged-f16");
    EXPECT_EQ(parseScenario(R"({"strategy": {"block_tokens": 4}, "requests": [{"prompt": "a"}]})")->strategyJson,
              R"({"block_tokens":4})");
    expectRefused(R"({"strategy": 3, "requests": [{"prompt": "a"}]})", "an object {...} or the name of a preset");
}

TEST(Scenario, whatIsWrittenReadsBackEqual) {
    const auto first = parseScenario(R"({"version": 1, "name": "n", "description": "d", "model": "m.gguf", "seed": 42,
        "arrival": "seconds", "strategy": {"layout": "contiguous"},
        "requests": [{"at": 0.1, "prompt": "a", "seed": 1}, {"tokens": [5], "title": "t"}]})");
    ASSERT_TRUE(first) << first.error().message;
    const auto again = parseScenario(toJson(*first));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *first);
}

TEST(Scenario, refusesWhatItDoesNotKnow) {
    expectRefused("{}", "needs \"requests\"");
    expectRefused(R"({"requests": []})", "a list of 1 to");
    expectRefused(R"({"requests": {}})", "a list of 1 to");
    expectRefused(R"({"requests": [3]})", "request 1: this must be an object");
    expectRefused(R"({"request": [{"prompt": "a"}]})", "did you mean \"requests\"?");
    expectRefused(R"({"feed": "essay.txt", "requests": [{"prompt": "a"}]})", "\"feed\" is not available yet");
    expectRefused(R"({"version": 3, "requests": [{"prompt": "a"}]})", "version 3, and this program knows version 1");
    expectRefused(R"({"requests": [{"prompt": "a"}, {"promp": "a"}]})", "request 2: unknown key");
    expectRefused(R"({"arrival": "step", "requests": [{"prompt": "a"}]})", R"("steps" or "seconds")");
    expectRefused(std::string(1000, '['), "nested deeper");
}

// The scenarios that ship.
TEST(ShippedScenarios, allParseAndAskForWhatADemoCanShow) {
    const auto folder = std::filesystem::path(KVATLAS_SOURCE_DIR) / "resources" / "scenarios";
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const auto scenario = loadScenario(entry.path());
        ASSERT_TRUE(scenario) << scenario.error().message;
        names.insert(scenario->name);
        EXPECT_FALSE(scenario->description.empty());
        for (const auto& request : scenario->requests)
            EXPECT_FALSE(request.title.empty()) << entry.path();
    }
    EXPECT_EQ(names,
              (std::set<std::string>{"Four chats, one system prompt", "Long and short together", "One long document"}));
}

TEST(ShippedScenarios, theMixedOneHasLongTailedLengthsAndArrivals) {
    const auto scenario = loadScenario(std::filesystem::path(KVATLAS_SOURCE_DIR) / "resources" / "scenarios" /
                                       "long-and-short-together.json");
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_EQ(scenario->requests.size(), 16u);
    std::uint32_t longest = 0, total = 0, arrivals = 0;
    for (const auto& request : scenario->requests) {
        longest = std::max(longest, request.maxTokens);
        total += request.maxTokens;
        arrivals += request.arrivalStep > 0;
    }
    EXPECT_GE(longest * 16, 4 * total); // the longest is at least four times the mean
    EXPECT_GE(arrivals, 4u);
}

} // namespace
} // namespace kvatlas::workload

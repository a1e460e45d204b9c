// SPDX-License-Identifier: Apache-2.0
#include "core/trace/event.h"
#include "tests/unit/trace/every_event.h"

#include <gtest/gtest.h>

#include <set>

namespace kvatlas::trace {
namespace {

// The ids and names are stored in session files: this list never loses or changes a line.
TEST(Event, keepsFrozenIdsAndNames) {
    const std::vector<std::pair<int, std::string>> frozen{
        {1, "run started"},       {2, "command applied"},  {3, "request arrived"},  {4, "request admitted"},
        {5, "request preempted"}, {6, "request resumed"},  {7, "request finished"}, {8, "sequence started"},
        {10, "sequence ended"},   {11, "step started"},    {12, "step ended"},      {13, "blocks allocated"},
        {14, "blocks reserved"},  {17, "blocks released"}, {22, "slots written"},   {26, "token sampled"},
        {30, "kernel span"},      {32, "memory counter"},  {33, "events lost"}};
    const auto events = test::everyEvent();
    ASSERT_EQ(events.size(), frozen.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        EXPECT_EQ(static_cast<int>(events[i].kind()), frozen[i].first);
        EXPECT_EQ(nameOf(events[i].kind()), frozen[i].second);
    }
}

TEST(Event, onlySpansAndCountersMayBeDropped) {
    std::set<std::string> samples;
    for (const Event& event : test::everyEvent())
        if (classOf(event.kind()) == EventClass::Sample)
            samples.insert(std::string(nameOf(event.kind())));
    EXPECT_EQ(samples, (std::set<std::string>{"kernel span", "memory counter"}));
}

TEST(Event, theListOfExamplesHoldsEveryKindOnce) {
    std::set<std::size_t> alternatives;
    for (const Event& event : test::everyEvent())
        alternatives.insert(event.body.index());
    EXPECT_EQ(alternatives.size(), std::variant_size_v<EventBody> - 1);
}

} // namespace
} // namespace kvatlas::trace

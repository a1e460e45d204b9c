// SPDX-License-Identifier: Apache-2.0
#include "core/query/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace kvatlas::query {
namespace {

using trace::RequestRow;
using trace::StepRow;

StepRow stepRow(Step step, std::uint64_t used, std::uint64_t active, std::uint64_t cached, std::uint64_t reserved) {
    StepRow row;
    row.step = step;
    row.usedBytes = used;
    row.activeBytes = active;
    row.cachedBytes = cached;
    row.reservedBytes = reserved;
    row.capacityBytes = 1000;
    return row;
}

RequestRow requestRow(std::uint64_t id, Step arrived, std::optional<Step> admitted, std::optional<Step> first,
                      std::optional<Step> finished) {
    RequestRow row;
    row.request = RequestId(id);
    row.arrivedStep = arrived;
    row.admittedStep = admitted;
    row.firstTokenStep = first;
    row.finishedStep = finished;
    if (finished)
        row.finishReason = trace::FinishReason::MaxTokens;
    return row;
}

TEST(StepAxis, mapsStepsToPixelsAndBack) {
    const StepAxis axis{101, 200, 112, 500};
    EXPECT_DOUBLE_EQ(axis.xOf(100), 112); // before the first step
    EXPECT_DOUBLE_EQ(axis.xOf(101), 117);
    EXPECT_DOUBLE_EQ(axis.xOf(200), 612);
    for (Step step = 101; step <= 200; ++step)
        EXPECT_EQ(axis.stepAt(axis.xOf(step)), step);
    EXPECT_EQ(axis.stepAt(119.4), 101u);
    EXPECT_EQ(axis.stepAt(119.6), 102u);
    EXPECT_EQ(axis.stepAt(-1e9), 101u);
    EXPECT_EQ(axis.stepAt(1e9), 200u);
    EXPECT_EQ((StepAxis{7, 7, 0, 500}.stepAt(300)), 7u);
    EXPECT_EQ((StepAxis{0, 0xFFFF'FFFF, 0, 500}.stepAt(500)), 0xFFFF'FFFFu);
}

TEST(MemorySeries, stacksWhatTheRowsSay) {
    const std::vector<StepRow> rows{stepRow(0, 60, 100, 30, 7)};
    const auto points = memorySeries(rows, {0, 9, 0, 100});
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points[0], (MemoryPoint{0, 10, 60, 100, 130, 137, 1000}));
}

TEST(MemorySeries, keepsEveryRowThatHasItsOwnPixels) {
    std::vector<StepRow> rows;
    for (Step step = 0; step <= 50; ++step)
        rows.push_back(stepRow(step, step, step, 0, 0));
    EXPECT_EQ(memorySeries(rows, {0, 50, 0, 500}).size(), 51u);
    const auto some = memorySeries(rows, {10, 20, 0, 500});
    ASSERT_EQ(some.size(), 11u);
    EXPECT_EQ(some.front().step, 10u);
    EXPECT_EQ(some.back().step, 20u);
    EXPECT_TRUE(memorySeries({}, {0, 50, 0, 500}).empty());
}

// Against the obvious: the extremes of each column are among the points, no column has more than two, all are real
// rows.
TEST(MemorySeries, keepsTheExtremesOfEachColumn) {
    std::mt19937 random(3);
    std::vector<StepRow> rows;
    for (Step step = 0; step < 20'000; ++step)
        rows.push_back(stepRow(step, random() % 50, 50 + random() % 500, random() % 200, random() % 200));
    const StepAxis axis{0, 19'999, 112, 640};
    const auto points = memorySeries(rows, axis);
    std::map<int, std::vector<double>> columns, kept;
    const auto total = [](const StepRow& row) { return double(row.activeBytes + row.cachedBytes + row.reservedBytes); };
    for (const StepRow& row : rows)
        columns[int(axis.xOf(row.step))].push_back(total(row));
    Step last = 0;
    for (const MemoryPoint& point : points) {
        kept[int(point.x)].push_back(point.reservedTop);
        EXPECT_EQ(point.reservedTop, total(rows[point.step]));
        EXPECT_GE(point.step, last);
        last = point.step;
    }
    ASSERT_EQ(kept.size(), columns.size());
    for (auto& [column, totals] : columns) {
        const auto [least, most] = std::minmax_element(totals.begin(), totals.end());
        ASSERT_LE(kept[column].size(), 2u);
        EXPECT_EQ(*std::min_element(kept[column].begin(), kept[column].end()), *least);
        EXPECT_EQ(*std::max_element(kept[column].begin(), kept[column].end()), *most);
    }
}

// Steps 1 to 100 over 100 pixels: step k ends at k.
constexpr StepAxis kAxis{1, 100, 0, 100};

TEST(RequestBars, showWaitingPrefillAndDecode) {
    const std::vector<RequestRow> rows{requestRow(9, 10, 20, 29, 49)};
    const auto bars = requestBars(rows, kAxis, 100);
    ASSERT_EQ(bars.bars.size(), 1u);
    const RequestBar& bar = bars.bars[0];
    EXPECT_EQ(bar.waiting, (BarSpan{9, 19}));
    EXPECT_EQ(bar.prefill, (BarSpan{19, 29}));
    EXPECT_EQ(bar.decode, (BarSpan{29, 49}));
    EXPECT_EQ(bar.hue, 1);
    EXPECT_TRUE(bar.numbered);
    EXPECT_FALSE(bar.running);
    EXPECT_EQ(bar.finishReason, trace::FinishReason::MaxTokens);
}

TEST(RequestBars, unfinishedOnesGoOnToTheNewestStep) {
    const std::vector<RequestRow> rows{requestRow(1, 10, 20, std::nullopt, std::nullopt),
                                       requestRow(2, 30, std::nullopt, std::nullopt, std::nullopt)};
    const auto bars = requestBars(rows, kAxis, 59);
    EXPECT_EQ(bars.bars[0].prefill, (BarSpan{19, 59}));
    EXPECT_TRUE(bars.bars[0].decode.empty());
    EXPECT_TRUE(bars.bars[0].running);
    EXPECT_EQ(bars.bars[1].waiting, (BarSpan{29, 59}));
    EXPECT_TRUE(bars.bars[1].prefill.empty());
    EXPECT_FALSE(bars.bars[1].numbered);
    EXPECT_EQ(bars.bars[1].text, "request 2, 0 of prompt, 0 of output, waiting");
}

TEST(RequestBars, packIntoAsFewLanesAsOverlapDemands) {
    const std::vector<RequestRow> rows{requestRow(1, 0, 0, 1, 39), requestRow(2, 10, 10, 11, 29),
                                       requestRow(3, 44, 44, 45, 60), requestRow(4, 41, 41, 42, 60)};
    const auto bars = requestBars(rows, kAxis, 100);
    EXPECT_EQ(bars.lanes, 2u);
    std::map<std::uint64_t, std::uint32_t> lanes;
    for (const RequestBar& bar : bars.bars)
        lanes[bar.request.value] = bar.lane;
    EXPECT_EQ(lanes, (std::map<std::uint64_t, std::uint32_t>{{1, 0}, {2, 1}, {3, 0}, {4, 1}}));
}

TEST(RequestBars, noTwoBarsOfALaneTouch) {
    std::mt19937 random(5);
    std::vector<RequestRow> rows;
    for (std::uint64_t id = 1; id <= 300; ++id) {
        const Step arrived = random() % 900;
        rows.push_back(requestRow(id, arrived, arrived + random() % 20, arrived + 20 + random() % 9,
                                  arrived + 30 + random() % 60));
    }
    const StepAxis axis{0, 1000, 0, 2000};
    const auto bars = requestBars(rows, axis, 1000);
    ASSERT_EQ(bars.bars.size(), 300u);
    std::map<std::uint32_t, double> ends;
    std::size_t deepest = 0;
    for (const RequestBar& bar : bars.bars) {
        if (ends.contains(bar.lane)) {
            EXPECT_GE(bar.waiting.from, ends[bar.lane] + 4);
        }
        ends[bar.lane] = bar.decode.to;
    }
    for (Step step = 0; step < 1000; ++step)
        deepest = std::max<std::size_t>(deepest, std::count_if(rows.begin(), rows.end(), [&](const RequestRow& row) {
                                            return row.arrivedStep <= step && *row.finishedStep + 2 >= step;
                                        }));
    EXPECT_LE(bars.lanes, deepest + 1); // first fit by start is best possible
}

TEST(RequestBars, onlyWhatTouchesTheAxisIsGiven) {
    const std::vector<RequestRow> rows{requestRow(1, 0, 0, 1, 9), requestRow(2, 5, 5, 6, 25),
                                       requestRow(3, 21, 22, 23, 90), requestRow(4, 41, 42, 43, 90)};
    const auto bars = requestBars(rows, {20, 40, 0, 200}, 100);
    ASSERT_EQ(bars.bars.size(), 2u);
    for (const RequestBar& bar : bars.bars) {
        EXPECT_GE(bar.waiting.from, 0);
        EXPECT_LE(bar.decode.to, 200);
    }
}

TEST(RequestBars, preemptionsAreGapsAndWhatIsRecomputedIsPrefill) {
    const std::vector<RequestRow> rows{requestRow(1, 1, 1, 9, 79), requestRow(3, 1, 1, 2, 40)};
    const std::vector<trace::PreemptionGap> gaps{
        {RequestId(1), 20, 30, 34}, {RequestId(2), 20, 30, 34}, {RequestId(1), 50, {}, {}}, {RequestId(3), 3, 5, {}}};
    const auto bars = requestBars(rows, kAxis, 100, gaps);
    EXPECT_EQ(bars.bars[0].gaps, (std::vector<BarSpan>{{19, 29}, {49, 79}}));
    EXPECT_EQ(bars.bars[0].recomputed, (std::vector<BarSpan>{{29, 34}}));
    EXPECT_EQ(bars.bars[1].gaps, (std::vector<BarSpan>{{2, 4}}));
    EXPECT_EQ(bars.bars[1].recomputed, (std::vector<BarSpan>{{4, 40}})); // not caught up when it ended
}

TEST(Ticks, areMultiplesOfAPowerOfTwo) {
    const auto values = [](const std::vector<Tick>& ticks) {
        std::vector<std::string> out;
        for (const Tick& tick : ticks)
            out.push_back(tick.text);
        return out;
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(values(stepTicks(0, 896, 8)), (Texts{"0", "128", "256", "384", "512", "640", "768", "896"}));
    EXPECT_EQ(values(stepTicks(100, 300, 4)), (Texts{"128", "192", "256"}));
    EXPECT_EQ(values(stepTicks(0, 3, 8)), (Texts{"0", "1", "2", "3"}));
    EXPECT_TRUE(stepTicks(5, 4, 8).empty());
    for (const Step last : {1u, 17u, 1000u, 0xFFFF'FFFFu})
        EXPECT_LE(stepTicks(0, last, 6).size(), 6u);
    EXPECT_EQ(byteTicks(64u << 20, 4).unit, "MiB");
    EXPECT_EQ(values(byteTicks(64u << 20, 4).ticks), (Texts{"0", "32", "64"}));
    EXPECT_EQ(values(byteTicks(100u << 20, 3).ticks), (Texts{"0", "64"}));
    EXPECT_EQ(values(byteTicks(0, 4).ticks), (Texts{"0"}));
    EXPECT_EQ(byteTicks(3000, 4).unit, "KiB");
    EXPECT_EQ(values(byteTicks(3u << 29, 4).ticks), (Texts{"0", "0.5", "1", "1.5"}));
    EXPECT_LE(byteTicks(~std::uint64_t{0}, 4).ticks.size(), 4u);
}

} // namespace
} // namespace kvatlas::query

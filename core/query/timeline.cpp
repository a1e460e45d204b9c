// SPDX-License-Identifier: Apache-2.0
#include "core/query/timeline.h"

#include "core/query/number_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kvatlas::query {

namespace {

using trace::RequestRow;
using trace::StepRow;

constexpr double kNumberedFromPx = 9;

MemoryPoint pointOf(const StepRow& row, const StepAxis& axis) {
    MemoryPoint point;
    point.step = row.step;
    point.x = axis.xOf(row.step);
    point.usedTop = static_cast<double>(row.usedBytes);
    point.activeTop = static_cast<double>(row.activeBytes);
    point.cachedTop = point.activeTop + static_cast<double>(row.cachedBytes);
    point.reservedTop = point.cachedTop + static_cast<double>(row.reservedBytes);
    point.capacity = static_cast<double>(row.capacityBytes);
    return point;
}

BarSpan clipped(double from, double to, const StepAxis& axis) {
    const double left = axis.leftPx, right = axis.leftPx + axis.widthPx;
    return {std::clamp(from, left, right), std::clamp(to, left, right)};
}

std::string describe(const RequestRow& row, bool running) {
    std::string out = fmt::format("request {}", row.request.value);
    if (!row.title.empty())
        out += ", " + row.title;
    out += fmt::format(", {} of prompt, {} of output", row.promptTokens, row.outputTokens);
    if (row.preemptions > 0)
        out += fmt::format(", preempted {}\u00D7", row.preemptions);
    return running ? out + (row.admittedStep ? ", running" : ", waiting") : out;
}

// Where a step begins.
double beginOf(Step step, const StepAxis& axis) {
    return axis.xOf(double(step) - 1);
}

RequestBar barOf(const RequestRow& row, const StepAxis& axis, Step newestStep) {
    RequestBar bar;
    bar.request = row.request;
    bar.hue = hueOf(row.request);
    bar.running = !row.finishedStep.has_value();
    bar.preemptions = row.preemptions;
    bar.finishReason = row.finishReason.value_or(trace::FinishReason::EndToken);
    bar.text = describe(row, bar.running);
    const Step last = row.finishedStep.value_or(newestStep);
    const double end = axis.xOf(last);
    const double arrived = beginOf(row.arrivedStep, axis);
    const double admitted = row.admittedStep ? beginOf(*row.admittedStep, axis) : end;
    const double first = row.firstTokenStep ? axis.xOf(*row.firstTokenStep) : end;
    bar.waiting = clipped(arrived, std::min(admitted, end), axis);
    bar.prefill = clipped(std::min(admitted, end), std::min(first, end), axis);
    bar.decode = clipped(std::min(first, end), end, axis);
    bar.numbered = bar.prefill.to - bar.prefill.from + bar.decode.to - bar.decode.from >= kNumberedFromPx;
    return bar;
}

} // namespace

double StepAxis::xOf(double step) const {
    return leftPx + (step - firstStep + 1) * widthPx / (double(lastStep) - firstStep + 1);
}

Step StepAxis::stepAt(double x) const {
    if (widthPx <= 0)
        return firstStep;
    const double step = firstStep - 1.0 + std::round((x - leftPx) / widthPx * (double(lastStep) - firstStep + 1));
    return static_cast<Step>(std::clamp(step, double(firstStep), double(lastStep)));
}

std::vector<MemoryPoint> memorySeries(std::span<const StepRow> rows, const StepAxis& axis) {
    std::vector<MemoryPoint> points;
    const auto from = std::lower_bound(rows.begin(), rows.end(), axis.firstStep,
                                       [](const StepRow& row, Step step) { return row.step < step; });
    std::size_t i = static_cast<std::size_t>(from - rows.begin());
    while (i < rows.size() && rows[i].step <= axis.lastStep) {
        const double column = std::floor(axis.xOf(rows[i].step));
        MemoryPoint low = pointOf(rows[i], axis), high = low;
        for (++i; i < rows.size() && rows[i].step <= axis.lastStep && std::floor(axis.xOf(rows[i].step)) <= column;
             ++i) {
            const MemoryPoint point = pointOf(rows[i], axis);
            if (point.reservedTop < low.reservedTop)
                low = point;
            if (point.reservedTop >= high.reservedTop)
                high = point;
        }
        if (low.step > high.step)
            std::swap(low, high);
        points.push_back(low);
        if (high.step != low.step)
            points.push_back(high);
    }
    return points;
}

RequestBars requestBars(std::span<const RequestRow> rows, const StepAxis& axis, Step newestStep,
                        std::span<const trace::PreemptionGap> gaps, double minGapPx) {
    std::vector<const RequestRow*> seen;
    for (const RequestRow& row : rows)
        if (row.arrivedStep <= axis.lastStep && row.finishedStep.value_or(newestStep) >= axis.firstStep)
            seen.push_back(&row);
    std::stable_sort(seen.begin(), seen.end(), [](const RequestRow* a, const RequestRow* b) {
        return a->arrivedStep != b->arrivedStep ? a->arrivedStep < b->arrivedStep : a->request < b->request;
    });
    std::multimap<std::uint64_t, const trace::PreemptionGap*> gapsOf;
    for (const trace::PreemptionGap& gap : gaps)
        gapsOf.emplace(gap.request.value, &gap);

    RequestBars out;
    std::vector<double> laneEnds; // unclipped, so that panning does not change the lanes of what stays in sight
    for (const RequestRow* row : seen) {
        RequestBar bar = barOf(*row, axis, newestStep);
        const double barEnd = axis.xOf(row->finishedStep.value_or(newestStep));
        const auto [first, end] = gapsOf.equal_range(row->request.value);
        for (auto at = first; at != end; ++at) {
            const trace::PreemptionGap& gap = *at->second;
            const double resumed = gap.resumed ? std::min(beginOf(*gap.resumed, axis), barEnd) : barEnd;
            const double caughtUp = gap.caughtUp ? std::min(axis.xOf(*gap.caughtUp), barEnd) : barEnd;
            for (const auto& [spans, span] :
                 {std::pair(&bar.gaps, clipped(beginOf(gap.preempted, axis), resumed, axis)),
                  std::pair(&bar.recomputed, clipped(resumed, caughtUp, axis))})
                if (!span.empty())
                    spans->push_back(span);
        }
        const double from = beginOf(row->arrivedStep, axis);
        const auto lane =
            std::find_if(laneEnds.begin(), laneEnds.end(), [&](double laneEnd) { return laneEnd + minGapPx <= from; });
        bar.lane = static_cast<std::uint32_t>(lane - laneEnds.begin());
        if (lane == laneEnds.end())
            laneEnds.emplace_back();
        laneEnds[bar.lane] = barEnd;
        out.bars.push_back(std::move(bar));
    }
    out.lanes = static_cast<std::uint32_t>(laneEnds.size());
    std::stable_sort(out.bars.begin(), out.bars.end(),
                     [](const RequestBar& a, const RequestBar& b) { return a.lane < b.lane; });
    return out;
}

std::vector<Tick> stepTicks(Step first, Step last, int most) {
    std::vector<Tick> ticks;
    if (last < first)
        return ticks;
    const auto limit = static_cast<std::uint64_t>(std::max(most, 2));
    std::uint64_t every = 1;
    const auto count = [&] { return last / every - (first == 0 ? 0 : (first - 1) / every) + (first == 0 ? 1 : 0); };
    while (count() > limit)
        every *= 2;
    for (std::uint64_t step = (first + every - 1) / every * every; step <= last; step += every)
        ticks.push_back({double(step), numberText(static_cast<std::int64_t>(step), Thousands::NoBreak)});
    return ticks;
}

ByteTicks byteTicks(std::uint64_t maxBytes, int most) {
    const auto limit = static_cast<std::uint64_t>(std::max(most, 2));
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    while (unit < 4 && (maxBytes >> (10 * (unit + 1))) > 0)
        ++unit;
    std::uint64_t every = 1;
    while (maxBytes / every >= limit)
        every *= 2;
    ByteTicks out;
    out.unit = kUnits[unit];
    const double scale = std::pow(2.0, 10.0 * unit);
    for (std::uint64_t bytes = 0; bytes <= maxBytes; bytes += every) {
        const double value = double(bytes) / scale;
        out.ticks.push_back({double(bytes), value == std::floor(value)
                                                ? numberText(static_cast<std::int64_t>(value), Thousands::NoBreak)
                                                : fmt::format("{}", value)});
        if (bytes > maxBytes - every)
            break;
    }
    return out;
}

} // namespace kvatlas::query

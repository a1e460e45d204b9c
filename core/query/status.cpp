// SPDX-License-Identifier: Apache-2.0
#include "core/query/status.h"

namespace kvatlas::query {

namespace {

using state::PoolState;
using state::RequestStatus;
using state::Snapshot;

constexpr const char* kUnknown = "\u2013";

void addPools(StatusFigures& figures, const Snapshot& now) {
    double slots = 0, inside = 0, reserved = 0; // in bytes, since pools differ in what a slot takes
    for (const PoolState& pool : now.pools) {
        if (pool.shape.tier != trace::Tier::Device || pool.shape.blockTokens == 0)
            continue;
        const std::uint64_t bytes = pool.shape.blockBytes;
        figures.kvBytes += (std::uint64_t{pool.counts.active} + pool.counts.cached + pool.counts.reserved) * bytes;
        figures.limitBytes += pool.shape.blocks * bytes;
        figures.activeBytes += pool.counts.active * bytes;
        const double used = double(pool.usedSlots) * double(bytes) / pool.shape.blockTokens;
        inside += double(pool.counts.active) * double(bytes) - used;
        reserved += double(pool.counts.reserved) * double(bytes);
        slots += (double(pool.counts.active) + pool.counts.reserved) * double(bytes);
    }
    if (slots > 0) {
        figures.wasteInsideFraction = inside / slots;
        figures.wasteReservedFraction = reserved / slots;
        figures.wasteFraction = (inside + reserved) / slots;
    }
}

} // namespace

StatusFigures statusOf(const Snapshot& now, const Snapshot* before) {
    StatusFigures figures;
    figures.step = now.step;
    addPools(figures, now);
    for (const state::RequestState& request : now.requests) {
        figures.running += request.status == RequestStatus::Running ? 1 : 0;
        figures.waiting += request.status == RequestStatus::Waiting ? 1 : 0;
        figures.preempted += request.status == RequestStatus::Preempted ? 1 : 0;
    }
    const bool sameRun = before && before->run && now.run && *before->run == *now.run;
    if (sameRun && now.ns > before->ns && now.prefillTokens >= before->prefillTokens &&
        now.decodeTokens >= before->decodeTokens) {
        const double seconds = (double(now.ns) - double(before->ns)) * 1e-9;
        figures.prefillPerSecond = double(now.prefillTokens - before->prefillTokens) / seconds;
        figures.decodePerSecond = double(now.decodeTokens - before->decodeTokens) / seconds;
    }
    return figures;
}

std::vector<StatusItem> statusItems(const StatusFigures& figures, Thousands separator) {
    std::string rate = kUnknown;
    if (figures.decodePerSecond && figures.prefillPerSecond) {
        rate = significantText(*figures.decodePerSecond, separator) + " decode";
        if (*figures.prefillPerSecond > 0)
            rate += ", " + significantText(*figures.prefillPerSecond, separator) + " prefill";
    }
    std::string requests =
        numberText(figures.running, separator) + " running, " + numberText(figures.waiting, separator) + " waiting";
    if (figures.preempted > 0)
        requests += ", " + numberText(figures.preempted, separator) + " preempted";
    return {{"step", numberText(figures.step, separator)},
            {"tok/s", std::move(rate)},
            {"KV", figures.limitBytes == 0
                       ? kUnknown
                       : bytesText(figures.kvBytes, separator) + " of " + bytesText(figures.limitBytes, separator)},
            {"active", bytesText(figures.activeBytes, separator)},
            {"waste", percentText(figures.wasteFraction)},
            {"requests", std::move(requests)}};
}

} // namespace kvatlas::query

// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_report.h"

#include "app/cli/output.h"
#include "core/base/counted.h"
#include "sessions/names.h"

#include <algorithm>
#include <optional>

namespace kvatlas::app {

namespace {

constexpr double kNsPerMs = 1e6;

std::string hex(std::uint64_t hash) {
    return fmt::format("{:016x}", hash);
}

std::optional<double> timeToFirstTokenMs(const engine::RequestResult& request) {
    if (!request.firstTokenNs)
        return std::nullopt;
    return static_cast<double>(*request.firstTokenNs - request.arrivedNs) / kNsPerMs;
}

std::optional<double> medianInterTokenMs(const engine::RequestResult& request) {
    auto times = request.interTokenNs;
    if (times.empty())
        return std::nullopt;
    std::sort(times.begin(), times.end());
    const std::size_t middle = times.size() / 2;
    const double upper = static_cast<double>(times[middle]);
    const double lower = times.size() % 2 == 0 ? static_cast<double>(times[middle - 1]) : upper;
    return (lower + upper) / 2 / kNsPerMs;
}

Json orNull(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

std::string orDash(const std::optional<double>& value, std::string_view unit) {
    return value ? fmt::format("{:.1f}{}", *value, unit) : "-";
}

Json requestJson(const engine::RequestResult& request) {
    Json out = {{"id", request.request.value},
                {"title", request.title},
                {"prompt_tokens", request.promptTokens},
                {"cached_tokens", request.cachedTokens},
                {"output_tokens", request.outputTokens.size()},
                {"token_ids", request.outputTokens},
                {"text", request.text},
                {"finish_reason", sessions::nameOf(request.finishReason)},
                {"ttft_ms", orNull(timeToFirstTokenMs(request))},
                {"itl_ms_median", orNull(medianInterTokenMs(request))},
                {"preemptions", request.preemptions},
                {"logits_hash", hex(request.logitsHash)}};
    if (!request.detail.empty())
        out["detail"] = request.detail;
    return out;
}

std::uint64_t totalBlocks(const RunReport& report) {
    const std::uint64_t blockBytes = report.layout.blockBytes();
    return blockBytes == 0 ? 0 : report.totals.capacityBytes / blockBytes;
}

} // namespace

Json toJson(const RunReport& report) {
    Json requests = Json::array();
    for (const auto& request : report.requests)
        requests.push_back(requestJson(request));
    return {{"model", report.model},
            {"backend", report.backend},
            {"arithmetic", report.arithmetic},
            {"threads", report.threads},
            {"seed", report.seed},
            {"strategy", Json::parse(strategy::toJson(report.strategy))},
            {"requests", requests},
            {"steps", report.totals.steps},
            {"tokens_per_second",
             {{"prefill", orNull(report.speed->prefillTokensPerSecond())},
              {"decode", orNull(report.speed->decodeTokensPerSecond())}}},
            {"kv",
             {{"block_tokens", report.layout.blockTokens},
              {"blocks_total", totalBlocks(report)},
              {"bytes_capacity", report.totals.capacityBytes},
              {"bytes_peak", report.totals.peakBytes},
              {"bytes_per_token", report.layout.bytesPerToken()},
              {"waste_fraction", report.totals.wasteFraction}}},
            {"logits_hash", hex(report.totals.logitsHash)},
            {"record", report.record.empty() ? Json(nullptr) : Json(report.record)}};
}

std::string toText(const RunReport& report, bool withTexts) {
    std::string text;
    if (withTexts)
        for (const auto& request : report.requests)
            text += fmt::format("[{}] {}\n{}\n\n", request.request.value, withoutControls(request.title),
                                withoutControls(request.detail.empty() ? request.text : request.detail));
    std::vector<std::vector<std::string>> rows{
        {"request", "prompt", "output", "first token", "per token, median", "preempted", "ended by"}};
    for (const auto& request : report.requests)
        rows.push_back({fmt::format("[{}] {}", request.request.value, shortened(request.title, 36)),
                        fmt::format("{}", request.promptTokens), fmt::format("{}", request.outputTokens.size()),
                        orDash(timeToFirstTokenMs(request), " ms"), orDash(medianInterTokenMs(request), " ms"),
                        fmt::format("{}", request.preemptions), std::string(sessions::nameOf(request.finishReason))});
    text += tableText(rows) + "\n";
    const auto bytes = [](std::uint64_t count) { return bytesText(static_cast<double>(count)); };
    std::vector<std::pair<std::string, std::string>> facts{
        {"strategy", strategy::describe(report.strategy)},
        {"backend",
         fmt::format("{}, {} arithmetic, {}", report.backend, report.arithmetic, counted(report.threads, "thread"))},
        {"steps", fmt::format("{}", report.totals.steps)},
        {"tokens per second", fmt::format("{} prefill, {} decode", orDash(report.speed->prefillTokensPerSecond(), ""),
                                          orDash(report.speed->decodeTokensPerSecond(), ""))},
        {"KV memory",
         fmt::format("{} at most of {} ({} of {})", bytes(report.totals.peakBytes), bytes(report.totals.capacityBytes),
                     counted(totalBlocks(report), "block"), counted(report.layout.blockTokens, "token"))},
        {"KV waste",
         fmt::format("{:.1f} % of what was taken held no token, mean over steps", report.totals.wasteFraction * 100)}};
    if (!report.record.empty())
        facts.emplace_back("recorded in", report.record);
    return text + listText(facts);
}

} // namespace kvatlas::app

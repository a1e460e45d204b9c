// SPDX-License-Identifier: Apache-2.0
#include "sessions/event_json.h"

#include "sessions/names.h"

#include <fmt/format.h>

namespace kvatlas::sessions {

namespace {

using Json = nlohmann::ordered_json;
using namespace trace;

// 64 hexadecimal digits do not survive a reader that keeps numbers as doubles, so hashes are text.
std::string hex(std::uint64_t value) {
    return fmt::format("{:016x}", value);
}

Json blockList(const std::vector<BlockId>& blocks) {
    Json list = Json::array();
    for (const BlockId block : blocks)
        list.push_back(block.value);
    return list;
}

Json fields(const std::monostate&) {
    return Json::object();
}

Json fields(const RunStarted& e) {
    Json pools = Json::array();
    for (const PoolShape& pool : e.pools)
        pools.push_back({{"pool", pool.pool.value},
                         {"tier", nameOf(pool.tier)},
                         {"k_format", pool.kFormat},
                         {"v_format", pool.vFormat},
                         {"blocks", pool.blocks},
                         {"block_tokens", pool.blockTokens},
                         {"block_bytes", pool.blockBytes}});
    return {{"model",
             {{"name", e.model.name},
              {"sha256", e.model.sha256},
              {"architecture", e.model.architecture},
              {"layers", e.model.layers},
              {"query_heads", e.model.queryHeads},
              {"kv_heads", e.model.kvHeads},
              {"head_dim", e.model.headDim},
              {"context_tokens", e.model.contextTokens},
              {"vocabulary", e.model.vocabulary},
              {"parameters", e.model.parameters}}},
            {"pools", std::move(pools)},
            {"backend", e.backend},
            {"arithmetic", e.arithmetic},
            {"threads", e.threads},
            {"strategy", e.strategyJson},
            {"scenario", e.scenarioJson},
            {"seed", e.seed},
            {"program_version", e.programVersion},
            {"machine", e.machine}};
}

Json fields(const CommandApplied& e) {
    return {{"command", e.command}, {"request", e.request.value}};
}

Json fields(const RequestArrived& e) {
    return {{"request", e.request.value},
            {"prompt_tokens", e.promptTokens},
            {"max_tokens", e.maxTokens},
            {"title", e.title}};
}

Json fields(const RequestAdmitted& e) {
    return {{"request", e.request.value}, {"cached_tokens", e.cachedTokens}};
}

Json fields(const RequestPreempted& e) {
    return {{"request", e.request.value}, {"reason", nameOf(e.reason)}, {"tokens_lost", e.tokensLost}};
}

Json fields(const RequestResumed& e) {
    return {{"request", e.request.value}};
}

Json fields(const RequestFinished& e) {
    return {{"request", e.request.value},
            {"reason", nameOf(e.reason)},
            {"output_tokens", e.outputTokens},
            {"detail", e.detail}};
}

Json fields(const SequenceStarted& e) {
    return {{"sequence", e.sequence.value}, {"request", e.request.value}};
}

Json fields(const SequenceEnded& e) {
    return {{"sequence", e.sequence.value}};
}

Json fields(const StepStarted& e) {
    Json batch = Json::array();
    for (const BatchEntry& entry : e.batch)
        batch.push_back({{"sequence", entry.sequence.value},
                         {"first_position", entry.firstPosition},
                         {"tokens", entry.tokens},
                         {"prefill", entry.prefill}});
    return {{"batch", std::move(batch)}, {"waiting_requests", e.waitingRequests}};
}

Json fields(const StepEnded& e) {
    return {{"compute_ns", e.computeNs}, {"wait_ns", e.waitNs}, {"state_hash", hex(e.stateHash)}};
}

Json fields(const BlocksAllocated& e) {
    return {{"sequence", e.sequence.value}, {"first_logical", e.firstLogical}, {"blocks", blockList(e.blocks)}};
}

Json fields(const BlocksReserved& e) {
    return {{"sequence", e.sequence.value},
            {"first_logical", e.firstLogical},
            {"first", e.first.value},
            {"count", e.count}};
}

Json fields(const BlocksReleased& e) {
    return {{"sequence", e.sequence.value}, {"reason", nameOf(e.reason)}, {"blocks", blockList(e.blocks)}};
}

Json fields(const SlotsWritten& e) {
    return {{"sequence", e.sequence.value}, {"first_position", e.firstPosition}, {"count", e.count}};
}

Json fields(const TokenSampled& e) {
    Json top = Json::array();
    for (const Candidate& candidate : e.top)
        top.push_back(Json::array({candidate.token, candidate.probability}));
    return {{"request", e.request.value},
            {"sequence", e.sequence.value},
            {"position", e.position},
            {"token", e.token},
            {"top", std::move(top)}};
}

Json fields(const KernelSpan& e) {
    Json json = {{"kernel", nameOf(e.kernel)},  {"layer", nullptr}, {"calls", e.calls},
                 {"duration_ns", e.durationNs}, {"bytes", e.bytes}, {"flops", e.flops}};
    if (e.layer.value != KernelSpan::kAllLayers)
        json["layer"] = e.layer.value;
    return json;
}

Json fields(const MemoryCounter& e) {
    return {{"arena_bytes", e.arenaBytes}, {"resident_bytes", e.residentBytes}};
}

Json fields(const EventsLost& e) {
    return {{"count", e.count}};
}

} // namespace

Json fieldsOf(const Event& event) {
    return std::visit([](const auto& body) { return fields(body); }, event.body);
}

Json toJson(const Event& event) {
    Json json = {{"step", event.step}, {"ns", event.ns}, {"kind", trace::nameOf(event.kind())}};
    Json body = fieldsOf(event);
    for (auto& [name, value] : body.items())
        json[name] = std::move(value);
    return json;
}

std::string toLine(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace kvatlas::sessions

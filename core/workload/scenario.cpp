// SPDX-License-Identifier: Apache-2.0
#include "core/workload/scenario.h"

#include "core/base/small_file.h"
#include "core/workload/request_fields.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kvatlas::workload {

namespace {

constexpr std::size_t kMaxNameBytes = 200, kMaxDescriptionBytes = 2000, kMaxModelBytes = 4096;
constexpr std::size_t kMaxRequests = 100'000;
constexpr std::size_t kMaxScenarioBytes = std::size_t{64} << 20;

constexpr std::array<std::string_view, 9> kScenarioKeys{"version", "name",     "description", "model",   "seed",
                                                        "arrival", "requests", "feed",        "strategy"};
constexpr std::array<std::string_view, 2> kArrivalNames{"steps", "seconds"};

ArrivalIn arrivalIn(Arrival arrival) {
    return arrival == Arrival::Steps ? ArrivalIn::Steps : ArrivalIn::Seconds;
}

void readRequests(JsonFields& fields, Scenario& out) {
    const Json* list = fields.find("requests");
    if (!list) {
        if (fields.ok())
            fields.refuse("a scenario needs \"requests\", a list of at least one request.");
        return;
    }
    if (!list->is_array() || list->empty() || list->size() > kMaxRequests)
        return fields.refuseValue("requests", fmt::format("a list of 1 to {} requests", kMaxRequests));
    for (std::size_t i = 0; i < list->size(); ++i) {
        auto request =
            requestFromJson((*list)[i], fmt::format("{}, request {}", fields.where(), i + 1), arrivalIn(out.arrival));
        if (!request)
            return fields.refuse(request.error());
        out.requests.push_back(std::move(*request));
    }
}

void readStrategy(JsonFields& fields, Scenario& out) {
    const Json* value = fields.find("strategy");
    if (!value || value->is_null())
        return;
    if (value->is_object())
        out.strategyJson = jsonText(*value);
    else if (value->is_string() && !value->get_ref<const std::string&>().empty())
        out.strategyPreset = fields.text("strategy", "", kMaxNameBytes);
    else
        fields.refuseValue("strategy", "an object {...} or the name of a preset");
}

} // namespace

Result<Scenario> parseScenario(std::string_view json, std::string_view what) {
    const auto value = parseStrictJson(json, what, {.maxBytes = kMaxScenarioBytes, .maxDepth = 8});
    if (!value)
        return tl::unexpected(value.error());
    JsonFields fields(*value, std::string(what), kScenarioKeys);
    Scenario out;
    out.version = static_cast<std::uint32_t>(fields.wholeNumber("version", 1, 1, 0xFFFF'FFFF));
    if (out.version != 1)
        fields.refuse(fmt::format("the scenario is of version {}, and this program knows version 1: a newer KVAtlas "
                                  "wrote it.",
                                  out.version));
    out.name = fields.text("name", "", kMaxNameBytes);
    if (std::any_of(out.name.begin(), out.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        fields.refuseValue("name", "a text without control characters");
    out.description = fields.text("description", "", kMaxDescriptionBytes);
    out.model = fields.text("model", "", kMaxModelBytes);
    out.seed = fields.wholeNumber("seed", 0, 0, std::numeric_limits<std::uint64_t>::max());
    out.arrival = static_cast<Arrival>(fields.choice("arrival", 0, kArrivalNames));
    if (fields.has("feed"))
        fields.refuse("\"feed\" is not available yet; leave the key out and give \"requests\".");
    readStrategy(fields, out);
    readRequests(fields, out);
    if (!fields.ok())
        return tl::unexpected(*fields.error());
    return out;
}

Result<Scenario> loadScenario(const std::filesystem::path& file) {
    const auto text = readSmallFile(file, kMaxScenarioBytes);
    if (!text)
        return tl::unexpected(text.error());
    return parseScenario(*text, file.filename().string());
}

std::string toJson(const Scenario& s) {
    Json strategy = nullptr;
    if (!s.strategyJson.empty())
        strategy = Json::parse(s.strategyJson);
    else if (!s.strategyPreset.empty())
        strategy = s.strategyPreset;
    Json out = {{"version", s.version},
                {"name", s.name},
                {"description", s.description},
                {"model", s.model},
                {"seed", s.seed},
                {"arrival", kArrivalNames[static_cast<std::size_t>(s.arrival)]},
                {"strategy", strategy},
                {"requests", Json::array()}};
    for (const auto& request : s.requests)
        out["requests"].push_back(requestToJson(request, arrivalIn(s.arrival)));
    return jsonText(out, 2);
}

} // namespace kvatlas::workload

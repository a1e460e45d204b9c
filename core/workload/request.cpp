// SPDX-License-Identifier: Apache-2.0
#include "core/workload/request.h"

#include "core/workload/request_fields.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kvatlas::workload {

namespace {

constexpr std::size_t kMaxTitleBytes = 200;
constexpr std::size_t kMaxPromptBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxMessages = 4096;
constexpr std::size_t kMaxPromptTokens = std::size_t{1} << 20;
constexpr std::size_t kMaxStopTexts = 16, kMaxStopBytes = 256;
constexpr std::uint64_t kMaxTokensLimit = std::uint64_t{1} << 24;
constexpr double kMaxArrivalSeconds = 1e6;

constexpr std::array<std::string_view, 18> kRequestKeys{
    "at",          "title", "messages", "prompt", "tokens", "raw", "max_tokens", "ignore_eos", "stop",
    "temperature", "top_k", "top_p",    "min_p",  "seed",   "n",   "salt",       "priority",   "temp"};
constexpr std::array<std::string_view, 2> kMessageKeys{"role", "content"};
constexpr std::array<std::string_view, 3> kRoles{"user", "system", "assistant"};

std::vector<Message> readMessages(JsonFields& fields) {
    const Json& list = *fields.find("messages");
    std::vector<Message> out;
    if (!list.is_array() || list.empty() || list.size() > kMaxMessages) {
        fields.refuseValue("messages",
                           fmt::format("a list of 1 to {} messages {{\"role\", \"content\"}}", kMaxMessages));
        return out;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        JsonFields message(list[i], fmt::format("{}, message {}", fields.where(), i + 1), kMessageKeys);
        if (message.ok() && (!message.has("role") || !message.has("content")))
            message.refuse("a message needs \"role\" and \"content\".");
        out.push_back(
            {std::string(kRoles[message.choice("role", 0, kRoles)]), message.text("content", "", kMaxPromptBytes)});
        if (!message.ok()) {
            fields.refuse(*message.error());
            return out;
        }
    }
    return out;
}

std::vector<TokenId> readTokens(JsonFields& fields) {
    const Json& list = *fields.find("tokens");
    std::vector<TokenId> out;
    if (!list.is_array() || list.size() > kMaxPromptTokens) {
        fields.refuseValue("tokens", fmt::format("a list of at most {} token ids", kMaxPromptTokens));
        return out;
    }
    constexpr auto kMaxId = static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max());
    for (const auto& entry : list) {
        if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() > kMaxId) {
            fields.refuse(fmt::format("\"tokens\" holds {}; a token id is a whole number from 0 on.", jsonText(entry)));
            return out;
        }
        out.push_back(static_cast<TokenId>(entry.get<std::uint64_t>()));
    }
    return out;
}

void readPrompt(JsonFields& fields, Request& out) {
    const int given = fields.has("messages") + fields.has("prompt") + fields.has("tokens");
    if (!fields.ok())
        return;
    if (given != 1)
        return fields.refuse(
            fmt::format("a request has one of \"messages\", \"prompt\" and \"tokens\", and this one has {}.",
                        given == 0 ? "none" : "several"));
    out.raw = fields.flag("raw", false);
    if (fields.has("messages")) {
        out.kind = PromptKind::Messages;
        out.messages = readMessages(fields);
    } else if (fields.has("tokens")) {
        out.kind = PromptKind::Tokens;
        out.tokens = readTokens(fields);
    } else {
        out.kind = PromptKind::Text;
        out.prompt = fields.text("prompt", "", kMaxPromptBytes);
    }
    if (out.raw && out.kind == PromptKind::Messages)
        fields.refuse(
            "\"raw\" passes a prompt as it is, and \"messages\" go through the chat template: write \"prompt\", "
            "or leave \"raw\" out.");
}

void readStop(JsonFields& fields, Request& out) {
    const Json* value = fields.find("stop");
    if (!value)
        return;
    const std::string mustBe =
        fmt::format("a text, or a list of at most {} texts, each of 1 to {} bytes", kMaxStopTexts, kMaxStopBytes);
    const Json list = value->is_string() ? Json::array({*value}) : *value;
    if (!list.is_array() || list.size() > kMaxStopTexts)
        return fields.refuseValue("stop", mustBe);
    for (const auto& entry : list) {
        if (!entry.is_string() || entry.get_ref<const std::string&>().empty() ||
            entry.get_ref<const std::string&>().size() > kMaxStopBytes)
            return fields.refuseValue("stop", mustBe);
        out.stop.push_back(entry.get<std::string>());
    }
}

void readSampling(JsonFields& fields, Request& out) {
    if (fields.has("temperature") && fields.has("temp"))
        fields.refuse("\"temp\" and \"temperature\" are the same: leave one of them out.");
    out.temperature = fields.number(fields.has("temp") ? "temp" : "temperature", 0, 0, 100);
    out.topK = static_cast<std::uint32_t>(fields.wholeNumber("top_k", 0, 0, std::numeric_limits<std::int32_t>::max()));
    out.topP = fields.number("top_p", 1, 0, 1);
    if (fields.ok() && out.topP == 0)
        fields.refuseValue("top_p", "above 0 and up to 1");
    out.minP = fields.number("min_p", 0, 0, 1);
    if (const Json* seed = fields.find("seed"); seed && !seed->is_null())
        out.seed = fields.wholeNumber("seed", 0, 0, std::numeric_limits<std::uint64_t>::max());
    if (const Json* n = fields.find("n"); n && fields.wholeNumber("n", 1, 1, 1024) > 1)
        fields.refuse(fmt::format("\"n\": {} is not available yet; leave the key out or write 1.", jsonText(*n)));
    if (!fields.text("salt", "", kMaxTitleBytes).empty())
        fields.refuse("\"salt\" is not available yet; leave the key out.");
}

void readArrival(JsonFields& fields, ArrivalIn arrival, Request& out) {
    switch (arrival) {
    case ArrivalIn::None:
        if (fields.has("at"))
            fields.refuse("\"at\" belongs into a scenario; a single request arrives when it is submitted.");
        break;
    case ArrivalIn::Steps:
        out.arrivalStep = static_cast<Step>(fields.wholeNumber("at", 0, 0, 0x7FFF'FFFF));
        break;
    case ArrivalIn::Seconds:
        out.arrivalSeconds = fields.number("at", 0, 0, kMaxArrivalSeconds);
        break;
    }
}

} // namespace

Result<Request> requestFromJson(const Json& value, std::string where, ArrivalIn arrival) {
    JsonFields fields(value, std::move(where), kRequestKeys);
    Request out;
    readArrival(fields, arrival, out);
    out.title = fields.text("title", "", kMaxTitleBytes);
    if (std::any_of(out.title.begin(), out.title.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        fields.refuseValue("title", "a text without control characters");
    readPrompt(fields, out);
    out.maxTokens = static_cast<std::uint32_t>(fields.wholeNumber("max_tokens", out.maxTokens, 1, kMaxTokensLimit));
    out.ignoreEndToken = fields.flag("ignore_eos", false);
    readStop(fields, out);
    readSampling(fields, out);
    out.priority = static_cast<std::int32_t>(fields.signedNumber("priority", 0, -1'000'000, 1'000'000));
    if (!fields.ok())
        return tl::unexpected(*fields.error());
    return out;
}

Json requestToJson(const Request& r, ArrivalIn arrival) {
    Json out = Json::object();
    if (arrival == ArrivalIn::Steps)
        out["at"] = r.arrivalStep;
    else if (arrival == ArrivalIn::Seconds)
        out["at"] = r.arrivalSeconds;
    out["title"] = r.title;
    switch (r.kind) {
    case PromptKind::Messages:
        out["messages"] = Json::array();
        for (const auto& message : r.messages)
            out["messages"].push_back({{"role", message.role}, {"content", message.content}});
        break;
    case PromptKind::Text:
        out["prompt"] = r.prompt;
        break;
    case PromptKind::Tokens:
        out["tokens"] = r.tokens;
        break;
    }
    out["raw"] = r.raw;
    out["max_tokens"] = r.maxTokens;
    out["ignore_eos"] = r.ignoreEndToken;
    out["stop"] = r.stop;
    out["temperature"] = r.temperature;
    out["top_k"] = r.topK;
    out["top_p"] = r.topP;
    out["min_p"] = r.minP;
    out["seed"] = r.seed ? Json(*r.seed) : Json(nullptr);
    out["n"] = 1;
    out["priority"] = r.priority;
    return out;
}

Result<Request> parseRequest(std::string_view json, std::string_view what) {
    const auto value = parseStrictJson(json, what, {.maxBytes = kMaxRequestJsonBytes, .maxDepth = 6});
    if (!value)
        return tl::unexpected(value.error());
    return requestFromJson(*value, std::string(what), ArrivalIn::None);
}

std::string toJson(const Request& request) {
    return jsonText(requestToJson(request, ArrivalIn::None));
}

} // namespace kvatlas::workload

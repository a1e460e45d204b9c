// SPDX-License-Identifier: Apache-2.0
// A request as it arrives: what to say, how to sample, when to stop. Plain values, any thread.
//
// Errors. Everything comes from files and users: unknown keys (the nearest known one is named), duplicate keys, wrong
// types and numbers out of range are Refused with one sentence.
#pragma once

#include "core/base/ids.h"
#include "core/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::workload {

struct Message {
    std::string role; // "system" | "user" | "assistant"
    std::string content;
    friend bool operator==(const Message&, const Message&) = default;
};

enum class PromptKind : std::uint8_t {
    Messages, // through the model's chat template
    Text,     // a user message through the chat template, or as it is when raw
    Tokens,   // token ids as they are
};

struct Request {
    std::string title; // empty: the first words of the prompt stand in
    PromptKind kind = PromptKind::Text;
    std::vector<Message> messages; // kind Messages
    std::string prompt;            // kind Text
    std::vector<TokenId> tokens;   // kind Tokens; not checked against a vocabulary here
    bool raw = false;              // kind Text: no chat template

    std::uint32_t maxTokens = 128;
    bool ignoreEndToken = false; // goes on after the end token, up to maxTokens (as vLLM's ignore_eos)
    std::vector<std::string> stop;

    double temperature = 0;            // 0 = greedy
    std::uint32_t topK = 0;            // 0 = off
    double topP = 1;                   // 1 = off
    double minP = 0;                   // 0 = off
    std::optional<std::uint64_t> seed; // not given: the run's seed
    std::int32_t priority = 0;

    // When it arrives; which of the two counts is the scenario's `arrival`.
    Step arrivalStep = 0;
    double arrivalSeconds = 0; // since the run started
    friend bool operator==(const Request&, const Request&) = default;
};

// One request, as a Submit command carries it. "at" is refused here.
Result<Request> parseRequest(std::string_view json, std::string_view what = "request");

// Complete: every key written out. parseRequest(toJson(r)) == r, arrival apart.
std::string toJson(const Request& request);

} // namespace kvatlas::workload

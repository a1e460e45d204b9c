// SPDX-License-Identifier: Apache-2.0
// A request as the engine runs it (token ids, not text), and what came of it. Plain values, any thread.
// Errors of prepare: Refused or Usage, one sentence.
#pragma once

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/engine/sampler.h"
#include "core/model/model.h"
#include "core/trace/event.h"
#include "core/workload/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::engine {

struct Request {
    std::string title;
    std::vector<TokenId> promptTokens;
    std::uint32_t maxTokens = 128;
    bool ignoreEndToken = false;
    std::vector<std::string> stop;
    Sampling sampling;
};

// Puts messages and texts through the model's chat template and its tokenizer; checks token ids against the vocabulary.
Result<Request> prepare(const workload::Request& request, const model::Model& model, std::uint64_t runSeed);

// What people call a request: its title, else the first words of its prompt.
std::string titleOf(const workload::Request& request);

struct RequestResult {
    RequestId request;
    std::string title;
    std::uint32_t promptTokens = 0, cachedTokens = 0, preemptions = 0;
    std::vector<TokenId> outputTokens; // an end token included
    std::string text;                  // valid UTF-8, without end token, cut before a stop text
    trace::FinishReason finishReason = trace::FinishReason::EndToken;
    std::string detail;                         // of a refusal
    ErrorKind refusal = ErrorKind::OutOfMemory; // its kind; Refused: the model is at fault
    std::int64_t arrivedNs = 0;
    std::optional<std::int64_t> firstTokenNs; // TTFT = firstTokenNs - arrivedNs
    std::vector<std::int64_t> interTokenNs;   // between successive tokens
    std::uint64_t logitsHash = 0;             // XXH3-64 over the f32 logits of every sampled position, in order
};

} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
#include "core/engine/request.h"

#include "core/base/counted.h"
#include "core/model/utf8.h"

#include <algorithm>

namespace kvatlas::engine {

namespace {

constexpr std::size_t kTitleBytes = 48;

Result<model::Message> toModelMessage(const workload::Message& message) {
    for (model::Role role : {model::Role::System, model::Role::User, model::Role::Assistant, model::Role::Tool})
        if (model::nameOf(role) == message.role)
            return model::Message{role, message.content};
    return makeError(ErrorKind::Usage, "a message has the unknown role \"{}\"; use system, user or assistant",
                     message.role);
}

Result<std::vector<TokenId>> encodeChat(const std::vector<workload::Message>& messages, const model::Model& model) {
    std::vector<model::Message> converted;
    for (const workload::Message& message : messages) {
        auto one = toModelMessage(message);
        if (!one)
            return tl::unexpected(one.error());
        converted.push_back(std::move(*one));
    }
    auto text = model.chatTemplate().render(converted, true);
    if (!text)
        return tl::unexpected(text.error());
    return model.tokenizer().encodePrompt(*text, true);
}

Result<std::vector<TokenId>> encode(const workload::Request& request, const model::Model& model) {
    switch (request.kind) {
    case workload::PromptKind::Messages:
        return encodeChat(request.messages, model);
    case workload::PromptKind::Text:
        if (request.raw)
            return model.tokenizer().encodePrompt(request.prompt, false);
        return encodeChat({{"user", request.prompt}}, model);
    case workload::PromptKind::Tokens:
        break;
    }
    const std::uint32_t vocabulary = model.config().vocabulary;
    for (std::size_t i = 0; i < request.tokens.size(); ++i)
        if (request.tokens[i] < 0 || static_cast<std::uint32_t>(request.tokens[i]) >= vocabulary)
            return makeError(ErrorKind::Refused, "token {} of the prompt is {}; the model knows 0 to {}", i + 1,
                             request.tokens[i], vocabulary - 1);
    return request.tokens;
}

} // namespace

std::string titleOf(const workload::Request& request) {
    if (!request.title.empty())
        return request.title;
    std::string text = request.prompt;
    for (const workload::Message& message : request.messages)
        if (message.role == "user")
            text = message.content;
    if (request.kind == workload::PromptKind::Tokens)
        text = counted(request.tokens.size(), "token");
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
    if (text.size() > kTitleBytes) {
        const std::size_t space = text.rfind(' ', kTitleBytes);
        text.resize(space == std::string::npos || space == 0 ? kTitleBytes : space);
        while (!text.empty() && !model::isValidUtf8(text))
            text.pop_back();
    }
    return model::toValidUtf8(text);
}

Result<Request> prepare(const workload::Request& request, const model::Model& model, std::uint64_t runSeed) {
    auto tokens = encode(request, model);
    if (!tokens)
        return tl::unexpected(tokens.error());
    Request prepared;
    prepared.title = titleOf(request);
    prepared.promptTokens = std::move(*tokens);
    prepared.maxTokens = request.maxTokens;
    prepared.ignoreEndToken = request.ignoreEndToken;
    prepared.stop = request.stop;
    prepared.sampling = {request.temperature, request.topK, request.topP, request.minP, request.seed.value_or(runSeed)};
    return prepared;
}

} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
#include "core/model/chat_template.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace kvatlas::model {

namespace {

using Json = nlohmann::json;

std::optional<Role> roleNamed(std::string_view name) {
    if (name == "developer") // OpenAI's newer name
        return Role::System;
    for (const Role role : {Role::System, Role::User, Role::Assistant, Role::Tool})
        if (nameOf(role) == name)
            return role;
    return std::nullopt;
}

auto refuse(std::size_t index, std::string_view what) {
    return makeError(ErrorKind::Usage, "message {} {}", index + 1, what);
}

Result<std::string> contentOf(const Json& content, std::size_t index) {
    if (content.is_null())
        return "";
    if (const auto* text = content.get_ptr<const std::string*>())
        return *text;
    if (!content.is_array())
        return refuse(index, "has a content that is neither text nor a list of text parts; write it as text");
    std::string out;
    for (const Json& part : content) {
        const auto type = part.is_object() ? part.find("type") : part.end();
        const auto text = part.is_object() ? part.find("text") : part.end();
        if (type == part.end() || *type != "text" || text == part.end() || !text->is_string())
            return refuse(index,
                          "has a content part that is not {\"type\": \"text\", \"text\": ...}; only text can be run");
        out += text->get_ref<const std::string&>();
    }
    return out;
}

Result<Message> messageOf(const Json& json, std::size_t index) {
    if (!json.is_object())
        return refuse(index, "is not an object with role and content");
    const auto role = json.find("role");
    if (role == json.end() || !role->is_string())
        return refuse(index, "has no role; name system, developer, user, assistant or tool");
    const auto known = roleNamed(role->get_ref<const std::string&>());
    if (!known)
        return refuse(index, "has an unknown role; name system, developer, user, assistant or tool");
    if (const auto calls = json.find("tool_calls"); calls != json.end() && !calls->empty())
        return refuse(index, "calls tools, which KVAtlas cannot lay out; remove tool_calls");
    const auto content = json.find("content");
    if (content == json.end())
        return refuse(index, "has no content; give a text, which may be empty");
    return contentOf(*content, index).map([&](std::string text) { return Message{*known, std::move(text)}; });
}

} // namespace

Result<std::vector<Message>> messagesFromJson(std::string_view text) {
    Json json;
    try {
        json = Json::parse(text);
    } catch (const Json::exception&) {
        return makeError(ErrorKind::Usage,
                         "the messages are not valid JSON; give an array of {{\"role\", \"content\"}}");
    }
    if (!json.is_array())
        return makeError(ErrorKind::Usage,
                         "the messages are not a JSON array; give an array of {{\"role\", \"content\"}}");
    std::vector<Message> out;
    out.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
        auto message = messageOf(json[i], i);
        if (!message)
            return tl::unexpected(message.error());
        out.push_back(std::move(*message));
    }
    return out;
}

} // namespace kvatlas::model

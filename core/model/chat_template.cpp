// SPDX-License-Identifier: Apache-2.0
#include "core/model/chat_template.h"

#include "core/model/chat_families.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvatlas::model {

namespace {

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The template with its string pieces joined ('a' + 'b' -> ab), \n as the character it stands for, and no blanks around
// filters: one spelling for the many in which the same template is written.
std::string normalised(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    const auto skipBlanks = [&](std::size_t at) {
        while (at < source.size() && (source[at] == ' ' || source[at] == '\n'))
            ++at;
        return at;
    };
    const auto isQuote = [&](std::size_t at) {
        return at < source.size() && (source[at] == '\'' || source[at] == '"');
    };
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source.substr(i).starts_with("\\n")) {
            out += '\n';
            ++i;
            continue;
        }
        const std::size_t next = isQuote(i) || source[i] == '|' ? skipBlanks(i + 1) : i;
        if (isQuote(i) && next < source.size() && source[next] == '+' && isQuote(skipBlanks(next + 1))) {
            i = skipBlanks(next + 1);
            continue;
        }
        if (source[i] == '|' && source.substr(next).starts_with("trim")) {
            out.erase(out.find_last_not_of(' ') + 1);
            out += '|';
            i = next - 1;
            continue;
        }
        out += source[i];
    }
    return out;
}

// Every family whose marks occur; a template with the marks of two is not understood. `source` is normalised.
ChatFamily familyOf(std::string_view source) {
    const std::array<std::pair<ChatFamily, bool>, 6> marks{{
        {ChatFamily::Chatml, contains(source, "<|im_start|>") && contains(source, "<|im_end|>")},
        {ChatFamily::Llama3, contains(source, "<|start_header_id|>") && contains(source, "<|eot_id|>")},
        {ChatFamily::Gemma, contains(source, "<start_of_turn>") && contains(source, "<end_of_turn>")},
        {ChatFamily::Llama2, contains(source, "[INST]") && contains(source, "<<SYS>>")},
        {ChatFamily::Mistral, contains(source, "[INST]") && !contains(source, "<<SYS>>")},
        {ChatFamily::Zephyr, contains(source, "<|user|>") && contains(source, "<|assistant|>")},
    }};
    ChatFamily family = ChatFamily::Unknown;
    std::size_t families = 0;
    for (const auto& [candidate, matches] : marks)
        if (matches) {
            family = candidate;
            ++families;
        }
    return families == 1 && contains(source, "messages") ? family : ChatFamily::Unknown;
}

bool hasTightMistralMarks(std::string_view source) {
    return contains(source, "'[INST]'") || contains(source, "\"[INST]\"");
}

// A family's relatives put something else between the same marks; only what is rendered here passes.
bool isWrittenAsRendered(ChatFamily family, std::string_view source) {
    // Phi 4, Llama 3.1 (a date in the system text), Phi 3, Mistral 7 and later.
    for (const std::string_view foreign : {"<|im_sep|>", "Cutting Knowledge Date", "<|end|>", "[SYSTEM_PROMPT]"})
        if (contains(source, foreign))
            return false;
    switch (family) {
    case ChatFamily::Chatml:
        return contains(source, "<|im_end|>\n") && contains(source, "<|im_start|>assistant\n");
    case ChatFamily::Llama3:
        return contains(source, "<|end_header_id|>\n\n");
    case ChatFamily::Gemma:
        return (contains(source, "'model'") || contains(source, "\"model\"")) && contains(source, "<end_of_turn>\n") &&
               !contains(source, "<end_of_turn><eos>");
    case ChatFamily::Llama2:
        return contains(source, "<<SYS>>\n") && contains(source, "\n<</SYS>>\n\n") && contains(source, "eos_token");
    case ChatFamily::Mistral:
        return contains(source, "'[INST] '") != hasTightMistralMarks(source) && contains(source, "eos_token") &&
               !contains(source, "eos_token + ' '");
    case ChatFamily::Zephyr:
        return contains(source, "<|user|>\n") && contains(source, "eos_token");
    case ChatFamily::Unknown:
    case ChatFamily::None:
        break;
    }
    return false;
}

// chatml templates spell the system text that they put in front as a literal: '<|im_start|>system\nTEXT<|im_end|>'.
std::string literalSystemText(std::string_view source) {
    constexpr std::string_view kBegin = "<|im_start|>system\n";
    for (std::size_t at = source.find(kBegin); at != std::string_view::npos; at = source.find(kBegin, at + 1)) {
        const std::string_view rest = source.substr(at + kBegin.size());
        const auto end = rest.find_first_of("'\"{}<");
        if (end != std::string_view::npos && end > 0 && rest.substr(end).starts_with("<|im_end|>"))
            return std::string(rest.substr(0, end));
    }
    return "";
}

} // namespace

std::string_view nameOf(Role role) {
    switch (role) {
    case Role::System:
        return "system";
    case Role::User:
        return "user";
    case Role::Assistant:
        return "assistant";
    case Role::Tool:
        return "tool";
    }
    return "";
}

std::string_view nameOf(ChatFamily family) {
    switch (family) {
    case ChatFamily::Unknown:
        return "unknown";
    case ChatFamily::None:
        return "none";
    case ChatFamily::Chatml:
        return "chatml";
    case ChatFamily::Llama2:
        return "llama 2";
    case ChatFamily::Llama3:
        return "llama 3";
    case ChatFamily::Gemma:
        return "gemma";
    case ChatFamily::Mistral:
        return "mistral";
    case ChatFamily::Zephyr:
        return "zephyr";
    }
    return "";
}

ChatTemplate ChatTemplate::recognise(std::string_view source, std::string_view eos) {
    ChatTemplate out;
    if (trimmedText(source).empty())
        return out;
    const std::string plain = normalised(source);
    out.m_family = familyOf(plain);
    if (!isWrittenAsRendered(out.m_family, plain))
        out.m_family = ChatFamily::Unknown;
    out.m_style.eos = eos;
    out.m_style.trims = contains(plain, "|trim") || contains(plain, ".strip()");
    out.m_style.spacedMarks = !hasTightMistralMarks(plain);
    out.m_refusesSystem =
        contains(plain, "System role not supported") || contains(plain, "Only user and assistant roles are supported");
    if (out.m_family == ChatFamily::Chatml) {
        out.m_style.defaultSystem = literalSystemText(plain);
        out.m_refusesTool = contains(plain, "tool"); // a template that knows tools lays their answers out by itself
        const bool asksForSystem = contains(plain, "!= 'system'") || contains(plain, "!= \"system\"");
        if (asksForSystem && out.m_style.defaultSystem.empty())
            out.m_family = ChatFamily::Unknown; // it puts a text in front that is not spelled out
    }
    return out;
}

std::string ChatTemplate::describe() const {
    switch (m_family) {
    case ChatFamily::Unknown:
        return "the model's chat template is not one that KVAtlas knows (chatml, llama 2, llama 3, gemma, mistral, "
               "zephyr); write "
               "the prompt as the model expects it and pass it with --raw";
    case ChatFamily::None:
        return "the model file has no chat template; pass the prompt as it is with --raw";
    default:
        return fmt::format("{}, recognised by its marks", nameOf(m_family));
    }
}

Result<void> ChatTemplate::checkOrder(std::span<const Message> messages) const {
    const bool strict =
        m_family == ChatFamily::Gemma || m_family == ChatFamily::Mistral || m_family == ChatFamily::Llama2;
    Role expected = Role::User;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Role role = messages[i].role;
        if (role == Role::Tool && m_refusesTool)
            return makeError(ErrorKind::Usage,
                             "message {} is a tool's answer, which KVAtlas cannot lay out for this model ({}); pass "
                             "the whole prompt "
                             "with --raw",
                             i + 1, nameOf(m_family));
        if (role == Role::System && m_refusesSystem)
            return makeError(ErrorKind::Usage,
                             "message {} is a system message, which this model's chat template does not allow; put "
                             "its text into the first user message",
                             i + 1);
        if (!strict)
            continue;
        if (role == Role::System && i == 0)
            continue;
        if (role != expected)
            return makeError(
                ErrorKind::Usage,
                "message {} is of the role {}, and this model ({}) needs user and assistant in turn, with a system "
                "message first at most; re-order the messages",
                i + 1, nameOf(role), nameOf(m_family));
        expected = role == Role::User ? Role::Assistant : Role::User;
    }
    if (strict && messages.size() == 1 && messages[0].role == Role::System)
        return makeError(ErrorKind::Usage,
                         "a system message alone has no place in this model's chat template ({}); add a user "
                         "message",
                         nameOf(m_family));
    return {};
}

Result<std::string> ChatTemplate::render(std::span<const Message> messages, bool addGenerationPrompt) const {
    if (!canRender())
        return makeError(ErrorKind::Usage, "{}", describe());
    if (auto ok = checkOrder(messages); !ok)
        return tl::unexpected(ok.error());
    return renderChat(m_family, m_style, messages, addGenerationPrompt);
}

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
#include "core/model/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvatlas::model {

namespace {

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    const auto begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Every family whose marks occur; a template with the marks of two is not understood.
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
    for (const auto& [candidate, matches] : marks)
        if (matches)
            family = family == ChatFamily::Unknown ? candidate : ChatFamily::None;
    if (family == ChatFamily::None || !contains(source, "messages"))
        return ChatFamily::Unknown;
    // Relatives that write something else between the same marks: Phi 4, Llama 3.1 (a date in the system text), Phi 3,
    // Mistral 7 and later.
    for (const std::string_view foreign : {"<|im_sep|>", "Cutting Knowledge Date", "<|end|>", "[SYSTEM_PROMPT]"})
        if (contains(source, foreign))
            return ChatFamily::Unknown;
    return family;
}

// chatml templates spell the system text that they put in front as a literal: '<|im_start|>system\nTEXT<|im_end|>'.
std::string literalSystemText(std::string_view source) {
    constexpr std::string_view kBegin = "<|im_start|>system";
    for (std::size_t at = source.find(kBegin); at != std::string_view::npos; at = source.find(kBegin, at + 1)) {
        std::string_view rest = source.substr(at + kBegin.size());
        if (rest.starts_with("\\n"))
            rest.remove_prefix(2);
        else if (rest.starts_with("\n"))
            rest.remove_prefix(1);
        else
            continue;
        const auto end = rest.find("<|im_end|>");
        const std::string_view text = rest.substr(0, end);
        if (end != std::string_view::npos && !text.empty() && text.find_first_of("'\"{}\\") == std::string_view::npos)
            return std::string(text);
    }
    return "";
}

std::string renderChatml(std::span<const Message> messages, std::string_view defaultSystem, bool addGenerationPrompt) {
    std::string out;
    const auto turn = [&out](std::string_view role, std::string_view content) {
        out.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
    };
    if (!messages.empty() && messages[0].role != Role::System && !defaultSystem.empty())
        turn("system", defaultSystem);
    for (const Message& message : messages)
        turn(nameOf(message.role), message.content);
    if (addGenerationPrompt)
        out += "<|im_start|>assistant\n";
    return out;
}

std::string renderLlama3(std::span<const Message> messages, bool addGenerationPrompt) {
    std::string out;
    const auto header = [&out](std::string_view role) {
        out.append("<|start_header_id|>").append(role).append("<|end_header_id|>\n\n");
    };
    for (const Message& message : messages) {
        header(nameOf(message.role));
        out.append(trimmed(message.content)).append("<|eot_id|>");
    }
    if (addGenerationPrompt)
        header("assistant");
    return out;
}

// Gemma has no system turn: its text goes in front of the first user turn (Gemma 3).
std::string renderGemma(std::span<const Message> messages, bool addGenerationPrompt) {
    std::string out;
    std::string_view system;
    for (const Message& message : messages) {
        if (message.role == Role::System) {
            system = message.content;
            continue;
        }
        out.append("<start_of_turn>").append(message.role == Role::Assistant ? "model" : "user").append("\n");
        if (!system.empty())
            out.append(std::exchange(system, {})).append("\n\n");
        out.append(trimmed(message.content)).append("<end_of_turn>\n");
    }
    if (addGenerationPrompt)
        out += "<start_of_turn>model\n";
    return out;
}

std::string renderMistral(std::span<const Message> messages, bool spaced, std::string_view eos) {
    std::string out;
    std::string_view system;
    for (const Message& message : messages) {
        if (message.role == Role::System) {
            system = message.content;
            continue;
        }
        if (message.role == Role::Assistant) {
            out.append(message.content).append(eos);
            continue;
        }
        out += spaced ? "[INST] " : "[INST]";
        if (!system.empty())
            out.append(std::exchange(system, {})).append("\n\n");
        out.append(message.content).append(spaced ? " [/INST]" : "[/INST]");
    }
    return out;
}

std::string renderLlama2(std::span<const Message> messages) {
    std::string out;
    std::string_view system;
    bool hasSystem = false;
    for (const Message& message : messages) {
        if (message.role == Role::System) {
            system = message.content;
            hasSystem = true;
            continue;
        }
        if (message.role == Role::Assistant) {
            out.append(" ").append(trimmed(message.content)).append(" </s>");
            continue;
        }
        out += out.empty() ? "[INST] " : "<s>[INST] ";
        std::string content;
        if (std::exchange(hasSystem, false))
            content.append("<<SYS>>\n").append(system).append("\n<</SYS>>\n\n");
        content += message.content;
        out.append(trimmed(content)).append(" [/INST]");
    }
    return out;
}

std::string renderZephyr(std::span<const Message> messages, std::string_view eos, bool addGenerationPrompt) {
    std::string out;
    for (const Message& message : messages)
        out.append("<|").append(nameOf(message.role)).append("|>\n").append(message.content).append(eos).append("\n");
    if (addGenerationPrompt)
        out += "<|assistant|>\n";
    return out;
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
    if (trimmed(source).empty())
        return out;
    out.m_family = familyOf(source);
    out.m_eos = eos;
    out.m_refusesSystem = contains(source, "System role not supported") ||
                          contains(source, "Only user and assistant roles are supported");
    if (out.m_family == ChatFamily::Chatml) {
        out.m_defaultSystem = literalSystemText(source);
        out.m_refusesTool = contains(source, "tool"); // a template that knows tools lays their answers out by itself
    }
    if (out.m_family == ChatFamily::Mistral) {
        const bool spaced = contains(source, "[INST] ");
        const bool tight = contains(source, "\"[INST]\"") || contains(source, "'[INST]'");
        out.m_spacedMarks = spaced;
        if (spaced == tight)
            out.m_family = ChatFamily::Unknown;
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
        return fmt::format("chat template {}, recognised by its marks", nameOf(m_family));
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
    switch (m_family) {
    case ChatFamily::Chatml:
        return renderChatml(messages, m_defaultSystem, addGenerationPrompt);
    case ChatFamily::Llama3:
        return renderLlama3(messages, addGenerationPrompt);
    case ChatFamily::Gemma:
        return renderGemma(messages, addGenerationPrompt);
    case ChatFamily::Mistral:
        return renderMistral(messages, m_spacedMarks, m_eos);
    case ChatFamily::Llama2:
        return renderLlama2(messages);
    case ChatFamily::Zephyr:
        return renderZephyr(messages, m_eos, addGenerationPrompt);
    case ChatFamily::Unknown:
    case ChatFamily::None:
        break;
    }
    return makeError(ErrorKind::Usage, "{}", describe());
}

} // namespace kvatlas::model

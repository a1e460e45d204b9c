// SPDX-License-Identifier: Apache-2.0
#include "core/model/chat_families.h"

#include "core/model/utf8.h"

#include <algorithm>
#include <utility>

namespace kvatlas::model {

namespace {

// What Python's str.isspace takes for white space, as Jinja's trim does.
bool isSpace(std::string_view character) {
    constexpr std::string_view kSpaces[] = {
        "\t",           "\n",           "\v",           "\f",           "\r",
        "\x1C",         "\x1D",         "\x1E",         "\x1F",         " ",
        "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
        "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
        "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
        "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80",
    };
    return std::ranges::find(kSpaces, character) != std::end(kSpaces);
}

std::string_view contentOf(const Message& message, const ChatStyle& style) {
    return style.trims ? trimmedText(message.content) : std::string_view(message.content);
}

std::string renderChatml(std::span<const Message> messages, const ChatStyle& style, bool addGenerationPrompt) {
    std::string out;
    const auto turn = [&out](std::string_view role, std::string_view content) {
        out.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
    };
    if (!messages.empty() && messages[0].role != Role::System && !style.defaultSystem.empty())
        turn("system", style.defaultSystem);
    for (const Message& message : messages)
        turn(nameOf(message.role), contentOf(message, style));
    if (addGenerationPrompt)
        out += "<|im_start|>assistant\n";
    return out;
}

std::string renderLlama3(std::span<const Message> messages, const ChatStyle& style, bool addGenerationPrompt) {
    std::string out;
    const auto header = [&out](std::string_view role) {
        out.append("<|start_header_id|>").append(role).append("<|end_header_id|>\n\n");
    };
    for (const Message& message : messages) {
        header(nameOf(message.role));
        out.append(contentOf(message, style)).append("<|eot_id|>");
    }
    if (addGenerationPrompt)
        header("assistant");
    return out;
}

// Gemma has no system turn: its text goes in front of the first user turn (Gemma 3).
std::string renderGemma(std::span<const Message> messages, const ChatStyle& style, bool addGenerationPrompt) {
    std::string out;
    std::string prefix;
    for (const Message& message : messages) {
        if (message.role == Role::System) {
            prefix = message.content + "\n\n";
            continue;
        }
        out.append("<start_of_turn>").append(message.role == Role::Assistant ? "model" : "user").append("\n");
        out += std::exchange(prefix, {});
        out.append(contentOf(message, style)).append("<end_of_turn>\n");
    }
    if (addGenerationPrompt)
        out += "<start_of_turn>model\n";
    return out;
}

std::string renderMistral(std::span<const Message> messages, const ChatStyle& style) {
    std::string out;
    std::string_view system;
    for (const Message& message : messages) {
        if (message.role == Role::System) {
            system = message.content;
            continue;
        }
        if (message.role == Role::Assistant) {
            out.append(contentOf(message, style)).append(style.eos);
            continue;
        }
        out += style.spacedMarks ? "[INST] " : "[INST]";
        if (!system.empty())
            out.append(std::exchange(system, {})).append("\n\n");
        out.append(contentOf(message, style)).append(style.spacedMarks ? " [/INST]" : "[/INST]");
    }
    return out;
}

std::string renderLlama2(std::span<const Message> messages, const ChatStyle& style) {
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
            out.append(" ").append(contentOf(message, style)).append(" ").append(style.eos);
            continue;
        }
        out += out.empty() ? "[INST] " : "<s>[INST] ";
        std::string content;
        if (std::exchange(hasSystem, false))
            content.append("<<SYS>>\n").append(system).append("\n<</SYS>>\n\n");
        content += message.content;
        out.append((style.trims ? trimmedText(content) : std::string_view(content))).append(" [/INST]");
    }
    return out;
}

std::string renderZephyr(std::span<const Message> messages, const ChatStyle& style, bool addGenerationPrompt) {
    std::string out;
    for (const Message& message : messages)
        out.append("<|")
            .append(nameOf(message.role))
            .append("|>\n")
            .append(contentOf(message, style))
            .append(style.eos)
            .append("\n");
    if (addGenerationPrompt)
        out += "<|assistant|>\n";
    return out;
}

} // namespace

std::string_view trimmedText(std::string_view text) {
    std::size_t begin = text.size();
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = firstUtf8Character(text.substr(at)).bytes;
        if (!isSpace(text.substr(at, bytes))) {
            begin = std::min(begin, at);
            end = at + bytes;
        }
        at += bytes;
    }
    return begin < end ? text.substr(begin, end - begin) : std::string_view{};
}

std::string renderChat(ChatFamily family, const ChatStyle& style, std::span<const Message> messages,
                       bool addGenerationPrompt) {
    switch (family) {
    case ChatFamily::Chatml:
        return renderChatml(messages, style, addGenerationPrompt);
    case ChatFamily::Llama3:
        return renderLlama3(messages, style, addGenerationPrompt);
    case ChatFamily::Gemma:
        return renderGemma(messages, style, addGenerationPrompt);
    case ChatFamily::Mistral:
        return renderMistral(messages, style);
    case ChatFamily::Llama2:
        return renderLlama2(messages, style);
    case ChatFamily::Zephyr:
        return renderZephyr(messages, style, addGenerationPrompt);
    case ChatFamily::Unknown:
    case ChatFamily::None:
        break;
    }
    return "";
}

} // namespace kvatlas::model

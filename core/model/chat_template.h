// SPDX-License-Identifier: Apache-2.0
// Chat templates: messages -> the text that the model was trained to see. The Jinja text in the file is not executed;
// it is recognised as one of the families below, or said to be unknown.
// Threads: plain values, any thread. Errors: Refused or Usage, one sentence.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::model {

enum class Role : std::uint8_t { System, User, Assistant, Tool };

std::string_view nameOf(Role role); // "system", "user", "assistant", "tool"

struct Message {
    Role role = Role::User;
    std::string content;
    friend bool operator==(const Message&, const Message&) = default;
};

// OpenAI's chat format: a JSON array of {"role": "system|developer|user|assistant|tool", "content": text or an array of
// {"type": "text", "text": ...}}. `developer` is read as system; parts are joined without a separator; a null content
// is an empty text. Anything else is a Usage error that says where.
Result<std::vector<Message>> messagesFromJson(std::string_view text);

enum class ChatFamily : std::uint8_t { Unknown, None, Chatml, Llama2, Llama3, Gemma, Mistral, Zephyr };

std::string_view nameOf(ChatFamily family);

// Where templates of one family differ.
struct ChatStyle {
    std::string eos;           // written after an answer: llama 2, mistral, zephyr
    std::string defaultSystem; // chatml: put in front where the messages begin with no system text
    bool trims = false;        // white space around a content is taken off
    bool spacedMarks = true;   // mistral: "[INST] x [/INST]", else "[INST]x[/INST]"
};

class ChatTemplate {
public:
    ChatTemplate() = default; // ChatFamily::None

    // `source`: tokenizer.chat_template, empty where the file has none. `eos`: the text of the end token, which some
    // families write after an answer. Never fails: see family().
    static ChatTemplate recognise(std::string_view source, std::string_view eos = "</s>");

    ChatFamily family() const { return m_family; }
    bool canRender() const { return m_family != ChatFamily::Unknown && m_family != ChatFamily::None; }
    // One sentence that names the family, or says what to do where there is none.
    std::string describe() const;
    // The system text that the template puts in front where the messages have none; empty: it puts none.
    std::string_view defaultSystem() const { return m_style.defaultSystem; }

    // BOS is never part of the text: Tokenizer::encodePrompt adds it where the model asks for one. Encode with
    // parseSpecial = true. Errors: Usage, where the family has no place for such messages, or there is no known
    // template (the sentence offers --raw).
    Result<std::string> render(std::span<const Message> messages, bool addGenerationPrompt) const;

private:
    Result<void> checkOrder(std::span<const Message> messages) const;

    ChatFamily m_family = ChatFamily::None;
    ChatStyle m_style;
    bool m_refusesSystem = false; // the template raises an exception for a system message
    bool m_refusesTool = true;    // there is no one way to lay out a tool's answer
};

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
// What each family of chat templates writes (chat_template.h recognises them). Pure functions, any thread, no errors:
// the order of the messages has been checked.
#pragma once

#include "core/model/chat_template.h"

namespace kvatlas::model {

// `text` without white space at both ends.
std::string_view trimmedText(std::string_view text);

std::string renderChat(ChatFamily family, const ChatStyle& style, std::span<const Message> messages,
                       bool addGenerationPrompt);

} // namespace kvatlas::model

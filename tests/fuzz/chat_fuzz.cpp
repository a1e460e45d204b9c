// SPDX-License-Identifier: Apache-2.0
// Any template and any messages. Input: the template, a zero byte, the messages as JSON.
#include "core/model/chat_template.h"
#include "tests/support/exercise_model.h"

using namespace kvatlas::model;
using kvatlas::testing::insist;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const auto cut = std::min(input.find('\0'), input.size());
    const auto chat = ChatTemplate::recognise(input.substr(0, cut), "</s>");
    insist(!chat.describe().empty(), "every template is described");
    const auto messages = messagesFromJson(cut < input.size() ? input.substr(cut + 1) : input);
    if (!messages) {
        insist(!messages.error().message.empty(), "a refusal is a sentence");
        return 0;
    }
    for (const bool prompt : {false, true}) {
        const auto text = chat.render(*messages, prompt);
        insist(chat.canRender() || !text, "an unknown template renders nothing");
        insist(text || !text.error().message.empty(), "a refusal is a sentence");
    }
    return 0;
}

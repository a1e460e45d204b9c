// SPDX-License-Identifier: Apache-2.0
#include "core/model/chat_template.h"
#include "tests/support/tiny_llama.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kvatlas;
using namespace kvatlas::model;
using Json = nlohmann::json;

namespace {

constexpr std::string_view kPlainChatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

TEST(ChatTemplate, writesWhatJinjaMakesOfThePublishedTemplates) {
    std::ifstream in(KVATLAS_SOURCE_DIR "/tests/unit/model/chat_template_cases.json");
    const Json cases = Json::parse(in);
    std::size_t rendered = 0, refused = 0;
    for (const Json& c : cases["templates"]) {
        const auto chat = ChatTemplate::recognise(c["template"].get<std::string>(), c["eos"].get<std::string>());
        EXPECT_EQ(Json(nameOf(chat.family())), c["family"]) << c["name"];
        for (const Json& r : c["renders"]) {
            const auto messages = messagesFromJson(r["messages"].dump());
            ASSERT_TRUE(messages) << messages.error().message;
            const auto text = chat.render(*messages, r["add_generation_prompt"]);
            if (r["text"].is_null()) {
                EXPECT_FALSE(text) << c["name"] << ' ' << r["messages"];
                ++refused;
                continue;
            }
            ASSERT_TRUE(text) << c["name"] << ' ' << r["messages"] << ' ' << text.error().message;
            EXPECT_EQ(*text, r["text"].get<std::string>()) << c["name"] << ' ' << r["messages"];
            ++rendered;
        }
    }
    EXPECT_GT(rendered, 100u);
    EXPECT_GT(refused, 10u);
}

TEST(ChatTemplate, saysThatAnUnknownTemplateIsUnknownAndOffersRaw) {
    const std::string_view sources[] = {
        "{{9|9|{",
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}",
        "{% for message in messages %}<|im_start|>{{ message.role }}<|im_sep|>{{ message.content }}<|im_end|>\n{% "
        "endfor %}"
        "<|im_start|>assistant\n",
        "{% for message in messages %}<|im_start|>{{ message.role }}\n[INST]<|im_end|>\n{% endfor %}",
        "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n{{ message['content'] | "
        "trim }}"
        "<end_of_turn><eos>\n{% endfor %}<start_of_turn>model\n",
        "{% for message in messages %}<|user|>\n{{ message.content }}<|end|>\n<|assistant|>\n{% endfor %}",
        "{% if messages[0]['role'] != 'system' %}{{ default_system }}{% endif %}{% for message in messages %}{{ "
        "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}{{ "
        "'<|im_start|>assistant\\n' }}",
    };
    const Message hello{Role::User, "Hello"};
    for (const std::string_view source : sources) {
        const auto chat = ChatTemplate::recognise(source);
        EXPECT_EQ(chat.family(), ChatFamily::Unknown) << source;
        const auto text = chat.render({&hello, 1}, true);
        ASSERT_FALSE(text) << source;
        EXPECT_EQ(text.error().kind, ErrorKind::Usage);
        EXPECT_NE(text.error().message.find("--raw"), std::string::npos) << text.error().message;
    }
    const auto none = ChatTemplate::recognise(" \n");
    EXPECT_EQ(none.family(), ChatFamily::None);
    EXPECT_FALSE(none.render({&hello, 1}, true));
    EXPECT_NE(none.describe().find("no chat template"), std::string::npos);
}

TEST(ChatTemplate, trimsWhatPythonTakesForWhiteSpace) {
    const auto chat = ChatTemplate::recognise(
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + "
        "'<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}");
    // '\x1f\u00a0\u2003 a\u3000b \u2028\n\u200b \u202f'.strip() in Python keeps the zero-width space.
    const Message message{Role::User, "\x1F\u00a0\u2003 a\u3000b \u2028\n\u200b \u202f"};
    EXPECT_EQ(chat.render({&message, 1}, false), "<|im_start|>user\na\u3000b \u2028\n\u200b<|im_end|>\n");
    const Message blank{Role::User, " \u3000\n"};
    EXPECT_EQ(chat.render({&blank, 1}, false), "<|im_start|>user\n<|im_end|>\n");
}

TEST(ChatTemplate, takesTheDefaultSystemTextFromTheTemplate) {
    EXPECT_EQ(ChatTemplate::recognise(kvatlas::testing::kSmollmChatTemplate).defaultSystem(),
              "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
    EXPECT_EQ(ChatTemplate::recognise(kPlainChatml).defaultSystem(), "");
}

TEST(ChatTemplate, knowsWhereAToolsAnswerHasItsPlace) {
    const std::vector<Message> messages = {{Role::User, "sum?"}, {Role::Tool, "3"}};
    EXPECT_EQ(ChatTemplate::recognise(kPlainChatml).render(messages, false),
              "<|im_start|>user\nsum?<|im_end|>\n<|im_start|>tool\n3<|im_end|>\n");
    const std::string withTools = std::string(kPlainChatml) + "{% if tools %}<tool_response>{% endif %}";
    const auto refused = ChatTemplate::recognise(withTools).render(messages, false);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("message 2"), std::string::npos);
}

TEST(Messages, readsEveryFormOfContentAndRole) {
    const auto messages = messagesFromJson(R"([
        {"role": "system", "content": "a"}, {"role": "developer", "content": "b"},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}], "name": "x"},
        {"role": "assistant", "content": null}, {"role": "tool", "content": "e\u0000é"}])");
    ASSERT_TRUE(messages) << messages.error().message;
    const std::vector<Message> expected = {{Role::System, "a"},
                                           {Role::System, "b"},
                                           {Role::User, "cd"},
                                           {Role::Assistant, ""},
                                           {Role::Tool, std::string("e\0é", 4)}};
    EXPECT_EQ(*messages, expected);
}

TEST(Messages, refusesWhatItCannotRunAndSaysWhere) {
    const auto sentence = [](std::string_view json) {
        const auto messages = messagesFromJson(json);
        EXPECT_FALSE(messages) << json;
        EXPECT_EQ(messages ? ErrorKind::Failed : messages.error().kind, ErrorKind::Usage);
        return messages ? "" : messages.error().message;
    };
    const auto says = [&](std::string_view json, std::string_view part) {
        EXPECT_NE(sentence(json).find(part), std::string::npos) << json << " -> " << sentence(json);
    };
    says("", "not valid JSON");
    says("[", "not valid JSON");
    says("{}", "not a JSON array");
    says("[1]", "message 1");
    says(R"([{"role":"user","content":"a"},{"content":"b"}])", "message 2 has no role");
    says(R"([{"role":"wizard","content":"b"}])", "unknown role");
    says(R"([{"role":"user"}])", "has no content");
    says(R"([{"role":"user","content":7}])", "neither text nor");
    says(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])", "only text");
    says(R"([{"role":"user","content":[{"type":"text","text":1}]}])", "only text");
    says(R"([{"role":"assistant","content":null,"tool_calls":[{}]}])", "tool_calls");
    says("[{\"role\":\"user\",\"content\":\"\xFF\"}]", "not valid JSON");
    says(std::string(200'000, '['), "not valid JSON");
    says(std::string(200'000, '[') + std::string(200'000, ']'), "message 1");
}

} // namespace

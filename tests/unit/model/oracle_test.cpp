// SPDX-License-Identifier: Apache-2.0
// The default model against the facts that an independent implementation found in it (tests/oracle).
#include "core/model/model.h"
#include "tests/support/default_model.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kvatlas;
using namespace kvatlas::model;
using Json = nlohmann::json;

namespace {

Json oracle(const std::string& name) {
    std::ifstream in(std::string(KVATLAS_SOURCE_DIR "/tests/oracle/") + name);
    return Json::parse(in);
}

// Opened once; nullptr where the file is missing or refused.
std::shared_ptr<const Model> defaultModel() {
    static const auto model = [] {
        auto opened = Model::open(kvatlas::testing::defaultModelPath());
        EXPECT_TRUE(opened) << opened.error().message;
        return opened.value_or(nullptr);
    }();
    return model;
}

std::vector<Message> messagesOf(const Json& json) {
    auto messages = messagesFromJson(json.dump());
    EXPECT_TRUE(messages) << messages.error().message;
    return messages.value_or(std::vector<Message>{});
}

TEST(DefaultModel, everyMetadataValueIsTheOneThatTheReferenceReads) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const auto& file = defaultModel()->file();
    const Json facts = oracle("model.json");
    EXPECT_EQ(file.version(), facts["metadata"]["GGUF.version"]);
    EXPECT_EQ(file.tensors().size(), facts["metadata"]["GGUF.tensor_count"]);
    EXPECT_EQ(file.entries().size(), facts["metadata"]["GGUF.kv_count"]);
    EXPECT_EQ(file.alignment(), facts["alignment"]);
    EXPECT_EQ(file.dataOffset(), facts["data_offset"]);
    std::size_t compared = 0;
    for (const auto& [key, expected] : facts["metadata"].items()) {
        if (key.starts_with("GGUF."))
            continue;
        const GgufEntry* entry = file.find(key);
        ASSERT_TRUE(entry) << key;
        ++compared;
        if (const auto* array = std::get_if<GgufArray>(&entry->value)) {
            EXPECT_EQ(array->count, expected.is_array() ? Json(expected.size()) : expected["count"]) << key;
            if (expected.is_array()) {
                EXPECT_EQ(Json(*file.texts(key)), expected) << key;
            }
            continue;
        }
        const Json value = std::visit(
            [](const auto& v) {
                if constexpr (std::is_same_v<std::decay_t<decltype(v)>, GgufArray>)
                    return Json();
                else
                    return Json(v);
            },
            entry->value);
        EXPECT_EQ(value, expected) << key;
    }
    EXPECT_EQ(compared, file.entries().size());
}

TEST(DefaultModel, everyTensorHasTheShapeTypeSizeAndPlaceThatTheReferenceReads) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const auto& file = defaultModel()->file();
    const Json facts = oracle("model.json")["tensors"];
    ASSERT_EQ(file.tensors().size(), facts["list"].size());
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const GgufTensor& tensor = file.tensors()[i];
        const std::vector<std::uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dimensions);
        const Json found = {tensor.name, dims, tensor.type->name, tensor.bytes, tensor.fileOffset};
        EXPECT_EQ(found, facts["list"][i]);
        EXPECT_EQ(tensor.data.data(), file.bytes().data() + tensor.fileOffset);
    }
    EXPECT_EQ(defaultModel()->parameters(), facts["parameters"]);
}

TEST(DefaultModel, hasTheConfigurationAndIdentityOfSmolLM2) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const Json facts = oracle("model.json");
    const ModelConfig& c = defaultModel()->config();
    EXPECT_EQ(c.architecture, "llama");
    EXPECT_EQ(c.layers, 30u);
    EXPECT_EQ(c.embedding, 576u);
    EXPECT_EQ(c.feedForward, 1536u);
    EXPECT_EQ(c.queryHeads, 9u);
    EXPECT_EQ(c.kvHeads, 3u);
    EXPECT_EQ(c.headDim, 64u);
    EXPECT_EQ(c.ropeDimensions, 64u);
    EXPECT_EQ(c.contextTokens, 8192u);
    EXPECT_EQ(c.vocabulary, 49152u);
    EXPECT_EQ(c.ropeFreqBase, 100000.0);
    EXPECT_EQ(c.rmsEpsilon, facts["metadata"]["llama.attention.layer_norm_rms_epsilon"]);
    EXPECT_EQ(c.kvValuesPerToken(), facts["kv_cache_values_per_token"]);
    EXPECT_TRUE(defaultModel()->outputIsTied());
    EXPECT_TRUE(defaultModel()->warnings().empty());
    EXPECT_EQ(defaultModel()->fileBytes(), facts["bytes"]);
    EXPECT_EQ(defaultModel()->sha256(), facts["sha256"].get<std::string>());
    EXPECT_EQ(defaultModel()->sha256(), facts["sha256"].get<std::string>()) << "the remembered one";
}

TEST(DefaultModel, tokenizerHasTheRulesThatTheReferenceFound) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const Tokenizer& tokenizer = defaultModel()->tokenizer();
    const Json facts = oracle("model.json")["tokenizer"];
    EXPECT_EQ(Json(nameOf(tokenizer.preTokenizer())), facts["pre"]);
    EXPECT_EQ(tokenizer.vocabulary(), facts["tokens"]);
    EXPECT_EQ(tokenizer.bos(), facts["bos"].get<TokenId>());
    EXPECT_EQ(tokenizer.eos(), facts["eos"].get<TokenId>());
    EXPECT_EQ(tokenizer.addBos(), facts["add_bos"]);
    std::size_t control = 0;
    for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary()); ++id)
        control += tokenizer.kindOf(id) == TokenKind::Control;
    EXPECT_EQ(control, facts["control_tokens"].size());
    for (const auto& [text, id] : facts["control_tokens"].items())
        EXPECT_EQ(tokenizer.piece(id.get<TokenId>()), text);
    for (int byte = 0; byte < 256; ++byte) {
        const auto& silent = facts["bytes_without_a_token"];
        const bool has = std::ranges::find(silent, Json(fmt::format("0x{:02x}", byte))) == silent.end();
        const std::string text(1, static_cast<char>(byte));
        EXPECT_EQ(tokenizer.encode(text, false).size(), has ? 1u : 0u) << byte;
    }
}

TEST(DefaultModel, encodesEveryOracleTextToTheSameIds) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const Tokenizer& tokenizer = defaultModel()->tokenizer();
    const Json cases = oracle("tokenizer_cases.json")["cases"];
    ASSERT_EQ(cases.size(), 224u);
    for (const Json& c : cases) {
        const auto text = c["text"].get<std::string>();
        const auto ids = tokenizer.encode(text, c["parse_special"]);
        EXPECT_EQ(Json(ids), c["ids"]) << Json(text).dump() << " parse_special " << c["parse_special"];
        std::string back;
        for (const TokenId id : ids)
            back += tokenizer.piece(id);
        EXPECT_EQ(back == text, !c.value("lossy", false)) << Json(text).dump();
    }
}

TEST(DefaultModel, rendersEveryOracleChatToTheSameTextAndIds) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const Json cases = oracle("tokenizer_cases.json")["chat_template_cases"];
    ASSERT_EQ(cases.size(), 8u);
    EXPECT_EQ(defaultModel()->chatTemplate().family(), ChatFamily::Chatml);
    for (const Json& c : cases) {
        const auto text = defaultModel()->chatTemplate().render(messagesOf(c["messages"]), c["add_generation_prompt"]);
        ASSERT_TRUE(text) << text.error().message;
        EXPECT_EQ(*text, c["text"].get<std::string>());
        EXPECT_EQ(Json(defaultModel()->tokenizer().encodePrompt(*text, true)), c["ids"]);
    }
}

TEST(DefaultModel, preparesEveryGreedyPromptAndDecodesItsAnswer) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const Json cases = oracle("greedy_cases.json")["cases"];
    ASSERT_EQ(cases.size(), 4u);
    for (const Json& c : cases) {
        const auto text = defaultModel()->chatTemplate().render(messagesOf(c["messages"]), true);
        ASSERT_TRUE(text) << text.error().message;
        EXPECT_EQ(*text, c["prompt"].get<std::string>());
        EXPECT_EQ(Json(defaultModel()->tokenizer().encodePrompt(*text, true)), c["prompt_ids"]);
        StreamingDecoder decoder;
        std::string answer;
        for (const auto& id : c["greedy_ids"])
            answer += decoder.push(defaultModel()->tokenizer().piece(id.get<TokenId>()));
        answer += decoder.finish();
        EXPECT_EQ(answer, c["greedy_text"].get<std::string>());
    }
}

TEST(DefaultModel, essayHas6897TokensAndComesBackWhole) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    std::ifstream in(KVATLAS_SOURCE_DIR "/tests/oracle/essay.txt", std::ios::binary);
    const std::string essay{std::istreambuf_iterator<char>(in), {}};
    const auto ids = defaultModel()->tokenizer().encode(essay, false);
    EXPECT_EQ(ids.size(), 6897u);
    std::string back;
    for (const TokenId id : ids)
        back += defaultModel()->tokenizer().piece(id);
    EXPECT_EQ(back, essay);
}

} // namespace

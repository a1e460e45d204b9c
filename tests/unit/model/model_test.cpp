// SPDX-License-Identifier: Apache-2.0
// Files that are readable GGUF and still no model to run, and what is said about them.
#include "core/model/model.h"
#include "tests/support/tiny_llama.h"

#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;
using kernels::WeightFormat;

namespace {

// The sentence with which a file is refused; fails where it is not.
std::string sentenceFor(const Bytes& bytes) {
    const auto model = Model::fromBytes(bytes, "made.gguf");
    EXPECT_FALSE(model) << "accepted";
    if (model)
        return "";
    EXPECT_EQ(model.error().kind, ErrorKind::Refused);
    return model.error().message;
}
void expectRefused(const Bytes& bytes, std::string_view part) {
    const std::string sentence = sentenceFor(bytes);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

void expectTokenizerRefused(const Bytes& bytes, std::string_view part) {
    const auto file = GgufFile::fromBytes(bytes, "made.gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto tokenizer = Tokenizer::fromGguf(*file);
    ASSERT_FALSE(tokenizer) << "accepted";
    EXPECT_EQ(tokenizer.error().kind, ErrorKind::Refused);
    EXPECT_NE(tokenizer.error().message.find(part), std::string::npos) << tokenizer.error().message;
}

// A tiny llama whose keys are written by `configure`, with the tensors of `shape`.
Bytes tinyWith(const std::function<void(GgufWriter&)>& configure, const TinyLlama& shape = {}) {
    GgufWriter w;
    configure(w);
    writeTinyTokenizer(w, shape);
    writeTinyTensors(w, shape, 1);
    return w.file();
}
// A tiny llama with more keys or tensors than usual.
Bytes tinyAnd(const std::function<void(GgufWriter&)>& add, const TinyLlama& shape = {}) {
    GgufWriter w = tinyLlamaWriter(1, shape);
    add(w);
    return w.file();
}
struct Keys {
    std::string architecture = "llama";
    std::uint32_t layers = 2, embedding = 64, feedForward = 128, context = 256, heads = 4, kvHeads = 2, headDim = 16;
};
void writeKeys(GgufWriter& w, const Keys& k) {
    w.string("general.architecture", k.architecture);
    w.u64("llama.block_count", k.layers); // u64 here, u32 elsewhere: both are met in practice
    w.u64("llama.context_length", k.context);
    w.u64("llama.embedding_length", k.embedding);
    w.u64("llama.feed_forward_length", k.feedForward);
    w.u64("llama.attention.head_count", k.heads);
    w.u64("llama.attention.head_count_kv", k.kvHeads);
    w.u64("llama.attention.key_length", k.headDim);
    w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
}
Bytes tinyWithKeys(const std::function<void(Keys&)>& change) {
    Keys keys;
    change(keys);
    return tinyWith([&](GgufWriter& w) { writeKeys(w, keys); });
}

TEST(Model, acceptsCountsAsU64AndTakesWhatIsMissingFromTheRules) {
    const auto model = Model::fromBytes(tinyWithKeys([](Keys&) {}), "folder/made.gguf");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->config().name, "made");
    EXPECT_EQ((*model)->config().ropeDimensions, 16u);
    EXPECT_EQ((*model)->config().ropeFreqBase, 10'000.0);
}

// paiml/aprender#2535
TEST(Model, namesAnArchitectureThatItDoesNotRun) {
    expectRefused(tinyWithKeys([](Keys& k) { k.architecture = "qwen3moe"; }),
                  "architecture 'qwen3moe' is not supported; KVAtlas runs: llama");
}

// ServeurpersoCom/acestep.cpp#98
TEST(Model, holdsTheCountsOfTheFileAgainstTheTensorsInIt) {
    expectRefused(tinyWithKeys([](Keys& k) { k.layers = 33; }), "has no tensor 'blk.2.attn_norm.weight'");
    expectRefused(tinyWithKeys([](Keys& k) { k.layers = 1; }), "has the tensor 'blk.1.");
    expectRefused(tinyWithKeys([](Keys& k) { k.layers = 0; }), "'llama.block_count' is 0");
    expectRefused(tinyWithKeys([](Keys& k) { k.layers = 0xFFFFFFFF; }), "'llama.block_count' is 4294967295");
    expectRefused(tinyWithKeys([](Keys& k) { k.embedding = 32; }), "'token_embd.weight' has the shape 64 x 301");
    expectRefused(tinyWithKeys([](Keys& k) { k.feedForward = 64; }), "'blk.0.ffn_gate.weight' has the shape 64 x 128");
    expectRefused(tinyWithKeys([](Keys& k) { k.heads = 8; }), "'blk.0.attn_q.weight' has the shape");
    expectRefused(tinyWithKeys([](Keys& k) { k.heads = 0; }), "'llama.attention.head_count' is 0");
    expectRefused(tinyWithKeys([](Keys& k) { k.kvHeads = 3; }), "4 query heads for 3 KV heads");
    expectRefused(tinyWithKeys([](Keys& k) { k.headDim = 15; }), "heads of 15 channels");
    expectRefused(tinyWithKeys([](Keys& k) { k.headDim = 1 << 20; }), "'llama.attention.key_length' is 1048576");
    expectRefused(tinyWithKeys([](Keys& k) { k.context = 0; }), "'llama.context_length' is 0");
    expectRefused(tinyWithKeys([](Keys& k) { k.context = 0x80000000; }), "'llama.context_length'");
}

TEST(Model, refusesMathematicsThatItDoesNotHave) {
    const auto and_ = [](const std::function<void(GgufWriter&)>& add) { return tinyAnd(add); };
    expectRefused(and_([](GgufWriter& w) { w.string("llama.rope.scaling.type", "yarn"); }), "RoPE scaling 'yarn'");
    expectRefused(and_([](GgufWriter& w) { w.f32("llama.rope.scaling.factor", 8.0f); }), "RoPE factor 8");
    expectRefused(and_([](GgufWriter& w) { w.u32("llama.expert_count", 8); }), "llama.expert_count = 8");
    expectRefused(and_([](GgufWriter& w) { w.u32("llama.attention.sliding_window", 4096); }), "sliding_window = 4096");
    expectRefused(and_([](GgufWriter& w) { w.f32("llama.logit_scale", 0.5f); }), "'llama.logit_scale'");
    expectRefused(and_([](GgufWriter& w) { w.tensor("blk.0.attn_q.bias", {64}, 0, Bytes(256)); }),
                  "'blk.0.attn_q.bias'");
    for (const auto& harmless : std::vector<std::function<void(GgufWriter&)>>{
             [](GgufWriter& w) { w.string("llama.rope.scaling.type", "none"); },
             [](GgufWriter& w) { w.f32("llama.rope.scaling.factor", 1.0f); },
             [](GgufWriter& w) { w.u32("llama.expert_count", 0); },
         })
        EXPECT_TRUE(Model::fromBytes(tinyAnd(harmless), "made.gguf"));
}

TEST(Model, readsTheRopeFactorsOfLlama31) {
    const auto with = [](const std::vector<float>& factors, std::uint32_t type = 0) {
        return tinyAnd([&](GgufWriter& w) {
            const auto bytes = std::as_bytes(std::span(factors));
            w.tensor("rope_freqs.weight", {factors.size()}, type, bytes.first(bytes.size() / (type == 0 ? 1 : 2)));
        });
    };
    const std::vector<float> factors = {1, 1, 1, 1.5f, 3, 8, 8, 32};
    const auto model = Model::fromBytes(with(factors), "made.gguf");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_TRUE(std::ranges::equal((*model)->ropeFactors(), factors));
    EXPECT_TRUE((*Model::fromBytes(tinyAnd([](GgufWriter&) {}), "made.gguf"))->ropeFactors().empty());

    expectRefused(with({1, 1, 1, 1}), "'rope_freqs.weight' has the shape 4");
    expectRefused(with(factors, 1), "'rope_freqs.weight' is stored as F16");
    for (const float wrong : {0.0f, -8.0f, 0.5f, 1e30f, INFINITY, NAN})
        expectRefused(with({1, 1, 1, 1, 1, 1, 1, wrong}), "holds the RoPE factor");
}

TEST(Model, readsHeadCountsPerLayerWhenTheyAreEqual) {
    const auto withHeads = [](const std::vector<std::int32_t>& kvHeads) {
        return tinyWith([&](GgufWriter& w) {
            w.string("general.architecture", "llama");
            w.u32("llama.block_count", 2);
            w.u32("llama.context_length", 256);
            w.u32("llama.embedding_length", 64);
            w.u32("llama.feed_forward_length", 128);
            w.u32("llama.attention.head_count", 4);
            w.array("llama.attention.head_count_kv", GgufType::I32, kvHeads);
            w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
        });
    };
    EXPECT_TRUE(Model::fromBytes(withHeads({2, 2}), "made.gguf"));
    expectRefused(withHeads({2, 4}), "differs from layer to layer (2 and 4)");
    expectRefused(withHeads({2}), "has 1 values for 2 layers");
    expectRefused(withHeads({}), "has 0 values for 2 layers");
    expectRefused(withHeads({-1, -1}), "is 0, and 1 to");
}

TEST(Model, refusesATypeItCannotComputeWithOnlyWhereItIsNeeded) {
    GgufWriter w;
    writeTinyConfig(w, {});
    writeTinyTokenizer(w);
    w.tensor("token_embd.weight", {64, kTinyVocabulary}, 20, Bytes(kTinyVocabulary * 2 * 18));
    expectRefused(w.file(), "'token_embd.weight' is stored as IQ4_NL");
    const auto model = Model::fromBytes(
        tinyAnd([](GgufWriter& w2) { w2.tensor("blk.0.attn_rot_embd.weight", {8}, 28, Bytes(64)); }), "made.gguf");
    EXPECT_TRUE(model) << model.error().message;
}

TEST(Model, holdsTheVocabularyAgainstTheEmbedding) {
    GgufWriter w;
    writeTinyConfig(w, {});
    writeTinyTokenizer(w);
    TestRandom random(1);
    TinyLlama shape;
    writeTinyTensors(w, shape, 1);
    w.u32("llama.vocab_size", 300);
    expectRefused(w.file(), "declares 300 tokens");

    GgufWriter fewer;
    writeTinyConfig(fewer, {});
    fewer.string("tokenizer.ggml.model", "gpt2");
    fewer.strings("tokenizer.ggml.tokens", {"a", "b"});
    fewer.strings("tokenizer.ggml.merges", {});
    writeTinyTensors(fewer, shape, 1);
    expectRefused(fewer.file(), "has 2 tokens, and 'token_embd.weight' has 301 rows");
}

// llama.cpp#26690 and the neighbours of that mistake.
TEST(Tokenizer, checksTypeAndLengthOfEveryTokenizerArray) {
    const auto vocabulary = [](const std::function<void(GgufWriter&)>& write) {
        GgufWriter w;
        write(w);
        return w.file();
    };
    const auto basis = [](GgufWriter& w) {
        w.string("tokenizer.ggml.model", "gpt2");
        w.strings("tokenizer.ggml.tokens", {"a", "b"});
        w.strings("tokenizer.ggml.merges", {});
    };
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               basis(w);
                               w.array("tokenizer.ggml.scores", GgufType::U8, std::vector<std::uint8_t>{1, 2});
                           }),
                           "'tokenizer.ggml.scores' is an array of u8");
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               basis(w);
                               w.array("tokenizer.ggml.scores", GgufType::F32, std::vector<float>{1});
                           }),
                           "'tokenizer.ggml.scores' has 1 values for 2 tokens");
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               basis(w);
                               w.array("tokenizer.ggml.token_type", GgufType::F32, std::vector<float>{1, 1});
                           }),
                           "'tokenizer.ggml.token_type' is an array of f32");
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               basis(w);
                               w.array("tokenizer.ggml.token_type", GgufType::I32, std::vector<std::int32_t>{1});
                           }),
                           "'tokenizer.ggml.token_type' has 1 values");
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               basis(w);
                               w.array("tokenizer.ggml.token_type", GgufType::I32, std::vector<std::int32_t>{1, 9});
                           }),
                           "token 1 has the type 9");
    expectTokenizerRefused(vocabulary([](GgufWriter& w) {
                               w.string("tokenizer.ggml.model", "gpt2");
                               w.array("tokenizer.ggml.tokens", GgufType::U32, std::vector<std::uint32_t>{1});
                               w.strings("tokenizer.ggml.merges", {});
                           }),
                           "'tokenizer.ggml.tokens' is an array of u32");
    expectTokenizerRefused(vocabulary([](GgufWriter& w) {
                               w.string("tokenizer.ggml.model", "gpt2");
                               w.strings("tokenizer.ggml.tokens", {"a"});
                               w.strings("tokenizer.ggml.merges", {"nospace"});
                           }),
                           "merge 0 is 'nospace'");
    expectTokenizerRefused(vocabulary([](GgufWriter& w) {
                               w.string("tokenizer.ggml.model", "gpt2");
                               w.strings("tokenizer.ggml.tokens", {"a"});
                           }),
                           "'tokenizer.ggml.merges'");
    expectTokenizerRefused(vocabulary([](GgufWriter& w) { w.string("tokenizer.ggml.model", "llama"); }),
                           "its tokenizer 'llama' is not supported");
    expectTokenizerRefused(vocabulary([&](GgufWriter& w) {
                               w.string("tokenizer.ggml.model", "gpt2");
                               w.strings("tokenizer.ggml.tokens", {std::string(10'000, 'x')});
                               w.array("tokenizer.ggml.token_type", GgufType::I32, std::vector<std::int32_t>{3});
                               w.strings("tokenizer.ggml.merges", {});
                           }),
                           "special token of 10000 bytes");
}

TEST(Model, warnsOfTokenIdsThatAreNone) {
    const auto model =
        Model::fromBytes(tinyAnd([](GgufWriter& w) { w.u32("tokenizer.ggml.eot_token_id", 0xFFFFFFFF); }), "made.gguf");
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ((*model)->warnings().size(), 1u);
    EXPECT_NE((*model)->warnings()[0].find("'tokenizer.ggml.eot_token_id' is 4294967295"), std::string::npos);
}

TEST(Model, tellsPartsOfModelsFromModels) {
    const auto keys = [](const std::function<void(GgufWriter&)>& write) {
        GgufWriter w;
        write(w);
        return w.file();
    };
    expectRefused(keys([](GgufWriter& w) { w.string("general.architecture", "clip"); }), "mmproj");
    expectRefused(keys([](GgufWriter& w) {
                      w.string("general.architecture", "llama");
                      w.string("general.type", "adapter");
                  }),
                  "LoRA adapter");
    expectRefused(keys([](GgufWriter& w) {
                      w.string("general.architecture", "llama");
                      writeTinyTokenizer(w);
                  }),
                  "vocabulary and no weights");
    expectRefused(keys([](GgufWriter&) {}), "has no key 'general.architecture'");
    expectRefused(keys([](GgufWriter& w) { w.u32("general.architecture", 1); }),
                  "'general.architecture' is of type u32");
}

// sglang#28209
TEST(Model, namesTheMissingPartsOfASplitModel) {
    const auto folder = std::filesystem::path(::testing::TempDir()) / ("kvatlas_split_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    GgufWriter w;
    w.string("general.architecture", "llama");
    w.key("split.count", GgufType::U16);
    w.keys().fixed(std::uint16_t{3});
    w.key("split.no", GgufType::U16);
    w.keys().fixed(std::uint16_t{0});
    writeFile(folder / "Base-00001-of-00003.gguf", w.file());
    writeFile(folder / "Base-00003-of-00003.gguf", w.file());
    const auto model = Model::open(folder / "Base-00001-of-00003.gguf");
    std::filesystem::remove_all(folder);
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().message.find("part 1 of 3"), std::string::npos) << model.error().message;
    EXPECT_NE(model.error().message.find("missing beside it: Base-00002-of-00003.gguf;"), std::string::npos)
        << model.error().message;
    expectRefused(w.file(), "part 1 of 3 of a split model");
}

TEST(Model, warnsWhereNoChatTemplateIsKnown) {
    GgufWriter w;
    writeTinyConfig(w, {});
    w.string("tokenizer.ggml.model", "gpt2");
    w.string("tokenizer.ggml.pre", "gpt-2");
    std::vector<std::string> tokens;
    for (std::uint32_t i = 0; i < kTinyVocabulary; ++i)
        tokens.push_back(std::to_string(i));
    w.strings("tokenizer.ggml.tokens", tokens);
    w.strings("tokenizer.ggml.merges", {});
    w.u32("tokenizer.ggml.eos_token_id", 0);
    w.string("tokenizer.chat_template", "{{9|9|{");
    writeTinyTensors(w, {}, 1);
    const auto model = Model::fromBytes(w.file(), "made.gguf");
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ((*model)->warnings().size(), 1u);
    EXPECT_NE((*model)->warnings()[0].find("--raw"), std::string::npos);
}

TEST(Model, hashesTheWholeFile) {
    // What sha256sum says of the same bytes; it also holds the tiny model to the same bytes everywhere.
    const auto model = Model::fromBytes(tinyLlama(1), "made.gguf");
    ASSERT_TRUE(model) << model.error().message;
    const auto sha256 = (*model)->sha256();
    ASSERT_TRUE(sha256) << sha256.error().message;
    EXPECT_EQ(*sha256, "9409335c9767c9d06519834757eb0162a791d5057990f5d4047002fe0b8f992f");
}

TEST(Model, saysSoWhenItsFileShrinksBeforeItIsHashed) {
    const auto path =
        std::filesystem::path(::testing::TempDir()) / ("kvatlas_shrink_" + std::to_string(::getpid()) + ".gguf");
    writeTinyLlama(path, 1);
    const auto model = Model::open(path);
    ASSERT_TRUE(model) << model.error().message;
    std::filesystem::resize_file(path, 1000);
    const auto sha256 = (*model)->sha256();
    std::filesystem::remove(path);
    ASSERT_FALSE(sha256);
    EXPECT_NE(sha256.error().message.find("shorter"), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
#include "core/model/byte_pairs.h"
#include "core/model/model.h"
#include "core/model/pre_tokenizer.h"
#include "core/model/utf8.h"
#include "tests/support/tiny_llama.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;
using Json = nlohmann::json;

namespace {

Tokenizer tinyTokenizer(const TinyLlama& shape = {}) {
    GgufWriter w;
    writeTinyTokenizer(w, shape);
    const auto file = GgufFile::fromBytes(w.file(), "tiny.gguf");
    EXPECT_TRUE(file) << file.error().message;
    auto tokenizer = Tokenizer::fromGguf(*file);
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    return std::move(*tokenizer);
}

std::string joined(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::string out;
    for (const TokenId id : ids)
        out += tokenizer.piece(id);
    return out;
}

// Byte pair encoding by its definition: join the pair of the lowest rank everywhere, first come first, and begin again.
std::vector<std::string> slowMerge(std::string_view piece,
                                   const std::vector<std::pair<std::string, std::string>>& merges) {
    std::vector<std::string> parts;
    for (const char c : piece)
        parts.emplace_back(1, c);
    for (;;) {
        std::size_t bestRank = merges.size(), bestAt = 0;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
            for (std::size_t rank = 0; rank < bestRank; ++rank)
                if (merges[rank].first == parts[i] && merges[rank].second == parts[i + 1]) {
                    bestRank = rank;
                    bestAt = i;
                }
        if (bestRank == merges.size())
            return parts;
        parts[bestAt] += parts[bestAt + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(bestAt) + 1);
    }
}

TEST(BytePairs, mergesAsTheSlowDefinitionDoesInShortAndLongPieces) {
    TestRandom random(3);
    for (int round = 0; round < 300; ++round) {
        BytePairs pairs;
        std::vector<std::pair<std::string, std::string>> merges;
        std::vector<std::string> known = {"a", "b", "c"};
        for (std::uint64_t n = random.below(14); n > 0; --n) {
            const std::pair merge{known[random.below(known.size())], known[random.below(known.size())]};
            if (std::ranges::find(merges, merge) != merges.end())
                continue;
            merges.push_back(merge);
            known.push_back(merge.first + merge.second);
            pairs.addMerge(merge.first, merge.second);
        }
        std::string piece;
        for (std::uint64_t n = 1 + random.below(120); n > 0; --n)
            piece += static_cast<char>('a' + random.below(3));
        std::vector<BytePairs::Symbol> symbols;
        BytePairs::Scratch scratch;
        pairs.merge(piece, scratch, symbols);
        std::vector<std::string> found;
        for (const auto symbol : symbols)
            found.emplace_back(pairs.textOf(symbol));
        ASSERT_EQ(found, slowMerge(piece, merges)) << piece;
    }
}

TEST(Splitter, cutsAsTheModelsOwnExpressionsDo) {
    std::ifstream in(KVATLAS_SOURCE_DIR "/tests/unit/model/pre_tokenizer_cases.json");
    const Json cases = Json::parse(in)["cases"];
    EXPECT_GT(cases.size(), 150u);
    std::map<std::string, Splitter> splitters;
    for (const Json& c : cases) {
        const auto rule = preTokenizerNamed(c["rule"].get<std::string>());
        ASSERT_TRUE(rule);
        EXPECT_EQ(Json(nameOf(*rule)), c["rule"]);
        const auto text = c["text"].get<std::string>();
        std::vector<std::string_view> pieces;
        splitters.try_emplace(c["rule"], *rule).first->second.split(text, pieces);
        EXPECT_EQ(Json(pieces), c["pieces"]) << c["rule"] << ' ' << c["text"];
    }
}

// llama.cpp#27783, #14655, #21919, #21257: long runs of one character overflowed the stack of a regex engine.
TEST(Tokenizer, survivesAMebibyteOfAnyOneCharacter) {
    for (const char* rule : {"smollm", "llama-bpe"}) { // the expressions of gpt-2 and qwen2 are parts of these
        TinyLlama shape;
        shape.preTokenizer = rule;
        const Tokenizer tokenizer = tinyTokenizer(shape);
        for (const std::string_view character :
             {"A", "a", " ", "\n", "\r\n", ".", "7", "\xE4\xB8\xAD", "'", "\xFF", "\xF0\x9F\x98\x80"}) {
            std::string text;
            while (text.size() < (1 << 20))
                text += character;
            const auto ids = tokenizer.encode(text, true);
            ASSERT_EQ(joined(tokenizer, ids), text) << rule << ' ' << character;
        }
    }
}

TEST(Tokenizer, neverChangesABytesThatItHasTokensFor) {
    const Tokenizer tokenizer = tinyTokenizer();
    TestRandom random(11);
    const std::string_view parts[] = {"hello",        " the",  "user",
                                      "\xC3\xA9",     "\xC3",  "\xED\xA0\x80",
                                      "<|im_start|>", "<|im_", "  ",
                                      "\n\n",         "12",    "\xF0\x9F\x98\x80",
                                      "\xF0\x9F",     "'s",    std::string_view("\0", 1),
                                      "\xFF"};
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (std::uint64_t n = random.below(20); n > 0; --n)
            text += parts[random.below(std::size(parts))];
        for (const bool parseSpecial : {false, true})
            ASSERT_EQ(joined(tokenizer, tokenizer.encode(text, parseSpecial)), text);
    }
}

TEST(Tokenizer, readsControlTokensOnlyWhenAsked) {
    const Tokenizer tokenizer = tinyTokenizer();
    EXPECT_EQ(tokenizer.encode("<|im_start|>", true), std::vector<TokenId>{1});
    const auto plain = tokenizer.encode("<|im_start|>", false);
    EXPECT_EQ(joined(tokenizer, plain), "<|im_start|>");
    for (const TokenId id : plain)
        EXPECT_NE(tokenizer.kindOf(id), TokenKind::Control);
    EXPECT_EQ(tokenizer.encode("<<|im_end|>>", true), (std::vector<TokenId>{3 + '<', 2, 3 + '>'}));
    EXPECT_TRUE(tokenizer.isEndToken(0));
    EXPECT_FALSE(tokenizer.isEndToken(1));
    EXPECT_TRUE(tokenizer.isEndToken(2));
    EXPECT_FALSE(tokenizer.isEndToken(-1));
    EXPECT_FALSE(tokenizer.isEndToken(1 << 30));
    EXPECT_EQ(tokenizer.piece(-1), "");
    EXPECT_EQ(tokenizer.piece(1 << 30), "");
}

TEST(Tokenizer, findsTheLongestControlTokenAndAlwaysTheUserDefinedOnes) {
    GgufWriter w;
    w.string("tokenizer.ggml.model", "gpt2");
    w.string("tokenizer.ggml.pre", "gpt-2");
    w.strings("tokenizer.ggml.tokens", {"<a>", "<a><b>", "[u]", "<", "a", ">", "b", "[", "u", "]"});
    w.array("tokenizer.ggml.token_type", GgufType::I32, std::vector<std::int32_t>{3, 3, 4, 1, 1, 1, 1, 1, 1, 1});
    w.strings("tokenizer.ggml.merges", {});
    const auto file = GgufFile::fromBytes(w.file(), "tiny.gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto tokenizer = Tokenizer::fromGguf(*file);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ(tokenizer->encode("<a><b><a>[u]", true), (std::vector<TokenId>{1, 0, 2}));
    EXPECT_EQ(tokenizer->encode("<a>[u]", false), (std::vector<TokenId>{3, 4, 5, 2}));
    EXPECT_EQ(tokenizer->encode("x", true), std::vector<TokenId>{}) << "a byte without a token gives none";
    ASSERT_EQ(tokenizer->warnings().size(), 1u) << "no end token";
}

// abetlen/llama-cpp-python#1501, vllm#7283, llama.cpp#5733
TEST(Tokenizer, putsOneBosInFrontAndNothingIntoAnEmptyPromptWithoutBos) {
    TinyLlama shape;
    EXPECT_TRUE(tinyTokenizer(shape).encodePrompt("", true).empty());
    shape.addBos = true;
    const Tokenizer tokenizer = tinyTokenizer(shape);
    EXPECT_EQ(tokenizer.encodePrompt("", true), std::vector<TokenId>{1});
    EXPECT_EQ(tokenizer.encodePrompt("a", true), (std::vector<TokenId>{1, 3 + 'a'}));
    EXPECT_EQ(tokenizer.encodePrompt("<|im_start|>a", true), (std::vector<TokenId>{1, 3 + 'a'}));
}

// llama.cpp#7724, timtoole02/Camelid#384
TEST(Tokenizer, saysWhichRuleItChoseForAnUnknownPreTokenizer) {
    TinyLlama shape;
    shape.preTokenizer = "from-the-future";
    const Tokenizer unknown = tinyTokenizer(shape);
    ASSERT_EQ(unknown.warnings().size(), 1u);
    EXPECT_NE(unknown.warnings()[0].find("'from-the-future'"), std::string::npos);
    EXPECT_NE(unknown.warnings()[0].find("gpt-2"), std::string::npos);
    const auto overridden = Model::fromBytes(tinyLlama(1, shape), "made.gguf", {.preTokenizer = PreTokenizer::Qwen2});
    ASSERT_TRUE(overridden) << overridden.error().message;
    EXPECT_EQ((*overridden)->tokenizer().preTokenizer(), PreTokenizer::Qwen2);
    EXPECT_TRUE((*overridden)->warnings().empty());
    shape.preTokenizer = "";
    const Tokenizer unnamed = tinyTokenizer(shape);
    ASSERT_EQ(unnamed.warnings().size(), 1u);
    EXPECT_NE(unnamed.warnings()[0].find("gpt-2"), std::string::npos);
}

TEST(Tokenizer, llama3TakesAPieceThatIsATokenWhole) {
    GgufWriter w;
    w.string("tokenizer.ggml.model", "gpt2");
    w.string("tokenizer.ggml.pre", "llama-bpe");
    w.strings("tokenizer.ggml.tokens", {"a", "b", "ab", "abab"});
    w.strings("tokenizer.ggml.merges", {"a b"});
    w.u32("tokenizer.ggml.eos_token_id", 0);
    const auto file = GgufFile::fromBytes(w.file(), "tiny.gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto tokenizer = Tokenizer::fromGguf(*file);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ(tokenizer->encode("abab", false), std::vector<TokenId>{3});
    EXPECT_EQ(tokenizer->encode("ababab", false), (std::vector<TokenId>{2, 2, 2}));
}

TEST(Utf8, replacesEveryWrongPartOnceAsTheUnicodeStandardRecommends) {
    // Unicode 15, table 3-8, and its neighbours 3-9 to 3-11.
    EXPECT_EQ(toValidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"), "a���b�c��d");
    EXPECT_EQ(toValidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "��������A");
    EXPECT_EQ(toValidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "��������A");
    EXPECT_EQ(toValidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "�����A��B");
    EXPECT_EQ(toValidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "����A");
}

TEST(StreamingDecoder, givesTheSameTextHoweverTheBytesArrive) {
    TestRandom random(5);
    const std::string_view parts[] = {"a",    "\xC3\xA9",     "\xE4\xB8\xAD", "\xF0\x9F\x98\x80", "\xF0\x9F", "\x80",
                                      "\xC0", "\xED\xA0\x80", "\xFF"};
    for (int round = 0; round < 1000; ++round) {
        std::string bytes;
        for (std::uint64_t n = random.below(8); n > 0; --n)
            bytes += parts[random.below(std::size(parts))];
        StreamingDecoder decoder;
        std::string text;
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t n = std::min<std::size_t>(1 + random.below(3), bytes.size() - at);
            const std::string now = decoder.push(std::string_view(bytes).substr(at, n));
            ASSERT_EQ(toValidUtf8(now), now) << "a broken character came out";
            text += now;
            at += n;
        }
        text += decoder.finish();
        ASSERT_EQ(text, toValidUtf8(bytes));
    }
}

TEST(StreamingDecoder, holdsBackOnlyTheBeginningOfACharacter) {
    StreamingDecoder decoder;
    EXPECT_EQ(decoder.push("a\xF0\x9F"), "a");
    EXPECT_EQ(decoder.push("\x98"), "");
    EXPECT_EQ(decoder.push("\x80"), "😀");
    EXPECT_EQ(decoder.push("\xF0\x9F"), "");
    EXPECT_EQ(decoder.push("b"), "�b");
    EXPECT_EQ(decoder.push("\xE4"), "");
    EXPECT_EQ(decoder.finish(), "�");
    EXPECT_EQ(decoder.finish(), "");
}

} // namespace

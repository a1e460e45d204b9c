// SPDX-License-Identifier: Apache-2.0
// Any text through each pre-tokenizer: the pieces of the ids are the text again (the tiny vocabulary has every byte).
// Input: one byte that chooses rule and parse_special, then the text.
#include "tests/support/exercise_model.h"
#include "tests/support/tiny_llama.h"

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;

namespace {

Tokenizer tokenizerWith(const char* rule) {
    GgufWriter w;
    TinyLlama shape;
    shape.preTokenizer = rule;
    writeTinyTokenizer(w, shape);
    const auto file = GgufFile::fromBytes(w.file(), "tiny");
    insist(bool(file), "the tiny vocabulary is a right file");
    auto tokenizer = Tokenizer::fromGguf(*file);
    insist(bool(tokenizer), "the tiny vocabulary is a right tokenizer");
    return std::move(*tokenizer);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Tokenizer tokenizers[] = {tokenizerWith("smollm"), tokenizerWith("gpt-2"), tokenizerWith("llama-bpe"),
                                           tokenizerWith("qwen2")};
    if (size == 0)
        return 0;
    const Tokenizer& tokenizer = tokenizers[data[0] & 3];
    const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    std::string back;
    for (const TokenId id : tokenizer.encode(text, data[0] & 4)) {
        insist(id >= 0 && static_cast<std::uint32_t>(id) < tokenizer.vocabulary(), "every token is of the vocabulary");
        insist((data[0] & 4) || tokenizer.kindOf(id) != TokenKind::Control, "plain text gives no control token");
        back += tokenizer.piece(id);
    }
    insist(back == text, "the pieces are the text");
    return 0;
}

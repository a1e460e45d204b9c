// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE (tokenizer.ggml.model = gpt2): text -> token ids -> bytes.
// Merging: lowest rank first, leftmost among equals (Sennrich et al. 2016, as GPT-2 applies it), O(n log n) in the
// length of a piece. Splitting: the regular expressions of the named pre-tokenizer through PCRE2 (Unicode 14; newer
// characters may split differently from other programs), white space as Unicode's White_Space property has it.
//
// encode() accepts any bytes. Bytes that are no valid UTF-8 are split off one by one; a byte without a token of its own
// that no merge covers gives no token (the text then does not round-trip).
// Threads: immutable, any thread. Owner: plain value, keeps nothing of the file it was read from.
// Errors: Refused, one sentence, only at fromGguf.
#pragma once

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/model/gguf.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::model {

// As stored in tokenizer.ggml.token_type.
enum class TokenKind : std::uint8_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

enum class PreTokenizer : std::uint8_t { Gpt2, Smollm, LlamaBpe, Qwen2 };

std::string_view nameOf(PreTokenizer rule); // "gpt-2", "smollm", "llama-bpe", "qwen2"
// The rule that a value of tokenizer.ggml.pre names; empty for a name that is not known.
std::optional<PreTokenizer> preTokenizerNamed(std::string_view name);

class Tokenizer {
public:
    // `rule` overrides what tokenizer.ggml.pre says, for files that name a rule that is not known, or none.
    static Result<Tokenizer> fromGguf(const GgufFile& file, std::optional<PreTokenizer> rule = {});
    ~Tokenizer();
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;

    // parseSpecial: text that spells a control token (<|im_start|>) becomes that token; otherwise it is ordinary text,
    // as everything that a user types must be. Nothing is put in front or behind.
    std::vector<TokenId> encode(std::string_view text, bool parseSpecial) const;

    // encode(), with the model's BOS in front where the model asks for one and the text does not already begin with it.
    // An empty text gives BOS alone, or nothing where the model asks for none.
    std::vector<TokenId> encodePrompt(std::string_view text, bool parseSpecial) const;

    // The bytes of a token, any part of a character included; control tokens as they are spelled. Empty for an id that
    // is no token.
    std::string_view piece(TokenId id) const;
    TokenKind kindOf(TokenId id) const; // Unused for an id that is no token

    std::uint32_t vocabulary() const;
    PreTokenizer preTokenizer() const;
    std::optional<TokenId> bos() const;
    std::optional<TokenId> eos() const;
    std::optional<TokenId> endOfTurn() const; // tokenizer.ggml.eot_token_id
    bool addBos() const;
    bool isEndToken(TokenId id) const; // ends the model's turn: eos, eot, eom and their well-known spellings

    // What was guessed on the way in (an unknown pre-tokenizer and the rule chosen instead).
    std::span<const std::string> warnings() const;

private:
    struct Tables;
    explicit Tokenizer(std::unique_ptr<const Tables> tables);
    std::unique_ptr<const Tables> m_tables;
};

// Turns the bytes of successive tokens into text that never breaks a character. One thread at a time.
// Bytes that cannot become valid UTF-8 turn into U+FFFD as soon as that is certain.
class StreamingDecoder {
public:
    std::string push(std::string_view bytes); // what is complete now, valid UTF-8, may be empty
    std::string finish();                     // what was still waiting, as U+FFFD; the decoder is then as new

private:
    std::string m_waiting; // the beginning of a character, at most 3 bytes
};

} // namespace kvatlas::model

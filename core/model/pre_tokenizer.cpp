// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/model/pre_tokenizer.h"

#include "core/model/utf8.h"

#include <cassert>
#include <pcre2.h>
#include <string>
#include <utility>

namespace kvatlas::model {

namespace {

// PCRE2's \s also takes U+180E, which is no White_Space since Unicode 6.3; so the set is spelled out.
#define KVATLAS_SPACE                                                                                                  \
    "\\t-\\r\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define KVATLAS_SPACES_AT_END "[" KVATLAS_SPACE "]+(?![^" KVATLAS_SPACE "])|[" KVATLAS_SPACE "]+"
#define KVATLAS_LLAMA3(digits)                                                                                         \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" KVATLAS_SPACE                         \
    "\\p{L}\\p{N}]+[\\r\\n]*|[" KVATLAS_SPACE "]*[\\r\\n]+|" KVATLAS_SPACES_AT_END

constexpr const char* kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" KVATLAS_SPACE "\\p{L}\\p{N}]+|" KVATLAS_SPACES_AT_END;
constexpr const char* kOneDigit = "\\p{N}";
constexpr const char* kLlama3 = KVATLAS_LLAMA3("\\p{N}{1,3}");
constexpr const char* kQwen2 = KVATLAS_LLAMA3("\\p{N}");

#undef KVATLAS_LLAMA3
#undef KVATLAS_SPACES_AT_END
#undef KVATLAS_SPACE

std::vector<const char*> passesOf(PreTokenizer rule) {
    switch (rule) {
    case PreTokenizer::Gpt2:
        return {kGpt2};
    case PreTokenizer::Smollm:
        return {kOneDigit, kGpt2};
    case PreTokenizer::LlamaBpe:
        return {kLlama3};
    case PreTokenizer::Qwen2:
        return {kQwen2};
    }
    return {kGpt2};
}

struct FreeMatch {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;

} // namespace

std::string_view nameOf(PreTokenizer rule) {
    switch (rule) {
    case PreTokenizer::Gpt2:
        return "gpt-2";
    case PreTokenizer::Smollm:
        return "smollm";
    case PreTokenizer::LlamaBpe:
        return "llama-bpe";
    case PreTokenizer::Qwen2:
        return "qwen2";
    }
    return "";
}

std::optional<PreTokenizer> preTokenizerNamed(std::string_view name) {
    // The second and third names share the first one's rule in llama-vocab.cpp.
    constexpr std::pair<std::string_view, PreTokenizer> kNames[] = {
        {"gpt-2", PreTokenizer::Gpt2},
        {"phi-2", PreTokenizer::Gpt2},
        {"mpt", PreTokenizer::Gpt2},
        {"olmo", PreTokenizer::Gpt2},
        {"smollm", PreTokenizer::Smollm},
        {"starcoder", PreTokenizer::Smollm},
        {"llama-bpe", PreTokenizer::LlamaBpe},
        {"llama3", PreTokenizer::LlamaBpe},
        {"llama-v3", PreTokenizer::LlamaBpe},
        {"qwen2", PreTokenizer::Qwen2},
        {"deepseek-r1-qwen", PreTokenizer::Qwen2},
    };
    for (const auto& [known, rule] : kNames)
        if (known == name)
            return rule;
    return std::nullopt;
}

class Splitter::Pattern {
public:
    explicit Pattern(const char* expression) {
        int error = 0;
        PCRE2_SIZE at = 0;
        m_code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                               &error, &at, nullptr);
        assert(m_code && "the expressions are constants that compile");
        pcre2_jit_compile(m_code, PCRE2_JIT_COMPLETE); // without JIT pcre2_match interprets: slower, same result
    }
    ~Pattern() { pcre2_code_free(m_code); }
    Pattern(const Pattern&) = delete;
    Pattern& operator=(const Pattern&) = delete;

    MatchData newMatchData() const { return MatchData(pcre2_match_data_create_from_pattern(m_code, nullptr)); }

    void cut(std::string_view text, pcre2_match_data* match, std::vector<std::string_view>& pieces) const {
        std::size_t done = 0;
        for (std::size_t at = 0; at < text.size();) {
            if (!findFrom(text, at, match))
                break;
            const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match);
            if (range[0] > done)
                pieces.push_back(text.substr(done, range[0] - done));
            pieces.push_back(text.substr(range[0], range[1] - range[0]));
            done = at = range[1];
        }
        if (done < text.size())
            pieces.push_back(text.substr(done));
    }

private:
    // A match limit of PCRE2 counts as "no match": the rest then stays one piece, as text between matches does.
    bool findFrom(std::string_view text, std::size_t at, pcre2_match_data* match) const {
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        int found = pcre2_match(m_code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, nullptr);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(m_code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT,
                                match, nullptr);
        return found > 0;
    }

    pcre2_code* m_code = nullptr;
};

Splitter::Splitter(PreTokenizer rule) {
    for (const char* expression : passesOf(rule))
        m_passes.push_back(std::make_unique<const Pattern>(expression));
}

Splitter::~Splitter() = default;

void Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
    if (text.empty())
        return;
    std::vector<std::string_view> before{text};
    for (std::size_t pass = 0; pass < m_passes.size(); ++pass) {
        const MatchData match = m_passes[pass]->newMatchData();
        if (!match)
            throw std::bad_alloc();
        std::vector<std::string_view> after;
        for (const std::string_view piece : before)
            m_passes[pass]->cut(piece, match.get(), pass + 1 == m_passes.size() ? pieces : after);
        before = std::move(after);
    }
}

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
#include "core/model/tokenizer.h"

#include "core/model/byte_pairs.h"
#include "core/model/pre_tokenizer.h"
#include "core/model/special_tokens.h"
#include "core/model/utf8.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace kvatlas::model {

namespace {

constexpr std::uint64_t kMaxTokens = 1 << 22;
constexpr std::uint64_t kMaxMerges = 1 << 23;
constexpr std::size_t kMaxPieceBytes = std::size_t{1}
                                       << 30; // a longer piece is cut, so that its parts count in 32 bits
constexpr TokenId kNoToken = -1;

template <class... Args> auto refuse(const GgufFile& file, fmt::format_string<Args...> text, Args&&... args) {
    return makeError(ErrorKind::Refused, "{}: {}", file.name(), fmt::format(text, std::forward<Args>(args)...));
}

// GPT-2 writes each byte as a visible character: printable Latin-1 as itself, the others from U+0100 on.
class VisibleBytes {
public:
    VisibleBytes() {
        int next = 0;
        for (int byte = 0; byte < 256; ++byte) {
            const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            m_byteOf[static_cast<std::size_t>(visible ? byte : 256 + next++)] = byte;
        }
    }

    // The bytes that `text` stands for; nothing when a character of it stands for no byte.
    std::optional<std::string> decode(std::string_view text) const {
        std::string out;
        while (!text.empty()) {
            const Utf8Character character = firstUtf8Character(text);
            if (character.kind != Utf8Character::Whole || character.bytes > 2)
                return std::nullopt;
            unsigned code = static_cast<unsigned char>(text[0]);
            if (character.bytes == 2)
                code = (code & 0x1F) << 6 | (static_cast<unsigned char>(text[1]) & 0x3F);
            if (code >= m_byteOf.size() || m_byteOf[code] < 0)
                return std::nullopt;
            out += static_cast<char>(m_byteOf[code]);
            text.remove_prefix(character.bytes);
        }
        return out;
    }

private:
    std::array<int, 256 + 68> m_byteOf = [] {
        std::array<int, 256 + 68> none{};
        none.fill(-1);
        return none;
    }();
};

// An array that is optional, but of this type and length where it is there.
Result<const GgufArray*> arrayBesideTokens(const GgufFile& file, std::string_view key, std::size_t tokens) {
    const GgufEntry* entry = file.find(key);
    if (!entry)
        return nullptr;
    const auto* array = std::get_if<GgufArray>(&entry->value);
    if (!array || array->count != tokens)
        return refuse(file, "key {} has {} values for {} tokens; convert the model again", inQuotes(key),
                      array ? array->count : 1, tokens);
    return array;
}

bool spellsAnEnd(std::string_view text) {
    constexpr std::string_view kEnds[] = {"<|im_end|>",    "<|eot_id|>",      "<|eom_id|>",    "<|end|>",
                                          "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "</s>"};
    return std::ranges::find(kEnds, text) != std::end(kEnds);
}

} // namespace

struct Tokenizer::Tables {
    std::vector<std::string> pieces;
    std::vector<TokenKind> kinds;
    std::vector<bool> isEnd;
    std::unordered_map<std::string_view, TokenId> tokenOf; // keys are in pieces; control tokens are not in it
    BytePairs pairs;
    std::vector<TokenId> tokenOfSymbol; // kNoToken where the vocabulary has no such text
    SpecialTokens control, userDefined;
    PreTokenizer rule = PreTokenizer::Gpt2;
    std::optional<Splitter> splitter;
    bool wholePieceFirst = false; // llama 3: a piece that is a token is not merged
    std::optional<TokenId> bos, eos, eot, eom;
    bool addBos = false;
    std::vector<std::string> warnings;

    Result<void> readTokens(const GgufFile& file);
    Result<void> readKinds(const GgufFile& file);
    Result<void> readMerges(const GgufFile& file);
    Result<void> readRule(const GgufFile& file, std::optional<PreTokenizer> asked);
    Result<void> readEnds(const GgufFile& file);
    Result<void> readId(const GgufFile& file, std::string_view key, std::optional<TokenId>& out);

    void encodeText(std::string_view text, std::vector<TokenId>& out) const;
    void encodePiece(std::string_view piece, BytePairs::Scratch& scratch, std::vector<BytePairs::Symbol>& symbols,
                     std::vector<TokenId>& out) const;
};

Result<void> Tokenizer::Tables::readTokens(const GgufFile& file) {
    const auto model = file.text("tokenizer.ggml.model");
    if (!model)
        return tl::unexpected(model.error());
    if (*model != "gpt2")
        return refuse(file, "its tokenizer {} is not supported; KVAtlas reads byte-level BPE ('gpt2')",
                      inQuotes(*model));
    const auto texts = file.texts("tokenizer.ggml.tokens");
    if (!texts)
        return tl::unexpected(texts.error());
    if (texts->empty() || texts->size() > kMaxTokens)
        return refuse(file, "has {} tokens, and 1 to {} is possible; convert the model again", texts->size(),
                      kMaxTokens);
    pieces.assign(texts->begin(), texts->end());
    return readKinds(file);
}

Result<void> Tokenizer::Tables::readKinds(const GgufFile& file) {
    kinds.assign(pieces.size(), TokenKind::Normal);
    const auto array = arrayBesideTokens(file, "tokenizer.ggml.token_type", pieces.size());
    if (!array)
        return tl::unexpected(array.error());
    if (*array) {
        const auto values = file.integers("tokenizer.ggml.token_type");
        if (!values)
            return tl::unexpected(values.error());
        for (std::size_t i = 0; i < values->size(); ++i) {
            const auto value = (*values)[i];
            if (value < 0 || value > 6)
                return refuse(file, "token {} has the type {}, and 1 to 6 is possible; convert the model again", i,
                              value);
            kinds[i] = value == 0 ? TokenKind::Unused : static_cast<TokenKind>(value);
        }
    }
    const auto scores = arrayBesideTokens(file, "tokenizer.ggml.scores", pieces.size());
    if (!scores)
        return tl::unexpected(scores.error());
    if (*scores && (*scores)->elementType != GgufType::F32)
        return refuse(file, "key 'tokenizer.ggml.scores' is an array of {}, and f32 is needed; convert the model again",
                      nameOf((*scores)->elementType));

    const VisibleBytes visible;
    tokenOf.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const TokenKind kind = kinds[i];
        if (kind == TokenKind::Control || kind == TokenKind::Unknown || kind == TokenKind::UserDefined) {
            if (pieces[i].size() > SpecialTokens::kMaxBytes)
                return refuse(file,
                              "token {} is a special token of {} bytes, and {} are possible; convert the model again",
                              i, pieces[i].size(), SpecialTokens::kMaxBytes);
            (kind == TokenKind::UserDefined ? userDefined : control).add(pieces[i], id);
            if (kind == TokenKind::UserDefined)
                control.add(pieces[i], id);
            continue;
        }
        if (auto bytes = visible.decode(pieces[i]))
            pieces[i] = std::move(*bytes);
        if (!pieces[i].empty())
            tokenOf.try_emplace(pieces[i], id);
    }
    return {};
}

Result<void> Tokenizer::Tables::readMerges(const GgufFile& file) {
    const auto merges = file.texts("tokenizer.ggml.merges");
    if (!merges)
        return tl::unexpected(merges.error());
    if (merges->size() > kMaxMerges)
        return refuse(file, "has {} merges, and {} are possible; convert the model again", merges->size(), kMaxMerges);
    const VisibleBytes visible;
    pairs.reserve(merges->size());
    for (std::size_t i = 0; i < merges->size(); ++i) {
        const std::string_view merge = (*merges)[i];
        const std::size_t space = merge.find(' ', 1);
        if (merge.empty() || space == std::string_view::npos || space + 1 == merge.size())
            return refuse(file,
                          "merge {} is {}, and two texts with a space between are needed; convert the model again", i,
                          inQuotes(merge));
        const auto left = visible.decode(merge.substr(0, space));
        const auto right = visible.decode(merge.substr(space + 1));
        if (left && right) // otherwise it stands for no bytes, and can never apply
            pairs.addMerge(*left, *right);
    }
    tokenOfSymbol.resize(pairs.symbols(), kNoToken);
    for (std::size_t symbol = 0; symbol < pairs.symbols(); ++symbol)
        if (const auto found = tokenOf.find(pairs.textOf(static_cast<BytePairs::Symbol>(symbol)));
            found != tokenOf.end())
            tokenOfSymbol[symbol] = found->second;
    return {};
}

Result<void> Tokenizer::Tables::readRule(const GgufFile& file, std::optional<PreTokenizer> asked) {
    const auto name = file.textOr("tokenizer.ggml.pre", "");
    if (!name)
        return tl::unexpected(name.error());
    if (const auto known = asked ? asked : preTokenizerNamed(*name))
        rule = *known;
    else
        warnings.push_back(
            fmt::format("{}; text is split by the rule {} instead, which may give worse text than the model can",
                        name->empty() ? std::string("the file does not name its pre-tokenizer (tokenizer.ggml.pre)")
                                      : fmt::format("the pre-tokenizer {} is not known", inQuotes(*name)),
                        nameOf(rule)));
    splitter.emplace(rule);
    wholePieceFirst = rule == PreTokenizer::LlamaBpe;
    return {};
}

Result<void> Tokenizer::Tables::readId(const GgufFile& file, std::string_view key, std::optional<TokenId>& out) {
    const std::string full = "tokenizer.ggml." + std::string(key);
    if (!file.find(full))
        return {};
    const auto id = file.count(full);
    if (!id)
        return tl::unexpected(id.error());
    if (*id < pieces.size())
        out = static_cast<TokenId>(*id);
    else
        warnings.push_back(fmt::format("key {} is {}, which is no token; it is ignored", inQuotes(full), *id));
    return {};
}

Result<void> Tokenizer::Tables::readEnds(const GgufFile& file) {
    for (const auto& [key, out] : {std::pair{"bos_token_id", &bos}, std::pair{"eos_token_id", &eos},
                                   std::pair{"eot_token_id", &eot}, std::pair{"eom_token_id", &eom}})
        if (auto ok = readId(file, key, *out); !ok)
            return ok;
    const auto add = file.flagOr("tokenizer.ggml.add_bos_token", rule == PreTokenizer::LlamaBpe);
    if (!add)
        return tl::unexpected(add.error());
    addBos = *add && bos.has_value();

    isEnd.assign(pieces.size(), false);
    for (const auto& id : {eos, eot, eom})
        if (id)
            isEnd[static_cast<std::size_t>(*id)] = true;
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (kinds[i] == TokenKind::Control && spellsAnEnd(pieces[i]))
            isEnd[i] = true;
    if (std::ranges::find(isEnd, true) == isEnd.end())
        warnings.emplace_back("the file names no end token; a request ends by its number of tokens alone");
    return {};
}

Result<Tokenizer> Tokenizer::fromGguf(const GgufFile& file, std::optional<PreTokenizer> rule) {
    auto tables = std::make_unique<Tables>();
    const auto done = tables->readTokens(file)
                          .and_then([&] { return tables->readMerges(file); })
                          .and_then([&] { return tables->readRule(file, rule); })
                          .and_then([&] { return tables->readEnds(file); });
    if (!done)
        return tl::unexpected(done.error());
    return Tokenizer(std::move(tables));
}

void Tokenizer::Tables::encodePiece(std::string_view piece, BytePairs::Scratch& scratch,
                                    std::vector<BytePairs::Symbol>& symbols, std::vector<TokenId>& out) const {
    if (wholePieceFirst)
        if (const auto found = tokenOf.find(piece); found != tokenOf.end()) {
            out.push_back(found->second);
            return;
        }
    symbols.clear();
    for (; piece.size() > kMaxPieceBytes; piece.remove_prefix(kMaxPieceBytes))
        pairs.merge(piece.substr(0, kMaxPieceBytes), scratch, symbols);
    pairs.merge(piece, scratch, symbols);
    for (const BytePairs::Symbol symbol : symbols) {
        if (tokenOfSymbol[symbol] != kNoToken) {
            out.push_back(tokenOfSymbol[symbol]);
            continue;
        }
        for (const char byte : pairs.textOf(symbol))
            if (const TokenId id = tokenOfSymbol[static_cast<unsigned char>(byte)]; id != kNoToken)
                out.push_back(id);
    }
}

void Tokenizer::Tables::encodeText(std::string_view text, std::vector<TokenId>& out) const {
    std::vector<std::string_view> split;
    BytePairs::Scratch scratch;
    std::vector<BytePairs::Symbol> symbols;
    std::size_t valid = 0; // bytes of valid UTF-8 at the front of `text`
    const auto flush = [&] {
        split.clear();
        splitter->split(text.substr(0, valid), split);
        for (const std::string_view piece : split)
            encodePiece(piece, scratch, symbols, out);
        text.remove_prefix(valid);
        valid = 0;
    };
    while (valid < text.size()) {
        const Utf8Character character = firstUtf8Character(text.substr(valid));
        if (character.kind == Utf8Character::Whole) {
            valid += character.bytes;
            continue;
        }
        flush();
        encodePiece(text.substr(0, 1), scratch, symbols, out);
        text.remove_prefix(1);
    }
    flush();
}

Tokenizer::Tokenizer(std::unique_ptr<const Tables> tables)
    : m_tables(std::move(tables)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool parseSpecial) const {
    std::vector<TokenId> out;
    const SpecialTokens& special = parseSpecial ? m_tables->control : m_tables->userDefined;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const auto found = special.findFrom(text, begin);
        m_tables->encodeText(text.substr(begin, found.at - begin), out);
        if (found.bytes > 0)
            out.push_back(found.id);
        begin = found.at + found.bytes;
    }
    return out;
}

std::vector<TokenId> Tokenizer::encodePrompt(std::string_view text, bool parseSpecial) const {
    std::vector<TokenId> out = encode(text, parseSpecial);
    const auto front = m_tables->bos;
    if (m_tables->addBos && front && (out.empty() || out.front() != *front))
        out.insert(out.begin(), *front);
    return out;
}

std::string_view Tokenizer::piece(TokenId id) const {
    const auto& pieces = m_tables->pieces;
    return id < 0 || static_cast<std::size_t>(id) >= pieces.size() ? std::string_view{}
                                                                   : pieces[static_cast<std::size_t>(id)];
}

TokenKind Tokenizer::kindOf(TokenId id) const {
    const auto& kinds = m_tables->kinds;
    return id < 0 || static_cast<std::size_t>(id) >= kinds.size() ? TokenKind::Unused
                                                                  : kinds[static_cast<std::size_t>(id)];
}

bool Tokenizer::isEndToken(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < m_tables->isEnd.size() &&
           m_tables->isEnd[static_cast<std::size_t>(id)];
}

std::uint32_t Tokenizer::vocabulary() const {
    return static_cast<std::uint32_t>(m_tables->pieces.size());
}
PreTokenizer Tokenizer::preTokenizer() const {
    return m_tables->rule;
}
std::optional<TokenId> Tokenizer::bos() const {
    return m_tables->bos;
}
std::optional<TokenId> Tokenizer::eos() const {
    return m_tables->eos;
}
std::optional<TokenId> Tokenizer::endOfTurn() const {
    return m_tables->eot;
}
bool Tokenizer::addBos() const {
    return m_tables->addBos;
}
std::span<const std::string> Tokenizer::warnings() const {
    return m_tables->warnings;
}

} // namespace kvatlas::model

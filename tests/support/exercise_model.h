// SPDX-License-Identifier: Apache-2.0
// Touches whatever of an opened model an engine or a user would: every weight byte, every piece, an encoding, a
// rendering. For mutants and fuzzers: a view that reaches too far is a sanitizer's report; a broken promise aborts.
#pragma once

#include "core/model/model.h"

#include <cstdio>
#include <cstdlib>

namespace kvatlas::testing {

inline void insist(bool promise, const char* what) {
    if (!promise) {
        std::fprintf(stderr, "broken promise: %s\n", what);
        std::abort();
    }
}

inline std::uint64_t exercise(const model::WeightTensor& tensor) {
    insist(tensor.data.size() == tensor.rowBytes() * tensor.rows, "a weight has the bytes of its shape");
    std::uint64_t sum = 0;
    for (const std::byte byte : tensor.data)
        sum += static_cast<std::uint64_t>(byte);
    return sum;
}

inline std::uint64_t exercise(const model::Model& model) {
    std::uint64_t sum = exercise(model.tokenEmbedding()) + exercise(model.outputNorm()) + exercise(model.output());
    insist(model.layers().size() == model.config().layers, "every layer is bound");
    for (const model::LayerWeights& w : model.layers())
        for (const model::WeightTensor* tensor : {&w.attentionNorm, &w.query, &w.key, &w.value, &w.attentionOut,
                                                  &w.feedForwardNorm, &w.gate, &w.up, &w.down})
            sum += exercise(*tensor);
    const model::Tokenizer& tokenizer = model.tokenizer();
    insist(tokenizer.vocabulary() == model.config().vocabulary, "tokenizer and network agree on the vocabulary");
    for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary()); ++id)
        sum += tokenizer.piece(id).size() + tokenizer.isEndToken(id) + static_cast<std::uint64_t>(tokenizer.kindOf(id));
    const model::Message message{model::Role::User, "hello the world 12 \xC3\xA9 \xFF"};
    const auto text = model.chatTemplate().render({&message, 1}, true);
    for (const TokenId id : tokenizer.encodePrompt(text.value_or(message.content), true))
        insist(id >= 0 && static_cast<std::uint32_t>(id) < tokenizer.vocabulary(), "every token is of the vocabulary");
    return sum;
}

} // namespace kvatlas::testing

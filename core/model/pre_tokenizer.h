// SPDX-License-Identifier: Apache-2.0
// Splits text into the pieces within which byte pairs may merge: one or more passes of a regular expression, each pass
// cutting every piece of the pass before into its matches and what lies between them. A look-ahead sees its piece only.
// The expressions are those that the models' own tokenizer.json files carry (gpt2, smollm2, llama 3, qwen2).
// Threads: immutable, any thread. Linear time and constant stack for one repeated character, however long the text.
#pragma once

#include "core/model/tokenizer.h"

#include <memory>
#include <string_view>
#include <vector>

namespace kvatlas::model {

class Splitter {
public:
    explicit Splitter(PreTokenizer rule);
    ~Splitter();

    // Appends the pieces of `text`, which must be valid UTF-8; together they are the text.
    void split(std::string_view text, std::vector<std::string_view>& pieces) const;

private:
    class Pattern;
    std::vector<std::unique_ptr<const Pattern>> m_passes;
};

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
// Finds whole-text tokens (<|im_start|>) in a text: the leftmost, and the longest among those that begin there.
// A trie over their bytes; threads: immutable after building, any thread.
#pragma once

#include "core/base/ids.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kvatlas::model {

class SpecialTokens {
public:
    // Of one token; bounds the work of a search at any one byte. Published ones stay below 64.
    static constexpr std::size_t kMaxBytes = 128;

    struct Found {
        std::size_t at = 0;    // the end of the text where there is none
        std::size_t bytes = 0; // 0: none
        TokenId id = -1;
    };

    void add(std::string_view text,
             TokenId id); // at most kMaxBytes; empty texts are ignored, the first id of a text wins
    Found findFrom(std::string_view text, std::size_t begin) const;

private:
    struct Node {
        std::uint32_t child = 0, sibling = 0; // 0: none
        TokenId id = -1;
        unsigned char byte = 0;
    };
    std::uint32_t childOf(std::uint32_t node, unsigned char byte) const;

    std::vector<Node> m_nodes{Node{}};
};

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
#include "core/model/special_tokens.h"

#include <cassert>

namespace kvatlas::model {

std::uint32_t SpecialTokens::childOf(std::uint32_t node, unsigned char byte) const {
    std::uint32_t child = m_nodes[node].child;
    while (child != 0 && m_nodes[child].byte != byte)
        child = m_nodes[child].sibling;
    return child;
}

void SpecialTokens::add(std::string_view text, TokenId id) {
    assert(text.size() <= kMaxBytes);
    if (text.empty())
        return;
    std::uint32_t node = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        std::uint32_t child = childOf(node, byte);
        if (child == 0) {
            child = static_cast<std::uint32_t>(m_nodes.size());
            m_nodes.push_back({0, m_nodes[node].child, -1, byte});
            m_nodes[node].child = child;
        }
        node = child;
    }
    if (m_nodes[node].id < 0)
        m_nodes[node].id = id;
}

SpecialTokens::Found SpecialTokens::findFrom(std::string_view text, std::size_t begin) const {
    for (std::size_t at = begin; at < text.size(); ++at) {
        Found best{at, 0, -1};
        std::uint32_t node = 0;
        for (std::size_t i = at; i < text.size(); ++i) {
            node = childOf(node, static_cast<unsigned char>(text[i]));
            if (node == 0)
                break;
            if (m_nodes[node].id >= 0)
                best = {at, i - at + 1, m_nodes[node].id};
        }
        if (best.bytes > 0)
            return best;
    }
    return {text.size(), 0, -1};
}

} // namespace kvatlas::model

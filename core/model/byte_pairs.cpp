// SPDX-License-Identifier: Apache-2.0
#include "core/model/byte_pairs.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace kvatlas::model {

namespace {

// Up to here a search through all parts beats the heap; most words are shorter.
constexpr std::size_t kShortPiece = 48;

} // namespace

BytePairs::BytePairs() {
    for (int byte = 0; byte < 256; ++byte)
        intern(std::string(1, static_cast<char>(byte))); // symbol == byte
}

void BytePairs::reserve(std::size_t merges) {
    m_text.reserve(256 + merges);
    m_symbolOf.reserve(256 + merges);
    m_merges.reserve(merges);
}

BytePairs::Symbol BytePairs::intern(std::string text) {
    const auto [found, isNew] = m_symbolOf.try_emplace(std::move(text), static_cast<Symbol>(m_text.size()));
    if (isNew)
        m_text.push_back(found->first);
    return found->second;
}

void BytePairs::addMerge(std::string_view left, std::string_view right) {
    const Symbol l = intern(std::string(left));
    const Symbol r = intern(std::string(right));
    const Symbol result = intern(std::string(left) + std::string(right));
    m_merges.try_emplace(std::uint64_t{l} << 32 | r, Merge{m_nextRank++, result});
}

const BytePairs::Merge* BytePairs::find(Symbol left, Symbol right) const {
    const auto found = m_merges.find(std::uint64_t{left} << 32 | right);
    return found == m_merges.end() ? nullptr : &found->second;
}

std::uint32_t BytePairs::rankOf(Symbol left, Symbol right) const {
    const Merge* merge = find(left, right);
    return merge ? merge->rank : kNone;
}

void BytePairs::merge(std::string_view piece, Scratch& scratch, std::vector<Symbol>& out) const {
    auto& parts = scratch.parts;
    const auto count = static_cast<std::uint32_t>(piece.size());
    parts.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Symbol symbol = static_cast<unsigned char>(piece[i]);
        const bool last = i + 1 == count;
        parts[i] = {symbol, i == 0 ? kNone : i - 1, last ? kNone : i + 1,
                    last ? kNone : rankOf(symbol, static_cast<unsigned char>(piece[i + 1]))};
    }
    if (count <= kShortPiece)
        mergeShort(scratch);
    else
        mergeLong(scratch);
    for (std::uint32_t i = 0; i != kNone; i = parts[i].next)
        out.push_back(parts[i].symbol);
}

// Joins the part at `at` with its right neighbour; the caller knows that the pair has a merge.
void BytePairs::apply(Scratch& scratch, std::uint32_t at) const {
    auto& parts = scratch.parts;
    auto& part = parts[at];
    const auto gone = part.next;
    part.symbol = find(part.symbol, parts[gone].symbol)->result;
    part.next = parts[gone].next;
    parts[gone].rank = kNone;
    if (part.next != kNone)
        parts[part.next].previous = at;
    part.rank = part.next == kNone ? kNone : rankOf(part.symbol, parts[part.next].symbol);
    if (part.previous != kNone)
        parts[part.previous].rank = rankOf(parts[part.previous].symbol, part.symbol);
}

void BytePairs::mergeShort(Scratch& scratch) const {
    auto& parts = scratch.parts;
    for (;;) {
        std::uint32_t best = 0;
        for (std::uint32_t i = parts[0].next; i != kNone; i = parts[i].next)
            if (parts[i].rank < parts[best].rank)
                best = i;
        if (parts[best].rank == kNone)
            return;
        apply(scratch, best);
    }
}

// An entry is stale when its part has another rank by now; a part whose rank changed has an entry with the new rank.
void BytePairs::mergeLong(Scratch& scratch) const {
    auto& parts = scratch.parts;
    auto& heap = scratch.heap;
    heap.clear();
    const auto entryOf = [&parts](std::uint32_t i) { return std::uint64_t{parts[i].rank} << 32 | i; };
    for (std::uint32_t i = 0; i < parts.size(); ++i)
        if (parts[i].rank != kNone)
            heap.push_back(entryOf(i));
    std::ranges::make_heap(heap, std::greater{});
    const auto push = [&](std::uint32_t i) {
        if (i == kNone || parts[i].rank == kNone)
            return;
        heap.push_back(entryOf(i));
        std::ranges::push_heap(heap, std::greater{});
    };
    while (!heap.empty()) {
        std::ranges::pop_heap(heap, std::greater{});
        const auto at = static_cast<std::uint32_t>(heap.back());
        const auto rank = static_cast<std::uint32_t>(heap.back() >> 32);
        heap.pop_back();
        if (parts[at].rank != rank)
            continue;
        apply(scratch, at);
        push(at);
        push(parts[at].previous);
    }
}

} // namespace kvatlas::model

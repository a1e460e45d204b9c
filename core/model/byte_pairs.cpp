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
    while (m_merges.size() < 2 * merges)
        grow();
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
    if (2 * (m_nextRank + std::size_t{1}) > m_merges.size())
        grow();
    const std::uint64_t pair = std::uint64_t{l} << 32 | r;
    Merge& merge = m_merges[placeOf(pair)];
    if (merge.rank == kNone)
        merge = {pair, m_nextRank, result};
    ++m_nextRank;
}

// Where the pair stands, or the free place where it would. Mixed by Fibonacci hashing (Knuth, TAOCP 3, 6.4).
std::size_t BytePairs::placeOf(std::uint64_t pair) const {
    const std::size_t mask = m_merges.size() - 1;
    std::size_t place = static_cast<std::size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (m_merges[place].rank != kNone && m_merges[place].pair != pair)
        place = (place + 1) & mask;
    return place;
}

void BytePairs::grow() {
    std::vector<Merge> old(2 * m_merges.size());
    old.swap(m_merges);
    for (const Merge& merge : old)
        if (merge.rank != kNone)
            m_merges[placeOf(merge.pair)] = merge;
}

void BytePairs::lookUp(Scratch::Part& part, Symbol right) const {
    const Merge& merge = m_merges[placeOf(std::uint64_t{part.symbol} << 32 | right)];
    part.rank = merge.rank;
    part.joined = merge.result;
}

void BytePairs::merge(std::string_view piece, Scratch& scratch, std::vector<Symbol>& out) const {
    auto& parts = scratch.parts;
    const auto count = static_cast<std::uint32_t>(piece.size());
    parts.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const bool last = i + 1 == count;
        parts[i] = {static_cast<unsigned char>(piece[i]), i == 0 ? kNone : i - 1, last ? kNone : i + 1, kNone, 0};
        if (!last)
            lookUp(parts[i], static_cast<unsigned char>(piece[i + 1]));
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
    part.symbol = part.joined;
    part.next = parts[gone].next;
    parts[gone].rank = kNone;
    if (part.next != kNone)
        parts[part.next].previous = at;
    part.rank = kNone;
    if (part.next != kNone)
        lookUp(part, parts[part.next].symbol);
    if (part.previous != kNone)
        lookUp(parts[part.previous], part.symbol);
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

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

// The places that wait for their merge, handed out by (rank, index) ascending. Ranks are worked through upwards, each
// as one sorted row; what turns up at or below the current rank goes through a heap. For a mebibyte of one character
// this takes half the time of one heap for all.
class BytePairs::ByRank {
public:
    ByRank(const BytePairs& pairs, Scratch& scratch)
        : m_pairs(pairs)
        , m_s(scratch) {
        m_s.waiting.clear();
        m_s.ranks.clear();
        m_s.early.clear();
        m_s.waitingOf.resize(pairs.m_nextRank, 0);
    }

    void run() {
        for (std::uint32_t i = 0; i < m_s.parts.size(); ++i)
            wait(i);
        while (!m_s.ranks.empty()) {
            std::ranges::pop_heap(m_s.ranks, std::greater{});
            m_current = m_s.ranks.back();
            m_begun = true;
            m_s.ranks.pop_back();
            std::vector<std::uint32_t> row = std::move(m_s.waiting[m_s.waitingOf[m_current] - 1]);
            m_s.waitingOf[m_current] = 0;
            if (!std::ranges::is_sorted(row))
                std::ranges::sort(row);
            for (const std::uint32_t at : row) {
                takeEarlyBelow(std::uint64_t{m_current} << 32 | at);
                take(m_current, at);
            }
            takeEarlyBelow(~std::uint64_t{0});
        }
    }

private:
    void wait(std::uint32_t at) {
        const std::uint32_t rank = at == kNone ? kNone : m_s.parts[at].rank;
        if (rank == kNone)
            return;
        if (m_begun && rank <= m_current) {
            m_s.early.push_back(std::uint64_t{rank} << 32 | at);
            std::ranges::push_heap(m_s.early, std::greater{});
            return;
        }
        if (m_s.waitingOf[rank] == 0) {
            m_s.waiting.emplace_back();
            m_s.waitingOf[rank] = static_cast<std::uint32_t>(m_s.waiting.size());
            m_s.ranks.push_back(rank);
            std::ranges::push_heap(m_s.ranks, std::greater{});
        }
        m_s.waiting[m_s.waitingOf[rank] - 1].push_back(at);
    }

    void takeEarlyBelow(std::uint64_t limit) {
        while (!m_s.early.empty() && m_s.early.front() < limit) {
            std::ranges::pop_heap(m_s.early, std::greater{});
            const std::uint64_t entry = m_s.early.back();
            m_s.early.pop_back();
            take(static_cast<std::uint32_t>(entry >> 32), static_cast<std::uint32_t>(entry));
        }
    }

    // A place whose rank has changed since is waiting again under its new one.
    void take(std::uint32_t rank, std::uint32_t at) {
        if (m_s.parts[at].rank != rank)
            return;
        m_pairs.apply(m_s, at);
        wait(at);
        wait(m_s.parts[at].previous);
    }

    const BytePairs& m_pairs;
    Scratch& m_s;
    std::uint32_t m_current = 0;
    bool m_begun = false;
};

void BytePairs::mergeLong(Scratch& scratch) const {
    ByRank(*this, scratch).run();
}

} // namespace kvatlas::model

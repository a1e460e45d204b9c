// SPDX-License-Identifier: Apache-2.0
// The merge table of a byte-level BPE and its application to one piece of text.
// A symbol is a string of bytes that merges know: the 256 single bytes, and both sides and the result of every merge.
// Threads: immutable after building, any thread (each with its own Scratch).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvatlas::model {

class BytePairs {
public:
    using Symbol = std::uint32_t;

    struct Scratch {
        struct Part {
            Symbol symbol;
            std::uint32_t previous, next; // index of the neighbour, kNone at the ends
            std::uint32_t rank;           // of the merge with `next`, kNone where there is none
            Symbol joined;                // what that merge gives
        };
        std::vector<Part> parts;
        // Places to merge, by rank; waiting[waitingOf[rank] - 1], and a min-heap of the ranks that have one.
        std::vector<std::vector<std::uint32_t>> waiting;
        std::vector<std::uint32_t> waitingOf, ranks;
        std::vector<std::uint64_t> early; // min-heap of rank << 32 | index, ranks up to the one being worked on
    };

    BytePairs();
    void reserve(std::size_t merges);
    // Merges must be added in order of rank, both sides not empty; the first of two equal pairs counts.
    void addMerge(std::string_view left, std::string_view right);

    std::size_t symbols() const { return m_text.size(); }
    std::string_view textOf(Symbol symbol) const { return m_text[symbol]; }

    // The symbols that `piece` (not empty, below 2^32 bytes) ends as, appended to `out`.
    void merge(std::string_view piece, Scratch& scratch, std::vector<Symbol>& out) const;

private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    struct Merge {
        std::uint64_t pair = ~std::uint64_t{0}; // left << 32 | right; all ones: a free place
        std::uint32_t rank = kNone;
        Symbol result = 0;
    };
    Symbol intern(std::string text);
    std::size_t placeOf(std::uint64_t pair) const;
    void grow();
    void lookUp(Scratch::Part& part, Symbol right) const;
    void mergeShort(Scratch& scratch) const;
    void mergeLong(Scratch& scratch) const;
    class ByRank;
    void apply(Scratch& scratch, std::uint32_t at) const;

    std::vector<std::string> m_text;
    std::unordered_map<std::string, Symbol> m_symbolOf;
    // Open addressing with linear probing, at most half full: a lookup is one cache line.
    std::vector<Merge> m_merges = std::vector<Merge>(64);
    std::uint32_t m_nextRank = 0;
};

} // namespace kvatlas::model

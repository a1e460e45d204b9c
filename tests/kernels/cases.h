// SPDX-License-Identifier: Apache-2.0
// Seeded inputs for the kernel tests and the fingerprint program: the same bytes on every machine.
#pragma once

#include "kernels/kernels.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

namespace kvatlas::kernels::testing {

inline constexpr std::array kFormats = {WeightFormat::F32,  WeightFormat::F16,  WeightFormat::BF16,
                                        WeightFormat::Q8_0, WeightFormat::Q4_0, WeightFormat::Q4_1,
                                        WeightFormat::Q4_K, WeightFormat::Q5_K, WeightFormat::Q6_K};

// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
public:
    explicit Random(std::uint64_t seed)
        : m_state(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (m_state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }
    // Bell-shaped, standard deviation 1: the sum of four uniform numbers of 16 bits.
    float normal() {
        const std::uint64_t bits = next();
        std::int64_t sum = -2 * 65535;
        for (int shift = 0; shift < 64; shift += 16)
            sum += static_cast<std::int64_t>((bits >> shift) & 0xFFFF);
        return static_cast<float>(sum) * (1.7320508f / 65536.0f);
    }

private:
    std::uint64_t m_state;
};

inline std::vector<float> normals(std::size_t n, std::uint64_t seed, float deviation = 1.0f) {
    Random random(seed);
    std::vector<float> values(n);
    for (float& value : values)
        value = random.normal() * deviation;
    return values;
}

// An f16 number of either sign with a magnitude in [2^-7, 2^-4).
inline std::uint16_t smallHalf(Random& random, bool mayBeNegative) {
    const std::uint32_t exponent = 15 - 7 + random.below(3);
    const std::uint32_t sign = mayBeNegative ? random.below(2) << 15 : 0;
    return static_cast<std::uint16_t>(sign | exponent << 10 | random.below(1024));
}

// [rows, cols] in the file's layout: any codes, scales of a sensible size.
inline std::vector<std::byte> weightBytes(WeightFormat format, std::uint32_t rows, std::uint32_t cols,
                                          std::uint64_t seed) {
    Random random(seed);
    const WeightFormatInfo info = infoOf(format);
    std::vector<std::byte> bytes(std::size_t{rows} * cols / info.groupElements * info.groupBytes);
    const auto put = [&](std::size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
    for (std::size_t at = 0; at < bytes.size(); at += info.groupBytes) {
        if (format == WeightFormat::F32) {
            put(at, random.normal());
            continue;
        }
        if (format == WeightFormat::BF16) {
            put(at, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.normal()) >> 16));
            continue;
        }
        if (format == WeightFormat::F16) {
            put(at, smallHalf(random, true));
            continue;
        }
        for (std::size_t i = 0; i < info.groupBytes; ++i)
            bytes[at + i] = static_cast<std::byte>(random.next());
        const bool atEnd = format == WeightFormat::Q6_K;
        put(atEnd ? at + info.groupBytes - 2 : at, smallHalf(random, true));
        if (format == WeightFormat::Q4_1 || format == WeightFormat::Q4_K || format == WeightFormat::Q5_K)
            put(at + 2, smallHalf(random, true));
    }
    return bytes;
}

// A paged cache for some sequences: shuffled blocks, and rows that continue each sequence.
struct PagedCase {
    KvLayout layout;
    std::vector<std::byte> arena;
    std::vector<std::vector<std::uint32_t>> tables;
    std::vector<const std::uint32_t*> tablePointers;

    // lengths [sequences]: slots each sequence may use. Free bytes of the arena hold NaN, which nothing may touch.
    PagedCase(const KvLayout& shape, const std::vector<std::uint32_t>& lengths, std::uint64_t seed)
        : layout(shape) {
        std::uint32_t blocks = 0;
        for (std::uint32_t length : lengths) {
            tables.emplace_back();
            for (std::uint32_t i = 0; i < (length + layout.blockTokens - 1) / layout.blockTokens; ++i)
                tables.back().push_back(blocks++);
        }
        Random random(seed);
        std::vector<std::uint32_t> order(blocks + 3);
        for (std::uint32_t i = 0; i < order.size(); ++i)
            order[i] = i;
        for (std::uint32_t i = static_cast<std::uint32_t>(order.size()) - 1; i > 0; --i)
            std::swap(order[i], order[random.below(i + 1)]);
        for (auto& table : tables) {
            for (std::uint32_t& block : table)
                block = order[block];
            tablePointers.push_back(table.data());
        }
        arena.assign(order.size() * layout.blockBytes(), std::byte{0xFF});
    }
    KvArena view() { return {arena.data(), layout}; }
};

// The rows [first, last) of each sequence, as one batch.
struct BatchCase {
    std::vector<std::uint32_t> sequenceOf, positionOf;
    AttentionBatch view(const PagedCase& paged) const {
        AttentionBatch batch;
        batch.rows = static_cast<std::uint32_t>(positionOf.size());
        batch.sequenceOf = sequenceOf.data();
        batch.positionOf = positionOf.data();
        batch.sequences = static_cast<std::uint32_t>(paged.tables.size());
        batch.blockTables = paged.tablePointers.data();
        return batch;
    }
    void append(std::uint32_t sequence, std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t position = first; position < last; ++position) {
            sequenceOf.push_back(sequence);
            positionOf.push_back(position);
        }
    }
};

} // namespace kvatlas::kernels::testing

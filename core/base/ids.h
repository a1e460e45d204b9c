// SPDX-License-Identifier: Apache-2.0
// Strong ids: a number that says what it counts and converts to no other id. Plain values, any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace kvatlas {

template <class Tag, class Rep> struct Id {
    using rep = Rep;
    Rep value{};

    constexpr Id() = default;
    constexpr explicit Id(Rep v)
        : value(v) {}
    friend constexpr auto operator<=>(Id, Id) = default;
};

using RequestId = Id<struct RequestTag, std::uint64_t>;   // counted from 1 in order of submission
using SequenceId = Id<struct SequenceTag, std::uint32_t>; // counted from 1 in order of start
using PoolId = Id<struct PoolTag, std::uint8_t>;          // 0..63
using LayerId = Id<struct LayerTag, std::uint16_t>;       // 0 = the first layer
using HeadId = Id<struct HeadTag, std::uint16_t>;         // a KV head, unless the name says query head

using TokenId = std::int32_t;   // a vocabulary entry
using Position = std::uint32_t; // place of a token in its sequence, from 0
using Step = std::uint32_t;     // engine step, from 0

// A block of a pool: 6 bits of pool, 26 bits of index inside the pool.
struct BlockId {
    std::uint32_t value{};

    constexpr BlockId() = default;
    constexpr BlockId(PoolId pool, std::uint32_t index)
        : value((std::uint32_t{pool.value} << 26) | (index & 0x03FF'FFFFu)) {}
    constexpr PoolId pool() const { return PoolId(static_cast<std::uint8_t>(value >> 26)); }
    constexpr std::uint32_t index() const { return value & 0x03FF'FFFFu; }
    friend constexpr auto operator<=>(BlockId, BlockId) = default;
};

} // namespace kvatlas

template <class Tag, class Rep> struct std::hash<kvatlas::Id<Tag, Rep>> {
    std::size_t operator()(kvatlas::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
template <> struct std::hash<kvatlas::BlockId> {
    std::size_t operator()(kvatlas::BlockId id) const noexcept { return std::hash<std::uint32_t>{}(id.value); }
};

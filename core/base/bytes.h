// SPDX-License-Identifier: Apache-2.0
// Little-endian bytes: a writer that appends to a vector, and a reader that never reads past the end. One thread each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kvatlas {

static_assert(std::endian::native == std::endian::little, "KVAtlas runs on little-endian machines");

class ByteWriter {
public:
    explicit ByteWriter(std::vector<std::byte>& out)
        : m_out(out) {}

    template <class T>
    requires std::is_arithmetic_v<T>
    void fixed(T value) {
        const std::size_t at = m_out.size();
        m_out.resize(at + sizeof value);
        std::memcpy(m_out.data() + at, &value, sizeof value);
    }
    void varint(std::uint64_t value);      // LEB128
    void signedVarint(std::int64_t value); // zigzag, then LEB128
    void bytes(std::span<const std::byte> data);
    void text(std::string_view text); // varint length, then bytes

private:
    std::vector<std::byte>& m_out;
};

// After the first read past the end, or of a malformed varint, ok() is false for ever and every read gives zero.
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> data)
        : m_data(data) {}

    bool ok() const { return m_ok; }
    bool atEnd() const { return m_at == m_data.size(); }
    std::size_t position() const { return m_at; }
    std::size_t remaining() const { return m_data.size() - m_at; }

    template <class T>
    requires std::is_arithmetic_v<T> T fixed() {
        T value{};
        const auto data = bytes(sizeof value);
        if (m_ok)
            std::memcpy(&value, data.data(), sizeof value);
        return value;
    }
    std::uint64_t varint();
    std::int64_t signedVarint();
    std::span<const std::byte> bytes(std::size_t count); // empty when not ok
    std::string text();
    void fail() { m_ok = false; }

    // A count of things that each take at least minBytesEach: fails when that many cannot follow, so that a hostile
    // count never sizes an allocation.
    std::size_t count(std::size_t minBytesEach = 1);

private:
    std::span<const std::byte> m_data;
    std::size_t m_at = 0;
    bool m_ok = true;
};

} // namespace kvatlas

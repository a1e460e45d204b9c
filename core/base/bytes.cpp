// SPDX-License-Identifier: Apache-2.0
#include "core/base/bytes.h"

namespace kvatlas {

void ByteWriter::varint(std::uint64_t value) {
    while (value >= 0x80) {
        m_out.push_back(static_cast<std::byte>(value | 0x80));
        value >>= 7;
    }
    m_out.push_back(static_cast<std::byte>(value));
}

void ByteWriter::signedVarint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void ByteWriter::bytes(std::span<const std::byte> data) {
    m_out.insert(m_out.end(), data.begin(), data.end());
}

void ByteWriter::text(std::string_view text) {
    varint(text.size());
    bytes(std::as_bytes(std::span(text)));
}

std::uint64_t ByteReader::varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const auto byte = fixed<std::uint8_t>();
        if (!m_ok)
            return 0;
        const std::uint64_t bits = byte & 0x7Fu;
        if (shift == 63 && bits > 1)
            break;
        value |= bits << shift;
        if ((byte & 0x80u) == 0)
            return value;
    }
    m_ok = false;
    return 0;
}

std::int64_t ByteReader::signedVarint() {
    const std::uint64_t raw = varint();
    return static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1);
}

std::span<const std::byte> ByteReader::bytes(std::size_t count) {
    if (!m_ok || count > remaining()) {
        m_ok = false;
        return {};
    }
    const auto data = m_data.subspan(m_at, count);
    m_at += count;
    return data;
}

std::string ByteReader::text() {
    const auto data = bytes(count());
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

std::size_t ByteReader::count(std::size_t minBytesEach) {
    const std::uint64_t n = varint();
    if (!m_ok || (minBytesEach > 0 && n > remaining() / minBytesEach)) {
        m_ok = false;
        return 0;
    }
    return static_cast<std::size_t>(n);
}

} // namespace kvatlas

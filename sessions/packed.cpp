// SPDX-License-Identifier: Apache-2.0
#include "sessions/packed.h"

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/trace/codec.h"
#include "sessions/schema.h"

#include <bit>
#include <cassert>
#include <memory>
#include <new>
#include <zstd.h>

namespace kvatlas::sessions {

std::int64_t blobChecksum(std::span<const std::int64_t> columns, std::span<const std::byte> blob) {
    const std::uint64_t seed = hash64(std::as_bytes(columns));
    return std::bit_cast<std::int64_t>(hash64(blob, seed));
}

std::int64_t metaChecksum(std::string_view key, std::string_view value) {
    StreamingHash hash;
    hash.update(std::as_bytes(std::span(key)));
    hash.update(std::as_bytes(std::span("", 1)));
    hash.update(std::as_bytes(std::span(value)));
    return std::bit_cast<std::int64_t>(hash.digest());
}

std::int64_t pieceChecksum(std::int64_t id, std::span<const std::byte> bytes) {
    return blobChecksum(std::span(&id, 1), bytes);
}

std::vector<std::byte> compress(std::span<const std::byte> raw) {
    std::vector<std::byte> frame(ZSTD_compressBound(raw.size()));
    const std::size_t size = ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 1);
    if (ZSTD_isError(size))
        throw std::bad_alloc(); // the bound rules out everything but memory
    frame.resize(size);
    return frame;
}

Result<std::vector<std::byte>> decompress(std::span<const std::byte> frame, std::int64_t rawBytes,
                                          std::int64_t maxRawBytes) {
    if (rawBytes < 0 || rawBytes > maxRawBytes)
        return makeError(ErrorKind::Refused, "its size of {} bytes is outside 0 to {}", rawBytes, maxRawBytes);
    const unsigned long long said = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (said != static_cast<unsigned long long>(rawBytes))
        return makeError(ErrorKind::Refused, "its compressed data does not hold the {} bytes it should", rawBytes);
    std::vector<std::byte> raw(static_cast<std::size_t>(rawBytes));
    const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size());
    if (ZSTD_isError(size) || size != raw.size())
        return makeError(ErrorKind::Refused, "its compressed data is damaged");
    return raw;
}

Result<std::vector<trace::Event>> decodeEvents(std::span<const std::byte> raw, std::int64_t events) {
    ByteReader head(raw);
    head.fixed<std::uint8_t>(); // the codec's version
    const std::uint64_t count = head.varint();
    if (!head.ok() || count > kMaxChunkEvents || count != static_cast<std::uint64_t>(events))
        return makeError(ErrorKind::Refused, "it does not hold the {} events it should", events);
    return trace::decode(raw);
}

} // namespace kvatlas::sessions

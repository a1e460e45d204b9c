// SPDX-License-Identifier: Apache-2.0
// The blobs of a session: zstd frames under an XXH3-64 checksum that covers the columns beside them too. Any thread.
#pragma once

#include "core/base/result.h"
#include "core/trace/event.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvatlas::sessions {

// XXH3-64 over the blob, seeded with XXH3-64 over the columns (each 8 bytes little-endian, in the order of the table).
std::int64_t blobChecksum(std::span<const std::int64_t> columns, std::span<const std::byte> blob);
std::int64_t metaChecksum(std::string_view key, std::string_view value); // over key, one zero byte, value
std::int64_t pieceChecksum(std::int64_t id, std::span<const std::byte> bytes);

std::vector<std::byte> compress(std::span<const std::byte> raw); // zstd level 1, content size in the frame

// Refuses a frame whose size is not rawBytes or is above maxRawBytes before anything is allocated.
Result<std::vector<std::byte>> decompress(std::span<const std::byte> frame, std::int64_t rawBytes,
                                          std::int64_t maxRawBytes);

// trace::decode, after a look at the count: at most kMaxChunkEvents, and exactly `events`.
Result<std::vector<trace::Event>> decodeEvents(std::span<const std::byte> raw, std::int64_t events);

} // namespace kvatlas::sessions

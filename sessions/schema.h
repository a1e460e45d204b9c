// SPDX-License-Identifier: Apache-2.0
// The frozen facts of a session file: ids, limits, the SQL of every table, index and view. FORMAT.md describes them for
// people. A change of anything here needs a new kSchemaVersion and a new sample in samples/. Plain data, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kvatlas::sessions {

constexpr std::uint32_t kApplicationId = 0x4B564154; // "KVAT"
constexpr std::uint32_t kSchemaVersion = 1;
constexpr std::string_view kSalvaged = "salvaged"; // end_reason of what salvageSession() wrote

constexpr std::int64_t kEventTrack = 0;      // chunks.track of the event stream
constexpr std::int64_t kCodecZstdEvents = 1; // chunks.codec: zstd over trace::encode
constexpr std::int64_t kCodecZstdState = 1;  // keyframes.codec: zstd over state::CacheState::encode

// A chunk is closed when its events take this many bytes before compression, or at kMaxChunkEvents. 128 KiB decode in
// about 1 ms, which a scrubbing user does not notice, and compress as well as 256 KiB (within 1 %).
constexpr std::size_t kChunkRawBytes = 128 * 1024;
constexpr std::size_t kMaxChunkEvents = 65'536;

// What a reader accepts; a writer stops before it.
constexpr std::int64_t kMaxChunkRawBytes = 32LL << 20;
constexpr std::int64_t kMaxKeyframeRawBytes = 256LL << 20;
constexpr std::int64_t kMaxIndexRows = 4'000'000; // chunks or keyframes
constexpr std::int64_t kMaxPieceBytes = 64 << 20; // all pieces together

// A keyframe is due after this many steps, or when the events since the last one take more bytes than it (and at least
// kMinKeyframeEventBytes, so that a tiny pool does not write one every few steps).
constexpr std::uint32_t kKeyframeSteps = 256;
constexpr std::size_t kMinKeyframeEventBytes = 64 * 1024;

struct SchemaObject {
    std::string_view type; // as sqlite_schema says it: "table", "index", "view"
    std::string_view name;
    std::string_view sql; // as sqlite_schema stores it, byte for byte
};

std::span<const SchemaObject> schemaObjects();

} // namespace kvatlas::sessions

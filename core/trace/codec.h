// SPDX-License-Identifier: Apache-2.0
// A batch of events as bytes: what the session file's event chunks hold (before compression). Any thread.
//
// Version 1, all numbers LEB128 varints unless said otherwise, signed ones zigzag:
//   version u8 = 1, count, then per event: kind u8 (the frozen id), step and ns as signed differences from the event
//   before (from 0 for the first), then the fields in the order of event.h.
//   Text: length, bytes. List: count, elements. Block list: count, then signed differences from the block before (from
//   0). bool and enum: u8. stateHash: u64 fixed. Probability: f32 fixed, finite.
//
// decode is strict: an unknown kind, an enum outside its values, a number too large for its field, a count that cannot
// follow, bytes left over are errors that name the event and the byte. An unknown kind is not skipped: a state folded
// without it would be wrong. A new kind therefore needs a new schema version of the session file.
#pragma once

#include "core/base/result.h"
#include "core/trace/event.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvatlas::trace {

constexpr std::uint8_t kCodecVersion = 1;

// REQUIRES: no monostate among the events.
std::vector<std::byte> encode(std::span<const Event> events);
void encodeTo(std::vector<std::byte>& out, std::span<const Event> events); // appends

// Memory: at most sizeof(Event) for each 4 bytes of input, whatever the bytes say. The caller bounds the input.
Result<std::vector<Event>> decode(std::span<const std::byte> data);

} // namespace kvatlas::trace

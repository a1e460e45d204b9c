// SPDX-License-Identifier: Apache-2.0
// An element's hash is XXH3-64 with seed 0 over 24 bytes, three u64 little-endian. Session files store sums of these:
// the packing never changes.
//   block     1 | kind << 8,                            block | references << 32,        usedSlots
//   table     2 | logical << 32,                        sequence | block << 32,          0
//   sequence  3,                                        sequence | slotsWritten << 32,   request
//   request   4 | status << 8 | promptTokens << 32,     outputTokens | preemptions << 32, request
#include "core/trace/state_hash.h"

#include "core/base/hash.h"

#include <array>
#include <span>

namespace kvatlas::trace {

namespace {

std::uint64_t low(std::uint32_t value) {
    return value;
}
std::uint64_t high(std::uint32_t value) {
    return std::uint64_t{value} << 32;
}

std::uint64_t element(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const std::array<std::uint64_t, 3> words{a, b, c};
    return hash64(std::as_bytes(std::span(words)));
}

} // namespace

std::uint64_t blockElement(BlockId block, BlockKind kind, std::uint32_t references, std::uint32_t usedSlots) {
    return element(1 | std::uint64_t{static_cast<std::uint8_t>(kind)} << 8, low(block.value) | high(references),
                   usedSlots);
}

std::uint64_t tableElement(SequenceId sequence, std::uint32_t logical, BlockId block) {
    return element(2 | high(logical), low(sequence.value) | high(block.value), 0);
}

std::uint64_t sequenceElement(SequenceId sequence, RequestId request, std::uint32_t slotsWritten) {
    return element(3, low(sequence.value) | high(slotsWritten), request.value);
}

std::uint64_t requestElement(RequestId request, RequestStatus status, std::uint32_t promptTokens,
                             std::uint32_t outputTokens, std::uint32_t preemptions) {
    return element(4 | std::uint64_t{static_cast<std::uint8_t>(status)} << 8 | high(promptTokens),
                   low(outputTokens) | high(preemptions), request.value);
}

const char* wordOf(BlockKind kind) {
    switch (kind) {
    case BlockKind::Free:
        return "free";
    case BlockKind::Active:
        return "active";
    case BlockKind::Cached:
        return "cached";
    case BlockKind::Reserved:
        return "reserved";
    }
    return "unknown";
}

const char* wordOf(RequestStatus status) {
    switch (status) {
    case RequestStatus::Waiting:
        return "waiting";
    case RequestStatus::Running:
        return "running";
    case RequestStatus::Preempted:
        return "preempted";
    }
    return "unknown";
}

} // namespace kvatlas::trace

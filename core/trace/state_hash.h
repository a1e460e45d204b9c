// SPDX-License-Identifier: Apache-2.0
// The hash of a cache's state, kept up to date in O(1) per change: the wrapping sum of one XXH3-64 per element, so that
// the order of changes does not matter. The engine keeps one over its own structures, CacheState another over what it
// folded from events; after every StepEnded the two are equal. Times are left out. One thread.
#pragma once

#include "core/base/ids.h"

#include <cstdint>

namespace kvatlas::trace {

enum class BlockKind : std::uint8_t { Free = 0, Active = 1, Cached = 2, Reserved = 3 };
enum class RequestStatus : std::uint8_t { Waiting = 1, Running = 2, Preempted = 3 };

// "reserved", "preempted"; "unknown" for a number that is none of them.
const char* wordOf(BlockKind kind);
const char* wordOf(RequestStatus status);

// Elements. A free block, an ended sequence and a finished request are no elements.
std::uint64_t blockElement(BlockId block, BlockKind kind, std::uint32_t references, std::uint32_t usedSlots);
std::uint64_t tableElement(SequenceId sequence, std::uint32_t logical, BlockId block);
std::uint64_t sequenceElement(SequenceId sequence, RequestId request, std::uint32_t slotsWritten);
std::uint64_t requestElement(RequestId request, RequestStatus status, std::uint32_t promptTokens,
                             std::uint32_t outputTokens, std::uint32_t preemptions);

class StateHash {
public:
    void add(std::uint64_t element) { m_value += element; }
    void remove(std::uint64_t element) { m_value -= element; }
    std::uint64_t value() const { return m_value; } // of the empty state: 0

private:
    std::uint64_t m_value = 0;
};

} // namespace kvatlas::trace

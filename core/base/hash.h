// SPDX-License-Identifier: Apache-2.0
// XXH3-64 (xxHash 0.8) over bytes: checksums of stored chunks, state hashes, logits hashes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kvatlas {

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// The hash of bytes that arrive in pieces: equal to hash64 over their concatenation. One thread at a time.
class StreamingHash {
public:
    StreamingHash();
    ~StreamingHash();
    StreamingHash(StreamingHash&&) noexcept;
    StreamingHash& operator=(StreamingHash&&) noexcept;

    void update(std::span<const std::byte> bytes);
    std::uint64_t digest() const; // of everything so far; more may follow

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace kvatlas

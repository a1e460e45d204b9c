// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash.h"

#include <new>
#include <xxhash.h>

namespace kvatlas {

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct StreamingHash::State {
    XXH3_state_t* xxh = XXH3_createState();
    State() {
        if (!xxh)
            throw std::bad_alloc();
        XXH3_64bits_reset(xxh);
    }
    ~State() { XXH3_freeState(xxh); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
};

StreamingHash::StreamingHash()
    : m_state(std::make_unique<State>()) {}
StreamingHash::~StreamingHash() = default;
StreamingHash::StreamingHash(StreamingHash&&) noexcept = default;
StreamingHash& StreamingHash::operator=(StreamingHash&&) noexcept = default;

void StreamingHash::update(std::span<const std::byte> bytes) {
    XXH3_64bits_update(m_state->xxh, bytes.data(), bytes.size());
}

std::uint64_t StreamingHash::digest() const {
    return XXH3_64bits_digest(m_state->xxh);
}

} // namespace kvatlas

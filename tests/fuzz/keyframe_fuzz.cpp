// SPDX-License-Identifier: Apache-2.0
// Bytes as a keyframe: decoded or refused; what is decoded is a sound state that encodes and decodes to itself.
// (libFuzzer learns the right hash at the end from the comparison.)
#include "core/state/cache_state.h"
#include "core/state/invariants.h"

#include <cstdio>
#include <cstdlib>

using namespace kvatlas;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    auto decoded = state::CacheState::decode(bytes);
    if (!decoded)
        return 0;
    std::size_t blocks = 0;
    for (std::size_t i = 0; i < decoded->poolCount(); ++i)
        blocks += decoded->pool(i).shape->blocks;
    if (blocks > 65'536)
        return 0; // sound or not, looking at each would be slow
    if (const auto sound = state::checkInvariants(*decoded->snapshot()); !sound) {
        std::fputs(sound.error().message.c_str(), stderr);
        std::abort();
    }
    const auto again = state::CacheState::decode(decoded->encode());
    if (!again || again->stateHash() != decoded->stateHash())
        std::abort();
    return 0;
}

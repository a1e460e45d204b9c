// SPDX-License-Identifier: Apache-2.0
// Bytes as an event chunk: decoded or refused; what is decoded encodes and decodes to itself and folds without harm.
#include "core/state/cache_state.h"
#include "core/state/invariants.h"
#include "core/trace/codec.h"

#include <cstdio>
#include <cstdlib>

using namespace kvatlas;

namespace {

// A fold of a pool with more blocks would be slow, not wrong.
constexpr std::uint32_t kMostBlocks = 4096;

bool tooLarge(const trace::Event& event) {
    const auto* run = std::get_if<trace::RunStarted>(&event.body);
    if (!run)
        return false;
    std::uint64_t blocks = 0;
    for (const trace::PoolShape& pool : run->pools)
        blocks += pool.blocks;
    return blocks > kMostBlocks;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto events = trace::decode(std::as_bytes(std::span(data, size)));
    if (!events)
        return 0;
    if (trace::decode(trace::encode(*events)).value() != *events)
        std::abort();
    state::CacheState folded;
    for (const trace::Event& event : *events) {
        if (tooLarge(event))
            return 0;
        (void)folded.apply(event);
    }
    if (const auto sound = state::checkInvariants(*folded.snapshot()); !sound) {
        std::fputs(sound.error().message.c_str(), stderr);
        std::abort();
    }
    return 0;
}

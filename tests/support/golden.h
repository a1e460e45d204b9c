// SPDX-License-Identifier: Apache-2.0
// The golden record of a session: the state hash at each keyframe and at the end, as its events fold from nothing.
#pragma once

#include "core/state/cache_state.h"
#include "sessions/reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

namespace kvatlas::test {

// Every event of the file, folded in order; the recorded hashes are not looked at.
inline Result<nlohmann::ordered_json> goldenOf(const std::string& path) {
    auto opened = sessions::SessionReader::open(path);
    if (!opened)
        return tl::unexpected(opened.error());
    sessions::SessionReader& reader = **opened;
    const auto hex = [](std::uint64_t hash) { return fmt::format("{:016x}", hash); };
    nlohmann::ordered_json keyframes = nlohmann::ordered_json::array();
    state::CacheState state;
    std::int64_t folded = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < reader.chunks().size(); ++i) {
        const auto events = reader.chunkEvents(i);
        if (!events)
            return tl::unexpected(events.error());
        for (const trace::Event& event : **events) {
            if (auto fits = state.apply(event); !fits)
                return tl::unexpected(fits.error());
            ++folded;
            while (next < reader.keyframes().size() && reader.keyframes()[next].firstEvent == folded)
                keyframes.push_back(
                    {{"step", reader.keyframes()[next++].step}, {"state_hash", hex(state.stateHash())}});
        }
    }
    return nlohmann::ordered_json{{"schema", reader.info().schema}, {"events", reader.info().events},
                                  {"steps", reader.info().steps},   {"keyframes", std::move(keyframes)},
                                  {"last_step", state.step()},      {"state_hash", hex(state.stateHash())}};
}

} // namespace kvatlas::test

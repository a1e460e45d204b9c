// SPDX-License-Identifier: Apache-2.0
// Writes what can still be read of a damaged or interrupted session into a new, finished one. Any thread.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvatlas::sessions {

struct SalvageResult {
    std::uint64_t events = 0, steps = 0; // of the new file
    std::uint64_t lostEvents = 0;        // known to be missing
    std::vector<std::string> damaged;    // what could not be read, or is odd about the new file; one sentence each
};

// A stream has no holes, so the new file holds the longest unbroken part that a state is known for: from the beginning,
// or from a keyframe after the damage, whichever gives more events. `from` is not changed; `to` must not exist.
Result<SalvageResult> salvageSession(const std::string& from, const std::string& to);

} // namespace kvatlas::sessions

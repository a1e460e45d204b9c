// SPDX-License-Identifier: Apache-2.0
// Reads a session through and through: SQLite's own integrity check, every checksum, every event, the state after every
// step, and every row against the events. A session that is being recorded is checked as of one moment. Any thread;
// takes as long as the file is long.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvatlas::sessions {

struct CheckResult {
    bool ok = false; // nothing is damaged; an interrupted recording may well be ok
    std::uint32_t schema = 0;
    std::uint64_t events = 0, steps = 0, keyframes = 0;
    bool endedCleanly = false;
    std::vector<std::string> damaged; // one sentence each
    std::string hint;                 // of SessionInfo
};

// The error: the file cannot be opened at all.
Result<CheckResult> checkSession(const std::string& path);

} // namespace kvatlas::sessions

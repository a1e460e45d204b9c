// SPDX-License-Identifier: Apache-2.0
// A new, empty session file appears under its name complete or not at all. Any thread.
#pragma once

#include "core/base/result.h"

#include <string>

namespace kvatlas::sessions {

// Schema written, in WAL mode, closed. Returns the path with links resolved. Never replaces a file: one that is there
// (another recording, an older session, a left-over -wal) is refused with a sentence.
Result<std::string> createSessionFile(const std::string& path);

} // namespace kvatlas::sessions

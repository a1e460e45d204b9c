// SPDX-License-Identifier: Apache-2.0
// A session in formats that other programs read. Text is UTF-8; numbers have '.' whatever the locale; CSV follows RFC
// 4180 (CRLF, quotes doubled). Any thread; the reader is used on the calling one. Written piece by piece: memory stays
// small. A session that is being recorded is exported as of one moment: the reader is held.
#pragma once

#include "core/base/result.h"
#include "sessions/reader.h"

#include <functional>
#include <string_view>

namespace kvatlas::sessions {

enum class ExportKind {
    StepsCsv,
    RequestsCsv,
    EventsNdjson, // one event a line, fields as in FORMAT.md
    EventsSql,    // the chunks expanded: CREATE TABLE events and its rows, for the sqlite3 shell
    Trace,        // Chrome and Perfetto JSON: steps and kernels as slices, requests as async spans, memory as counters
};

// Returns false when it cannot take more (the reader of a pipe has gone): the export ends with an error.
using TextSink = std::function<bool(std::string_view)>;

Result<void> exportSession(SessionReader& reader, ExportKind kind, const TextSink& sink);

} // namespace kvatlas::sessions

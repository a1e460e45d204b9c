// SPDX-License-Identifier: Apache-2.0
// Opens a session file that may have been made to do harm: read-only, nothing in it is executed, its schema is compared
// with ours before the first row is read, and every query has a time limit. Neither the file nor its -wal is changed.
// One thread per OpenedFile; TimeLimit on any thread.
#pragma once

#include "core/base/result.h"
#include "sessions/sqlite.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace kvatlas::sessions {

// Ends the query that runs when the time is over or cancel() was called.
class TimeLimit {
public:
    void start(std::chrono::milliseconds limit);
    void cancel() { m_cancelled = true; }
    bool isOver() const;

private:
    std::atomic<std::int64_t> m_untilNs{0}; // steady clock; 0: no limit
    std::atomic<bool> m_cancelled{false};
};

struct OpenedFile {
    std::unique_ptr<TimeLimit> limit; // outlives the database
    // When the folder is read-only and a -wal must be read: a private copy, deleted at the end.
    std::shared_ptr<void> copy;
    Database database;
    std::string path; // with links resolved
    std::uint32_t schemaVersion = 0;
    bool walMode = false; // not finished, or being recorded now
    std::string note;     // one sentence about what is odd about the file or lay beside it; may be empty
};

// cutToo: a file that is shorter than its header says is opened as well; queries end where the missing pages begin.
Result<OpenedFile> openSessionFile(const std::string& path, std::chrono::milliseconds timeLimit, bool cutToo = false);

} // namespace kvatlas::sessions

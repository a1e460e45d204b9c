// SPDX-License-Identifier: Apache-2.0
// Writes one session file, synchronously: what the recorder's thread and salvage use. One thread. A file that is there
// already is never touched. After a failed commit everything appended since the last good one is still in memory and
// the next commit tries again.
#pragma once

#include "core/base/result.h"
#include "sessions/row_collector.h"
#include "sessions/sqlite.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvatlas::sessions {

struct WriterCounts {
    std::uint64_t events = 0, steps = 0, chunks = 0, keyframes = 0;
    Step lastStep = 0; // the newest that has ended, when steps > 0
};

class SessionWriter {
public:
    // piece: the bytes of a vocabulary entry, called on the writer's thread; may be empty.
    // attributes: further rows of `meta`.
    static Result<std::unique_ptr<SessionWriter>> create(const std::string& path,
                                                         std::function<std::string(TokenId)> piece,
                                                         const std::map<std::string, std::string>& attributes = {});
    ~SessionWriter();
    SessionWriter(const SessionWriter&) = delete;
    SessionWriter& operator=(const SessionWriter&) = delete;

    void append(std::span<trace::Event> events); // moved from; memory only
    // The run is joined after `step`, in the given state. REQUIRES: nothing appended yet.
    Result<void> appendKeyframe(Step step, std::span<const std::byte> keyframe);
    void putMeta(const std::string& key, const std::string& value);

    // Everything appended so far, in one transaction. The file was moved or deleted: an error.
    Result<void> commit();

    // The end marker, then checkpoint and out of WAL mode, so that the file opens from a read-only folder. The writer
    // is closed afterwards. Gives a sentence when the file is complete but has stayed in WAL mode (another program has
    // it open), else an empty one.
    Result<std::string> finish(const std::string& reason);

    void close(); // as it is, without an end marker

    const WriterCounts& written() const { return m_committed; } // as of the last good commit
    const WriterCounts& counts() const { return m_counts; }     // appended
    const RowCollector& rows() const { return m_rows; }
    const std::string& path() const { return m_path; }
    // After a failed commit: whether the cause may pass (disk full, disk or file busy).
    bool failureMayPass() const { return m_mayPass; }
    // After a failed commit: whether the file is no longer at path().
    bool fileIsGone() const { return m_gone; }

private:
    struct Blob {
        std::int64_t key = 0; // chunk id or keyframe step
        std::int64_t firstEvent = 0, events = 0;
        Step firstStep = 0, lastStep = 0;
        std::int64_t stateHash = 0, rawBytes = 0;
        std::vector<std::byte> data;
    };
    struct Statements;

    SessionWriter() = default;
    static Result<std::unique_ptr<SessionWriter>> open(const std::string& realPath,
                                                       std::function<std::string(TokenId)> piece,
                                                       const std::map<std::string, std::string>& attributes);
    void closeTail();
    Blob packTail() const;
    void noteKeyframe(const trace::Event& event);
    Result<void> writeAll();
    Result<void> writeChunk(const Blob& chunk);
    Result<void> writeKeyframes();
    Result<void> writeRows();
    Result<void> writeMeta(const std::string& key, const std::string& value);
    Result<std::string> leaveWal();

    std::string m_path;
    std::function<std::string(TokenId)> m_piece;
    Database m_database;
    std::unique_ptr<Statements> m_statements;
    RowCollector m_rows;
    std::map<std::string, std::string> m_meta;
    std::vector<trace::Event> m_tail; // the events of the chunk that is still growing
    std::size_t m_tailRawBytes = 0;   // about
    std::int64_t m_tailId = 1;
    std::int64_t m_tailFirstEvent = 0;
    std::vector<Blob> m_chunks, m_keyframes; // to be written
    Step m_keyframeStep = 0;                 // where the next one is counted from
    std::size_t m_keyframeBytes = 0, m_bytesSinceKeyframe = 0;
    std::vector<std::byte> m_scratch;
    WriterCounts m_counts, m_committed;
    std::int64_t m_session = 0; // random; binds chunks and keyframes to this file
    bool m_dirty = false;
    bool m_mayPass = false, m_gone = false;
};

} // namespace kvatlas::sessions

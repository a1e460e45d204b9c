// SPDX-License-Identifier: Apache-2.0
// Records a stream into a session file, on a thread of its own. A sink never waits for the disk unless the queue is
// full (the wait is counted); a disk that does not keep up for 2 s ends the recording with a sentence, never the run.
//
// Threads: onEvents, onKeyframe, onEnd on the delivery thread; everything else on any thread.
// Errors: create() says what stands in the way. Later ones (disk full, file-size limit, file deleted, disk stalled) are
// one sentence in status().error; the recording then stays stopped, everything acknowledged stays readable, and the run
// goes on. A shortage that passes within 2 s ends nothing: the failed transaction is repeated. A new recording is a new
// file.
#pragma once

#include "core/base/result.h"
#include "core/trace/event_sink.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace kvatlas::sessions {

struct RecorderOptions {
    // The bytes of a vocabulary entry, called on the recorder's thread; empty: the file has no texts.
    std::function<std::string(TokenId)> piece{};
    std::map<std::string, std::string> attributes{}; // further rows of `meta`

    std::chrono::milliseconds transaction{100}; // from one commit to the next
    std::chrono::milliseconds stall{2000};      // that ends a recording
    std::size_t queueEvents = 65'536;           // 25 MiB of events; a tenth of a second at the engine's fastest
    std::function<void()> beforeCommit{};       // on the recorder's thread; tests let the "disk" stall here
};

struct RecorderStatus {
    std::string path;             // with links resolved
    std::string error;            // empty, or why the recording stopped early
    std::string note;             // empty, or what is odd about the complete file
    bool recording = false;       // events are still accepted
    std::uint64_t events = 0;     // acknowledged: committed, will be there after a kill
    std::uint64_t steps = 0;      // acknowledged
    Step lastStep = 0;            // the newest acknowledged one that has ended, when steps > 0
    std::uint64_t bytes = 0;      // of the file and its -wal
    std::int64_t waitedNs = 0;    // the delivery thread waited for room in the queue, in all
    std::uint64_t lostEvents = 0; // delivered after the recording had stopped, or in the queue when it did
};

class SessionRecorder final : public trace::EventSink {
public:
    // The file must not exist. Its folder must.
    static Result<std::unique_ptr<SessionRecorder>> create(const std::string& path, RecorderOptions options = {});
    ~SessionRecorder() override; // stops

    void onEvents(std::span<const trace::Event> events) override;
    // First: a run that is joined under way. Later it ends the recording: a session is one unbroken stream.
    void onKeyframe(Step step, std::span<const std::byte> keyframe) override;
    void onEnd() override; // writes the end marker; returns at once

    // Returns when everything delivered before is committed and readable. An error when the recording has stopped or
    // the disk does not answer within the time of a stall.
    Result<void> flush();

    // Writes what is queued and the end marker, leaves WAL mode, closes. Close every reader of the file before: SQLite
    // leaves WAL mode only for the last connection. Twice is once. The error, if any, is also in status().
    Result<void> stop();

    RecorderStatus status() const;
    std::string problem() const; // error or note of status(), without a look at the disk
    const std::string& path() const;

private:
    struct Impl;
    explicit SessionRecorder(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> m_impl; // shared with the thread, which a hanging disk may keep longer than us
    std::thread m_thread;
};

} // namespace kvatlas::sessions

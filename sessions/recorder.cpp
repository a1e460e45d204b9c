// SPDX-License-Identifier: Apache-2.0
#include "sessions/recorder.h"

#include "sessions/session_writer.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

namespace kvatlas::sessions {

using SteadyTime = std::chrono::steady_clock::time_point;

struct SessionRecorder::Impl {
    RecorderOptions options;
    std::string path;
    std::unique_ptr<SessionWriter> writer; // the recorder's thread only

    mutable std::mutex mutex;
    std::condition_variable workDue;  // for the recorder's thread
    std::condition_variable workDone; // for onEvents, flush and stop
    std::vector<trace::Event> queue;
    std::optional<std::pair<Step, std::vector<std::byte>>> keyframe; // comes before the queue
    std::uint64_t delivered = 0;                                     // events accepted so far
    bool sinceFlush = false;                                         // a flush is wanted that no commit has served
    bool ending = false; // no more events are accepted; write the rest and the end marker
    std::string endReason;
    bool finished = false; // the thread is done
    RecorderStatus status;

    void run();
    bool writeOut(std::span<trace::Event> events);
    Result<void> repeatUntilStall(const std::function<Result<void>()>& action);
    void fail(const std::string& sentence);
    void noteCommitted(); // with the mutex held
};

SessionRecorder::SessionRecorder(std::shared_ptr<Impl> impl)
    : m_impl(std::move(impl))
    , m_thread([shared = m_impl] { shared->run(); }) {}

Result<std::unique_ptr<SessionRecorder>> SessionRecorder::create(const std::string& path, RecorderOptions options) {
    auto writer = SessionWriter::create(path, options.piece, options.attributes);
    if (!writer)
        return tl::unexpected(writer.error());
    auto impl = std::make_shared<Impl>();
    impl->options = std::move(options);
    impl->path = (*writer)->path();
    impl->writer = std::move(*writer);
    impl->status.path = impl->path;
    impl->status.recording = true;
    impl->noteCommitted();
    return std::unique_ptr<SessionRecorder>(new SessionRecorder(std::move(impl)));
}

SessionRecorder::~SessionRecorder() {
    (void)stop();
}

void SessionRecorder::onEvents(std::span<const trace::Event> events) {
    Impl& impl = *m_impl;
    std::unique_lock lock(impl.mutex);
    const auto hasRoom = [&] {
        return impl.ending || impl.queue.empty() || impl.queue.size() + events.size() <= impl.options.queueEvents;
    };
    if (!hasRoom()) {
        const SteadyTime began = std::chrono::steady_clock::now();
        impl.workDue.notify_one();
        const bool room = impl.workDone.wait_for(lock, impl.options.stall, hasRoom);
        impl.status.waitedNs += (std::chrono::steady_clock::now() - began).count();
        if (!room)
            impl.fail(
                fmt::format("The disk that holds '{}' did not keep up for {:.3g} s: the recording has stopped, what "
                            "was written before stays readable.",
                            impl.path, std::chrono::duration<double>(impl.options.stall).count()));
    }
    if (impl.ending) {
        impl.status.lostEvents += events.size();
        return;
    }
    impl.queue.insert(impl.queue.end(), events.begin(), events.end());
    impl.delivered += events.size();
    if (impl.queue.size() >= impl.options.queueEvents / 2)
        impl.workDue.notify_one();
}

void SessionRecorder::onKeyframe(Step step, std::span<const std::byte> keyframe) {
    const std::lock_guard lock(m_impl->mutex);
    if (m_impl->ending)
        return;
    if (m_impl->delivered > 0 || m_impl->keyframe) {
        m_impl->fail(fmt::format("The run jumped to step {}: a session is one unbroken stream, so '{}' ends before it.",
                                 step, m_impl->path));
        return;
    }
    m_impl->keyframe.emplace(step, std::vector<std::byte>(keyframe.begin(), keyframe.end()));
}

void SessionRecorder::onEnd() {
    const std::lock_guard lock(m_impl->mutex);
    if (m_impl->ending)
        return;
    m_impl->ending = true;
    m_impl->endReason = "run ended";
    m_impl->workDue.notify_one();
}

Result<void> SessionRecorder::flush() {
    Impl& impl = *m_impl;
    std::unique_lock lock(impl.mutex);
    const std::uint64_t wanted = impl.delivered;
    impl.sinceFlush = true;
    impl.workDue.notify_one();
    impl.workDone.wait_for(lock, impl.options.stall,
                           [&] { return impl.finished || !impl.status.error.empty() || impl.status.events >= wanted; });
    if (impl.status.events >= wanted)
        return {};
    if (impl.status.error.empty())
        return makeError(ErrorKind::Failed, "The disk that holds '{}' does not answer.", impl.path);
    return makeError(ErrorKind::Failed, "{}", impl.status.error);
}

Result<void> SessionRecorder::stop() {
    Impl& impl = *m_impl;
    std::unique_lock lock(impl.mutex);
    if (!impl.ending) {
        impl.ending = true;
        impl.endReason = "recording stopped";
    }
    impl.workDue.notify_one();
    // A disk that answers is waited for however long it takes; one that hung before gets the same time once more.
    if (impl.status.error.empty())
        impl.workDone.wait(lock, [&] { return impl.finished; });
    else
        impl.workDone.wait_for(lock, impl.options.stall, [&] { return impl.finished; });
    const bool finished = impl.finished;
    const std::string error = impl.status.error;
    lock.unlock();
    if (m_thread.joinable()) {
        if (finished)
            m_thread.join();
        else
            m_thread.detach();
    }
    if (!error.empty())
        return makeError(ErrorKind::Failed, "{}", error);
    return {};
}

RecorderStatus SessionRecorder::status() const {
    RecorderStatus status;
    {
        const std::lock_guard lock(m_impl->mutex);
        status = m_impl->status;
    }
    std::error_code none;
    for (const char* suffix : {"", "-wal"})
        if (const auto size = std::filesystem::file_size(status.path + suffix, none); !none)
            status.bytes += size;
    return status;
}

std::string SessionRecorder::problem() const {
    const std::lock_guard lock(m_impl->mutex);
    return m_impl->status.error.empty() ? m_impl->status.note : m_impl->status.error;
}

const std::string& SessionRecorder::path() const {
    return m_impl->path;
}

// ---- the recorder's thread; `fail` also on the delivery thread, with the mutex held

void SessionRecorder::Impl::fail(const std::string& sentence) {
    if (status.error.empty())
        status.error = sentence;
    status.recording = false;
    status.lostEvents += queue.size();
    queue.clear();
    ending = true;
    workDue.notify_one();
    workDone.notify_all();
}

void SessionRecorder::Impl::noteCommitted() {
    status.events = writer->written().events;
    status.steps = writer->written().steps;
    status.lastStep = writer->written().lastStep;
}

// A disk that is full for a moment ends nothing. Half the time that a stall may take, so that the delivery thread,
// whose queue may be full meanwhile, is never kept that long.
Result<void> SessionRecorder::Impl::repeatUntilStall(const std::function<Result<void>()>& action) {
    const SteadyTime until = std::chrono::steady_clock::now() + options.stall / 2;
    Result<void> done = action();
    while (!done && writer->failureMayPass() && std::chrono::steady_clock::now() < until) {
        std::unique_lock lock(mutex);
        if (!status.error.empty())
            break;
        lock.unlock();
        std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(options.stall / 10, options.transaction));
        done = action();
    }
    return done;
}

bool SessionRecorder::Impl::writeOut(std::span<trace::Event> events) {
    if (options.beforeCommit)
        options.beforeCommit();
    writer->append(events);
    const auto committed = repeatUntilStall([this] { return writer->commit(); });
    const std::lock_guard lock(mutex);
    if (!committed) {
        fail(committed.error().message + (writer->fileIsGone()
                                              ? " The recording has stopped."
                                              : " The recording has stopped; what was written before stays readable."));
        return false;
    }
    noteCommitted();
    return true;
}

void SessionRecorder::Impl::run() {
    std::unique_lock lock(mutex);
    bool healthy = true;
    std::vector<trace::Event> events;
    while (healthy) {
        workDue.wait_for(lock, options.transaction,
                         [&] { return ending || sinceFlush || queue.size() >= options.queueEvents / 2; });
        if (!status.error.empty())
            break;
        const bool last = ending;
        sinceFlush = false;
        events.clear(); // keeps its memory: the two vectors change places
        events.swap(queue);
        auto joined = std::exchange(keyframe, std::nullopt);
        workDone.notify_all(); // room in the queue
        lock.unlock();
        if (joined)
            if (auto started = writer->appendKeyframe(joined->first, joined->second); !started) {
                lock.lock();
                fail(fmt::format("The state at which the recording of '{}' should begin is not valid: {}", path,
                                 started.error().message));
                break;
            }
        healthy = writeOut(events);
        lock.lock();
        workDone.notify_all();
        if (last && healthy) {
            lock.unlock();
            const auto ended = writer->finish(endReason);
            lock.lock();
            if (ended) {
                noteCommitted();
                status.note = *ended;
            } else if (status.error.empty()) {
                status.error = ended.error().message;
            }
            break;
        }
    }
    const bool gone = writer->fileIsGone();
    lock.unlock();
    writer.reset(); // closes the file; may wait for the disk
    lock.lock();
    std::error_code none;
    if (!status.error.empty() && std::filesystem::file_size(path + "-wal", none) > 0 && !none)
        status.error += gone ? fmt::format(" If you moved it, move '{}-wal' along, under its new name and '-wal': what "
                                           "was recorded last is in there.",
                                           path)
                             : fmt::format(" Keep '{0}' and '{0}-wal' together.", path);
    status.recording = false;
    finished = true;
    workDone.notify_all();
}

} // namespace kvatlas::sessions

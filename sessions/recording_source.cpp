// SPDX-License-Identifier: Apache-2.0
#include "sessions/recording_source.h"

#include "sessions/answer_worker.h"
#include "sessions/reader.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>

namespace kvatlas::sessions {

namespace {

namespace fs = std::filesystem;

// Deleted with all that is in it; nothing when the path is empty.
struct TemporaryHome {
    fs::path path;
    TemporaryHome() = default;
    TemporaryHome(const TemporaryHome&) = delete;
    TemporaryHome& operator=(const TemporaryHome&) = delete;
    ~TemporaryHome() {
        std::error_code ignored;
        if (!path.empty())
            fs::remove_all(path, ignored);
    }
};

} // namespace

struct RecordingSource::Impl {
    // Into the recorder first, so that what the sink has seen can be asked about.
    struct Tee final : trace::EventSink {
        explicit Tee(Impl& impl)
            : owner(impl) {}
        void onEvents(std::span<const trace::Event> events) override {
            owner.recorder->onEvents(events);
            owner.sink->onEvents(events);
        }
        void onKeyframe(Step step, std::span<const std::byte> keyframe) override {
            owner.recorder->onKeyframe(step, keyframe);
            owner.sink->onKeyframe(step, keyframe);
        }
        void onEnd() override {
            owner.sink->onEnd();
            owner.runEnded = !owner.stopping;
            owner.worker->post([this] { owner.closeFile(); });
        }
        Impl& owner;
    };

    TemporaryHome temporary;
    std::shared_ptr<source::EventSource> live;
    std::unique_ptr<SessionRecorder> recorder;
    trace::EventSink* sink = nullptr;
    Tee tee{*this};
    std::unique_ptr<SessionReader> reader; // the worker's thread; after it, stop()'s
    std::unique_ptr<AnswerWorker> worker;
    std::atomic<bool> runEnded{false};
    std::atomic<bool> stopping{false}; // the source ends because it was told to

    AnswerBody answer(const source::Question& question);
    void closeFile();
};

RecordingSource::RecordingSource(std::unique_ptr<Impl> impl)
    : m_impl(std::move(impl)) {}

Result<std::unique_ptr<RecordingSource>> RecordingSource::create(std::shared_ptr<source::EventSource> live,
                                                                 RecordingOptions options) {
    auto impl = std::make_unique<Impl>();
    std::string path = options.path;
    if (path.empty()) {
        std::error_code failure;
        std::string home = (fs::temp_directory_path(failure) / "kvatlas-XXXXXX").string();
        if (failure || !::mkdtemp(home.data()))
            return makeError(ErrorKind::Failed, "There is no temporary folder to keep the run in; set TMPDIR.");
        impl->temporary.path = home;
        path = home + "/run.kvatlas";
    }
    RecorderOptions recording;
    recording.piece = [live](TokenId token) { return live->piece(token); };
    recording.attributes = std::move(options.attributes);
    auto recorder = SessionRecorder::create(path, std::move(recording));
    if (!recorder)
        return tl::unexpected(recorder.error());
    impl->recorder = std::move(*recorder);
    impl->live = std::move(live);
    Impl* raw = impl.get();
    impl->worker =
        std::make_unique<AnswerWorker>([raw](const source::Question& question) { return raw->answer(question); });
    return std::unique_ptr<RecordingSource>(new RecordingSource(std::move(impl)));
}

RecordingSource::~RecordingSource() {
    stop();
}

source::SourceInfo RecordingSource::info() const {
    source::SourceInfo info = m_impl->live->info();
    if (m_impl->temporary.path.empty())
        info.location = m_impl->recorder->path();
    info.recording = m_impl->recorder->problem();
    info.capabilities.seek = false; // a live run goes forward; its past is asked for
    return info;
}

Result<void> RecordingSource::start(trace::EventSink& sink) {
    m_impl->sink = &sink;
    return m_impl->live->start(m_impl->tee);
}

void RecordingSource::stop() {
    if (m_impl->stopping.exchange(true))
        return;
    m_impl->live->stop();
    m_impl->worker->stop();
    m_impl->closeFile();
}

void RecordingSource::send(source::Command command) {
    m_impl->live->send(std::move(command));
}

void RecordingSource::ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) {
    m_impl->worker->ask(tag, question, std::move(handler));
}

std::string RecordingSource::piece(TokenId token) const {
    return m_impl->live->piece(token);
}

RecorderStatus RecordingSource::recorderStatus() const {
    return m_impl->recorder->status();
}

// SQLite leaves WAL mode only when nobody else has the file open; a later question opens it again.
void RecordingSource::Impl::closeFile() {
    reader.reset();
    if (runEnded)
        recorder->onEnd();
    (void)recorder->stop(); // its error or note is in info()
}

AnswerBody RecordingSource::Impl::answer(const source::Question& question) {
    const auto flushed = recorder->flush();
    if (!reader) {
        auto opened = SessionReader::open(recorder->path());
        if (!opened)
            return opened.error();
        reader = std::move(*opened);
    }
    if (const auto* q = std::get_if<source::StateAt>(&question)) {
        auto answer = reader->stateAt(q->step);
        if (answer && !flushed && answer->step < q->step)
            return Error{ErrorKind::Failed,
                         fmt::format("Step {} was not recorded. {}", q->step, flushed.error().message)};
        return answerOf(std::move(answer));
    }
    if (const auto* q = std::get_if<source::History>(&question))
        return answerOf(reader->history(q->firstStep, q->lastStep, q->maxRows));
    if (auto fresh = reader->refresh(); !fresh)
        return fresh.error();
    return answerOf(reader->requestText(std::get<source::RequestText>(question).request));
}

} // namespace kvatlas::sessions

// SPDX-License-Identifier: Apache-2.0
#include "sessions/replay_source.h"

#include "sessions/answer_worker.h"
#include "sessions/playback_cursor.h"
#include "sessions/reader.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace kvatlas::sessions {

namespace {

using SteadyClock = std::chrono::steady_clock;

std::string titleOf(const SessionReader& reader) {
    const auto& meta = reader.info().meta;
    if (const auto scenario = meta.find("scenario"); scenario != meta.end()) {
        const auto json = nlohmann::json::parse(scenario->second, nullptr, false);
        if (json.is_object() && json.contains("name") && json["name"].is_string())
            if (auto name = json["name"].get<std::string>(); !name.empty())
                return name;
    }
    return std::filesystem::path(reader.info().path).filename().string();
}

} // namespace

struct ReplaySource::Impl {
    ReplayOptions options;
    std::string path, title;
    std::string knownFromStart;                      // what opening found damaged
    std::unordered_map<TokenId, std::string> pieces; // never changes

    // The playback thread's.
    std::unique_ptr<SessionReader> playReader;
    std::unique_ptr<PlaybackCursor> cursor;
    trace::EventSink* sink = nullptr;
    bool playing = true;
    bool atEnd = false;
    std::optional<Step> lostAt;  // a step that could not be read: the state is empty until the next one that can
    std::uint32_t stepsToGo = 0; // of StepForward
    std::optional<double> stepsPerSecond;
    std::int64_t lastEndNs = -1;     // recorded time of the last delivered step's end
    SteadyClock::time_point stepDue; // when the next step is to be delivered

    std::unique_ptr<SessionReader> askReader; // the worker's
    std::unique_ptr<AnswerWorker> worker;

    mutable std::mutex mutex;
    std::condition_variable wake;
    std::deque<source::Command> commands;
    bool started = false;
    std::atomic<bool> stopping{false};
    std::string problem;
    std::thread thread;

    void run();
    void obey(const source::Command& command);
    void seek(Step step);
    bool deliverStep(); // false at the end
    std::optional<PlaybackCursor::Part> nextPart();
    void deliver(PlaybackCursor::Part&& part);
    void noteProblem(const std::string& sentence);
    AnswerBody answer(const source::Question& question);
};

ReplaySource::ReplaySource(std::unique_ptr<Impl> impl)
    : m_impl(std::move(impl)) {}

Result<std::unique_ptr<ReplaySource>> ReplaySource::open(const std::string& path, ReplayOptions options) {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    for (auto* reader : {&impl->playReader, &impl->askReader}) {
        auto opened = SessionReader::open(path);
        if (!opened)
            return tl::unexpected(opened.error());
        *reader = std::move(*opened);
    }
    impl->path = impl->playReader->info().path;
    impl->title = titleOf(*impl->playReader);
    if (auto pieces = impl->askReader->pieces())
        impl->pieces = std::move(*pieces);
    if (!impl->playReader->damaged().empty())
        impl->problem = impl->knownFromStart = impl->playReader->damaged().front();
    impl->cursor = std::make_unique<PlaybackCursor>(*impl->playReader);
    impl->playing = !options.paused;
    Impl* raw = impl.get();
    impl->worker =
        std::make_unique<AnswerWorker>([raw](const source::Question& question) { return raw->answer(question); });
    return std::unique_ptr<ReplaySource>(new ReplaySource(std::move(impl)));
}

ReplaySource::~ReplaySource() {
    stop();
}

source::SourceInfo ReplaySource::info() const {
    source::SourceInfo info;
    info.title = m_impl->title;
    info.location = m_impl->path;
    info.capabilities = {.control = true, .submit = false, .seek = true, .live = false};
    const std::lock_guard lock(m_impl->mutex);
    info.recording = m_impl->problem;
    return info;
}

Result<void> ReplaySource::start(trace::EventSink& sink) {
    const std::lock_guard lock(m_impl->mutex);
    if (m_impl->started || m_impl->stopping)
        return makeError(ErrorKind::Failed, "The replay of '{}' has been started before.", m_impl->path);
    m_impl->started = true;
    m_impl->sink = &sink;
    m_impl->thread = std::thread([this] { m_impl->run(); });
    return {};
}

void ReplaySource::stop() {
    {
        const std::lock_guard lock(m_impl->mutex);
        m_impl->stopping = true;
    }
    m_impl->playReader->cancel();
    m_impl->askReader->cancel();
    m_impl->wake.notify_all();
    m_impl->worker->stop();
    if (m_impl->thread.joinable())
        m_impl->thread.join();
}

void ReplaySource::send(source::Command command) {
    {
        const std::lock_guard lock(m_impl->mutex);
        // Only the last of several seeks is worth its work (scrubbing).
        if (std::holds_alternative<source::Seek>(command) && !m_impl->commands.empty() &&
            std::holds_alternative<source::Seek>(m_impl->commands.back()))
            m_impl->commands.pop_back();
        m_impl->commands.push_back(std::move(command));
    }
    m_impl->wake.notify_all();
}

void ReplaySource::ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) {
    m_impl->worker->ask(tag, question, std::move(handler));
}

std::string ReplaySource::piece(TokenId token) const {
    const auto found = m_impl->pieces.find(token);
    return found == m_impl->pieces.end() ? std::string() : found->second;
}

// ---- the worker's thread

AnswerBody ReplaySource::Impl::answer(const source::Question& question) {
    if (const auto* q = std::get_if<source::StateAt>(&question))
        return answerOf(askReader->stateAt(q->step));
    if (const auto* q = std::get_if<source::History>(&question))
        return answerOf(askReader->history(q->firstStep, q->lastStep, q->maxRows));
    return answerOf(askReader->requestText(std::get<source::RequestText>(question).request));
}

// ---- the playback thread

void ReplaySource::Impl::noteProblem(const std::string& sentence) {
    const std::lock_guard lock(mutex);
    problem = sentence; // the newest is about what is on the screen
}

void ReplaySource::Impl::run() {
    stepDue = SteadyClock::now();
    if (!playing)
        deliverStep(); // something to look at
    std::unique_lock lock(mutex);
    while (!stopping) {
        if (!commands.empty()) {
            const source::Command command = std::move(commands.front());
            commands.pop_front();
            lock.unlock();
            obey(command);
            lock.lock();
            continue;
        }
        const auto disturbed = [&] { return stopping || !commands.empty(); };
        if (stepsToGo == 0 && (!playing || atEnd)) {
            wake.wait(lock, disturbed);
            continue;
        }
        if (stepsToGo == 0 && wake.wait_until(lock, stepDue, disturbed))
            continue;
        lock.unlock();
        if (stepsToGo > 0)
            --stepsToGo;
        if (!deliverStep())
            stepsToGo = 0;
        lock.lock();
    }
}

void ReplaySource::Impl::obey(const source::Command& command) {
    const auto visitor = [&]<class C>(const C& c) {
        if constexpr (std::is_same_v<C, source::Pause>) {
            playing = false;
            stepsToGo = 0;
        } else if constexpr (std::is_same_v<C, source::Resume>) {
            if (atEnd && !playReader->chunks().empty())
                seek(playReader->chunks().front().firstStep);
            playing = true;
            stepDue = SteadyClock::now();
        } else if constexpr (std::is_same_v<C, source::StepForward>) {
            playing = false;
            stepsToGo = c.steps;
        } else if constexpr (std::is_same_v<C, source::SetSpeed>) {
            stepsPerSecond = c.stepsPerSecond;
            stepDue = SteadyClock::now();
        } else if constexpr (std::is_same_v<C, source::Seek>) {
            seek(c.step);
        }
    };
    std::visit(visitor, command);
}

void ReplaySource::Impl::seek(Step step) {
    auto part = cursor->seek(step);
    if (stopping)
        return;
    atEnd = false;
    stepsToGo = 0;
    if (!part) {
        noteProblem(part.error().message);
        lostAt = step;
        sink->onKeyframe(step, {}); // rather nothing than the state of another step
        return;
    }
    lostAt.reset();
    noteProblem(knownFromStart);
    lastEndNs = part->endNs;
    deliver(std::move(*part));
    stepDue = SteadyClock::now();
}

// After a step that could not be read: from the next keyframe whose state can.
std::optional<PlaybackCursor::Part> ReplaySource::Impl::nextPart() {
    if (!lostAt)
        return cursor->nextStep();
    for (const KeyframeEntry& keyframe : playReader->keyframes())
        if (keyframe.step > *lostAt)
            if (auto part = cursor->seek(keyframe.step)) {
                lostAt.reset();
                return std::move(*part);
            }
    return std::nullopt;
}

void ReplaySource::Impl::deliver(PlaybackCursor::Part&& part) {
    if (!part.skipped.empty())
        noteProblem(part.skipped);
    if (part.jump)
        sink->onKeyframe(part.keyframeStep, part.keyframe);
    if (!part.events.empty())
        sink->onEvents(part.events);
}

bool ReplaySource::Impl::deliverStep() {
    auto part = nextPart();
    if (stopping) // what the cancelled reader could not read is no damage
        return false;
    if (!part) {
        if (!atEnd)
            sink->onEnd();
        atEnd = true;
        playing = false;
        return false;
    }
    const std::int64_t endNs = part->step ? part->endNs : lastEndNs;
    deliver(std::move(*part));
    std::chrono::nanoseconds pause(0);
    if (!stepsPerSecond)
        pause = std::clamp<std::chrono::nanoseconds>(
            std::chrono::nanoseconds(lastEndNs < 0 || endNs < lastEndNs ? 0 : endNs - lastEndNs),
            std::chrono::nanoseconds(0), options.longestPause);
    else if (*stepsPerSecond > 0)
        pause = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / std::max(*stepsPerSecond, 1e-3)));
    lastEndNs = endNs;
    // A late step does not make the following ones hurry.
    stepDue = std::max(stepDue + pause, SteadyClock::now());
    if (pause.count() == 0)
        stepDue = SteadyClock::now();
    return true;
}

} // namespace kvatlas::sessions

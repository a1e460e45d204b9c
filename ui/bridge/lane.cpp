// SPDX-License-Identifier: Apache-2.0
#include "ui/bridge/lane.h"

#include "core/state/cache_state.h"

#include <algorithm>
#include <utility>

namespace kvatlas::ui {

namespace {

constexpr qint64 kHistoryIntervalMs = 200;
constexpr qint64 kHistoryPatienceMs = 2000; // a newer question may have cancelled this one
constexpr qint64 kInfoIntervalMs = 500;
constexpr std::uint32_t kHistoryRows = 4096;

// On the source's thread.
Result<SnapshotPtr> foldState(source::StateAtAnswer& answer) {
    state::CacheState folded;
    if (!answer.keyframe.empty()) {
        auto decoded = state::CacheState::decode(answer.keyframe);
        if (!decoded)
            return tl::unexpected(decoded.error());
        folded = std::move(*decoded);
    }
    for (const trace::Event& event : answer.events)
        if (auto applied = folded.apply(event); !applied)
            return tl::unexpected(applied.error());
    return folded.snapshot();
}

} // namespace

Lane::Lane(QChar letter, OpenedRun run, QObject* parent)
    : QObject(parent)
    , m_letter(letter)
    , m_run(std::move(run))
    , m_info(m_run.source->info())
    , m_foundAtOpening(QString::fromStdString(m_info.recording))
    , m_latest(m_store.snapshot())
    , m_shown(m_latest)
    , m_history(std::make_shared<source::HistoryAnswer>())
    , m_playing(!m_run.paused) {
    m_sinceHistory.start();
    m_sinceInfo.start();
}

Lane::~Lane() {
    stop();
}

Result<void> Lane::start() {
    m_started = true;
    return m_run.source->start(m_store);
}

void Lane::stop() {
    if (m_stopped)
        return;
    m_stopped = true;
    m_run.source->stop();
}

QString Lane::modelName() const {
    // The file's name is what people chose it by; a recording only knows what the model calls itself.
    if (m_run.modelName.empty() && m_lastRun)
        return QString::fromStdString(m_lastRun->model.name);
    return QString::fromStdString(m_run.modelName);
}

Step Lane::lastStep() const {
    return std::max(m_history->lastStep, m_latest->step);
}

bool Lane::idle() const {
    return m_info.capabilities.live && m_latest->run && !m_latest->ended && m_latest->requests.empty() &&
           !m_latest->inStep;
}

bool Lane::alive(RequestId request) const {
    return state::findRequest(*m_latest, request) != nullptr;
}

std::optional<Step> Lane::recordedTo() const {
    if (!m_info.capabilities.live || m_info.recording.empty())
        return {};
    return m_history->lastStep;
}

void Lane::follow() {
    m_pinned.reset();
    m_stateTag = 0;
    withdraw(std::exchange(m_unanswered, {}));
    if (m_shown != m_latest)
        show(m_latest);
}

void Lane::show(SnapshotPtr snapshot) {
    m_shown = std::move(snapshot);
    if (m_shown->run)
        m_lastRun = m_shown->run;
    emit shownChanged();
}

void Lane::showStep(Step step) {
    if (m_info.capabilities.seek) {
        m_pinned.reset();
        m_run.source->send(source::Seek{step});
        return;
    }
    if (m_pinned == step)
        return;
    m_pinned = step;
    askState(step);
}

void Lane::setPlaying(bool on) {
    if (!m_info.capabilities.control || m_playing == on)
        return;
    if (on && m_info.capabilities.seek && m_latest->step >= m_history->lastStep && m_history->lastStep > 0)
        m_run.source->send(source::Seek{0}); // at the end: plays from the start
    m_playing = on;
    m_run.source->send(on ? source::Command(source::Resume{}) : source::Command(source::Pause{}));
    emit playingChanged();
}

void Lane::stepForward(std::uint32_t steps) {
    if (!m_info.capabilities.control)
        return;
    m_run.source->send(source::StepForward{steps});
    if (m_playing) {
        m_playing = false;
        emit playingChanged();
    }
}

void Lane::setSpeed(std::optional<double> stepsPerSecond) {
    if (m_info.capabilities.control)
        m_run.source->send(source::SetSpeed{stepsPerSecond});
}

void Lane::send(source::Command command) {
    m_run.source->send(std::move(command));
}

void Lane::report(const QString& sentence) {
    if (sentence.isEmpty() || sentence == m_lastProblem)
        return;
    m_lastProblem = sentence;
    emit problemFound(sentence);
}

void Lane::withdraw(const QString& sentence) {
    if (sentence.isEmpty())
        return;
    m_lastProblem.clear();
    emit problemPassed(sentence);
}

void Lane::poll() {
    if (m_stopped)
        return;
    SnapshotPtr snapshot = m_store.snapshot();
    if (snapshot != m_latest) {
        const bool justEnded = snapshot->ended && !m_latest->ended;
        m_latest = std::move(snapshot);
        m_historyFresh = false;
        if (!m_latest->run)
            refreshInfo(); // why there is nothing
        if (!m_pinned)
            show(m_latest);
        if (m_playing && (justEnded || (m_info.capabilities.seek && m_history->lastStep > 0 && m_latest->stepEnded &&
                                        m_latest->step >= m_history->lastStep))) {
            m_playing = false;
            emit playingChanged();
        }
        report(QString::fromStdString(m_store.error()));
    }
    if (m_sinceInfo.elapsed() >= kInfoIntervalMs)
        refreshInfo();
    const qint64 waited = m_sinceHistory.elapsed();
    if (m_started && (!m_historyFresh || m_history->steps.empty()) &&
        waited >= (m_historyAsked ? kHistoryPatienceMs : kHistoryIntervalMs))
        askHistory();
}

void Lane::refreshInfo() {
    m_sinceInfo.restart();
    source::SourceInfo info = m_run.source->info();
    const bool changed =
        info.title != m_info.title || info.location != m_info.location || info.recording != m_info.recording;
    m_info = std::move(info);
    if (changed)
        emit infoChanged();
    const QString sentence = QString::fromStdString(m_info.recording);
    if (sentence == m_lastRecording) // it may have been there from the start
        return;
    const bool told = !m_lastRecording.isEmpty() && sentence == m_foundAtOpening;
    if (m_lastRecording != m_foundAtOpening)
        withdraw(m_lastRecording);
    m_lastRecording = sentence;
    if (!told)
        report(sentence);
}

void Lane::askHistory() {
    m_sinceHistory.restart();
    m_historyAsked = true;
    m_historyFresh = true;
    const std::uint64_t tag = m_historyTag = ++m_tag;
    m_run.source->ask(tag, source::History{0, 0xFFFF'FFFF, kHistoryRows}, [this](source::Answer answer) {
        std::variant<Error, source::HistoryAnswer> body = Error{};
        if (auto* rows = std::get_if<source::HistoryAnswer>(&answer.body))
            body = std::move(*rows);
        else if (auto* error = std::get_if<Error>(&answer.body))
            body = std::move(*error);
        m_mailbox.post([this, tag = answer.tag, held = std::make_shared<decltype(body)>(std::move(body))] {
            takeHistory(tag, std::move(*held));
        });
    });
}

void Lane::takeHistory(std::uint64_t tag, std::variant<Error, source::HistoryAnswer> body) {
    if (tag != m_historyTag)
        return;
    m_historyAsked = false;
    if (auto* error = std::get_if<Error>(&body)) {
        report(QString::fromStdString(error->message));
        return;
    }
    m_history = std::make_shared<source::HistoryAnswer>(std::move(std::get<source::HistoryAnswer>(body)));
    emit historyChanged();
}

void Lane::askState(Step step) {
    const std::uint64_t tag = m_stateTag = ++m_tag;
    m_run.source->ask(tag, source::StateAt{step}, [this](source::Answer answer) {
        std::variant<Error, SnapshotPtr> body = Error{};
        if (auto* at = std::get_if<source::StateAtAnswer>(&answer.body)) {
            if (auto folded = foldState(*at))
                body = std::move(*folded);
            else
                body = folded.error();
        } else if (auto* error = std::get_if<Error>(&answer.body)) {
            body = std::move(*error);
        }
        m_mailbox.post([this, tag = answer.tag, body = std::move(body)] { takeState(tag, body); });
    });
}

void Lane::takeState(std::uint64_t tag, std::variant<Error, SnapshotPtr> body) {
    if (tag != m_stateTag || !m_pinned)
        return;
    const auto* error = std::get_if<Error>(&body);
    withdraw(std::exchange(m_unanswered, error ? QString::fromStdString(error->message) : QString()));
    show(error ? std::make_shared<const state::Snapshot>() : std::get<SnapshotPtr>(body));
    report(m_unanswered);
}

Lane::Text Lane::requestText(RequestId request) {
    if (const state::RequestState* at = state::findRequest(*m_shown, request); at && at->tokens) {
        const std::size_t prompt = std::min<std::size_t>(at->promptTokens, at->tokens->size());
        return {{at->tokens->begin(), at->tokens->begin() + static_cast<std::ptrdiff_t>(prompt)},
                {at->tokens->begin() + static_cast<std::ptrdiff_t>(prompt), at->tokens->end()}};
    }
    const auto known = m_texts.constFind(request.value);
    if (known == m_texts.constEnd()) {
        askText(request);
        return {};
    }
    // Only what had been sampled by the shown step.
    Text text{known->promptTokens, known->outputTokens};
    if (known->outputSteps.size() == known->outputTokens.size()) {
        const auto end = std::upper_bound(known->outputSteps.begin(), known->outputSteps.end(), m_shown->step);
        text.outputTokens.resize(static_cast<std::size_t>(end - known->outputSteps.begin()));
    }
    return text;
}

void Lane::askText(RequestId request) {
    const qint64 now = m_sinceHistory.msecsSinceReference() + m_sinceHistory.elapsed();
    const qint64 before = m_textsAsked.value(request.value, 0);
    if (m_stopped || (before != 0 && now - before < kHistoryPatienceMs))
        return;
    m_textsAsked.insert(request.value, now);
    m_run.source->ask(++m_tag, source::RequestText{request}, [this](source::Answer answer) {
        auto* text = std::get_if<source::RequestTextAnswer>(&answer.body);
        if (!text)
            return; // not recorded: the views say so
        m_mailbox.post([this, held = std::make_shared<const source::RequestTextAnswer>(std::move(*text))] {
            m_texts.insert(held->request.value, *held);
            emit requestTextChanged();
        });
    });
}

} // namespace kvatlas::ui

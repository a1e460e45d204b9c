// SPDX-License-Identifier: Apache-2.0
#include "core/engine/live_source.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace kvatlas::engine {

namespace {

constexpr std::size_t kDeliveredAtOnce = 4096;

// How long the delivery thread sleeps on an empty ring before it looks for questions.
constexpr std::chrono::milliseconds kDeliveryNap{10};

template <class... Handlers> struct Overloaded : Handlers... { using Handlers::operator()...; };
template <class... Handlers> Overloaded(Handlers...) -> Overloaded<Handlers...>;

} // namespace

void LiveSource::RingSink::onEvents(std::span<const trace::Event> events) {
    for (const trace::Event& event : events) {
        if (trace::classOf(event.kind()) == trace::EventClass::Sample) {
            ring.tryPush(event);
            continue;
        }
        if (const std::uint64_t lost = ring.takeLost(); lost > 0)
            ring.push({event.step, event.ns, trace::EventsLost{lost}});
        ring.push(event);
    }
}

Result<std::unique_ptr<LiveSource>> LiveSource::create(std::shared_ptr<const Weights> weights, LiveOptions options) {
    options.engine.seed = options.scenario.seed;
    options.engine.scenarioJson = workload::toJson(options.scenario);
    std::unique_ptr<LiveSource> source(new LiveSource(weights, options));
    auto engine = Engine::create(std::move(weights), options.engine, source->m_clock, source->m_ringSink);
    if (!engine)
        return tl::unexpected(engine.error());
    source->m_engine = std::move(*engine);
    return source;
}

LiveSource::LiveSource(std::shared_ptr<const Weights> weights, const LiveOptions& options)
    : m_weights(std::move(weights))
    , m_title(options.scenario.name.empty() ? m_weights->config().name : options.scenario.name)
    , m_ringSink(options.ringEvents)
    , m_arrivals(options.scenario, m_weights->model())
    , m_paused(options.paused)
    , m_seed(options.scenario.seed) {}

LiveSource::~LiveSource() {
    stop();
}

source::SourceInfo LiveSource::info() const {
    return {.title = m_title,
            .location = {},
            .recording = {},
            .capabilities = {.control = true, .submit = true, .seek = false, .live = true}};
}

Result<void> LiveSource::start(trace::EventSink& sink) {
    if (m_started)
        return makeError(ErrorKind::Usage, "this run was started before; open it again");
    m_started = true;
    try {
        m_deliveryThread = std::thread([this, &sink] { runDelivery(sink); });
        m_engineThread = std::thread([this] { runEngine(); });
    } catch (const std::system_error& error) {
        stop();
        return makeError(ErrorKind::Failed, "cannot start the engine's threads: {}", error.what());
    }
    return {};
}

void LiveSource::stop() {
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_wake.notify_all();
    if (m_engineThread.joinable())
        m_engineThread.join(); // before the ring closes, so that every event of its last step is delivered
    m_ringSink.ring.close();
    if (m_deliveryThread.joinable())
        m_deliveryThread.join();
}

void LiveSource::send(source::Command command) {
    {
        const std::lock_guard lock(m_mutex);
        m_commands.push_back(std::move(command));
    }
    m_wake.notify_all();
}

void LiveSource::ask(std::uint64_t tag, source::Question, source::AnswerHandler handler) {
    const std::lock_guard lock(m_questionMutex);
    m_questions.emplace_back(tag, std::move(handler));
}

std::string LiveSource::piece(TokenId token) const {
    return std::string(m_weights->model().tokenizer().piece(token));
}

void LiveSource::runDelivery(trace::EventSink& sink) {
    std::vector<trace::Event> events;
    while (!m_ringSink.ring.drained()) {
        events.clear();
        if (m_ringSink.ring.pop(events, kDeliveredAtOnce, kDeliveryNap) > 0)
            sink.onEvents(events);
        answerQuestions();
    }
    sink.onEnd();
}

void LiveSource::answerQuestions() {
    std::vector<std::pair<std::uint64_t, source::AnswerHandler>> questions;
    {
        const std::lock_guard lock(m_questionMutex);
        questions.swap(m_questions);
    }
    for (auto& [tag, handler] : questions)
        handler(
            {tag, Error{ErrorKind::Failed, "This run is not recorded: only its present state is known. Start it with "
                                           "recording on to look back."}});
}

void LiveSource::runEngine() {
    std::unique_lock lock(m_mutex);
    while (!m_stopping) {
        if (!m_commands.empty())
            applyCommands(lock);
        lock.unlock();
        m_arrivals.submitDue(*m_engine);
        const bool idle = m_engine->idle();
        const bool early = m_stepsPerSecond > 0 && m_wallClock.nowNs() < m_nextStepNs;
        if (mayStep() && !idle && !early)
            stepOnce();
        m_engine->flush();
        m_engine->takeFinished();
        lock.lock();
        if (!mayStep())
            waitForCommand(lock);
        else if (idle)
            waitForWork(lock);
        else if (early)
            waitForSpeed(lock);
    }
}

void LiveSource::stepOnce() {
    m_engine->step();
    if (m_paused)
        --m_stepsAllowed;
    if (m_stepsPerSecond > 0)
        m_nextStepNs = std::max(m_nextStepNs, m_wallClock.nowNs() - static_cast<std::int64_t>(1e9 / m_stepsPerSecond)) +
                       static_cast<std::int64_t>(1e9 / m_stepsPerSecond);
}

void LiveSource::waitForCommand(std::unique_lock<std::mutex>& lock) {
    m_clock.hold();
    m_wake.wait(lock, [this] { return disturbed(); });
    m_clock.release();
}

// Nothing runs: until a command comes, or the next arrival is due.
void LiveSource::waitForWork(std::unique_lock<std::mutex>& lock) {
    if (m_arrivals.done()) {
        m_stepsAllowed = 0; // there is nothing left to step
        waitForCommand(lock);
    } else if (m_arrivals.bySteps()) {
        m_engine->skipTo(m_arrivals.nextStep());
    } else {
        const std::int64_t waitNs = std::max<std::int64_t>(0, m_arrivals.nextNs() - m_engine->nowNs());
        m_wake.wait_for(lock, std::chrono::nanoseconds(waitNs), [this] { return disturbed(); });
    }
}

void LiveSource::waitForSpeed(std::unique_lock<std::mutex>& lock) {
    const std::int64_t waitNs = std::max<std::int64_t>(0, m_nextStepNs - m_wallClock.nowNs());
    m_clock.hold();
    m_wake.wait_for(lock, std::chrono::nanoseconds(waitNs), [this] { return disturbed(); });
    m_clock.release();
}

void LiveSource::applyCommands(std::unique_lock<std::mutex>& lock) {
    std::deque<source::Command> commands;
    commands.swap(m_commands);
    lock.unlock();
    for (const source::Command& command : commands)
        apply(command);
    lock.lock();
}

void LiveSource::apply(const source::Command& command) {
    std::visit(Overloaded{
                   [this](const source::Submit& c) { submit(c.requestJson); },
                   [this](const source::Cancel& c) { m_engine->cancel(c.request); },
                   [this](const source::Preempt& c) { m_engine->preempt(c.request); },
                   [this](const source::Pause&) {
                       m_paused = true;
                       m_stepsAllowed = 0;
                       m_engine->note("pause");
                   },
                   [this](const source::Resume&) {
                       m_paused = false;
                       m_stepsAllowed = 0;
                       m_engine->note("resume");
                   },
                   [this](const source::StepForward& c) {
                       m_paused = true;
                       m_stepsAllowed += c.steps;
                       m_engine->note("step");
                   },
                   [this](const source::SetSpeed& c) {
                       constexpr double kSlowest = 0.01, kFastest = 1e6;
                       const double wanted = c.stepsPerSecond.value_or(0);
                       const bool limited = std::isfinite(wanted) && wanted > 0;
                       m_stepsPerSecond = limited ? std::clamp(wanted, kSlowest, kFastest) : 0.0;
                       m_nextStepNs = 0;
                       m_engine->note("speed");
                   },
                   [](const source::Seek&) {}, // no capability of a live run
               },
               command);
}

void LiveSource::submit(const std::string& requestJson) {
    const auto parsed = workload::parseRequest(requestJson);
    if (!parsed) {
        m_engine->refuse("request", parsed.error().message);
        return;
    }
    auto prepared = prepare(*parsed, m_weights->model(), m_seed);
    if (prepared)
        m_engine->submit(std::move(*prepared));
    else
        m_engine->refuse(titleOf(*parsed), prepared.error().message);
}

} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
// A running engine as an EventSource: steps it on a thread of its own, applies commands between steps, and delivers its
// events through a bounded ring on another thread, so that a slow sink delays the engine only when the ring is full.
//
// Begins paused or running; when everything has finished it stays, idle, for further requests until stop(). stop()
// waits for the step that is being computed and for the last delivery. The run's time stands still while it is paused,
// waits for the chosen speed, or has nothing to do and nothing to come: what a teacher's pause takes is in no number.
// Nothing is recorded here, so questions are answered with an error; sessions/ wraps a live source to answer them from
// the file it writes. Threads, ownership, errors: as event_source.h; create additionally as Engine::create.
#pragma once

#include "core/base/clock.h"
#include "core/engine/arrivals.h"
#include "core/engine/engine.h"
#include "core/source/event_source.h"
#include "core/trace/ring.h"
#include "core/workload/scenario.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kvatlas::engine {

struct LiveOptions {
    EngineOptions engine; // its seed and scenarioJson are the scenario's
    workload::Scenario scenario;
    bool paused = false;
    std::size_t ringEvents = trace::EventRing::kDefaultCapacity;
};

class LiveSource final : public source::EventSource {
public:
    static Result<std::unique_ptr<LiveSource>> create(std::shared_ptr<const Weights> weights, LiveOptions options);
    ~LiveSource() override;

    source::SourceInfo info() const override;
    Result<void> start(trace::EventSink& sink) override;
    void stop() override;
    void send(source::Command command) override;
    void ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) override;
    std::string piece(TokenId token) const override;

private:
    // The engine's sink: State events wait for room, Sample events are dropped and counted when there is none.
    class RingSink final : public trace::EventSink {
    public:
        explicit RingSink(std::size_t capacity)
            : ring(capacity) {}
        void onEvents(std::span<const trace::Event> events) override;
        void onKeyframe(Step, std::span<const std::byte>) override {}
        trace::EventRing ring;
    };

    LiveSource(std::shared_ptr<const Weights> weights, const LiveOptions& options);

    void runEngine();
    void runDelivery(trace::EventSink& sink);
    void answerQuestions();
    void applyCommands(std::unique_lock<std::mutex>& lock);
    void apply(const source::Command& command);
    void submit(const std::string& requestJson);
    bool mayStep() const { return !m_paused || m_stepsAllowed > 0; }
    bool disturbed() const { return m_stopping || !m_commands.empty(); } // REQUIRES: m_mutex held
    void stepOnce();
    void waitForWork(std::unique_lock<std::mutex>& lock);
    void waitForSpeed(std::unique_lock<std::mutex>& lock);
    void waitForCommand(std::unique_lock<std::mutex>& lock);

    std::shared_ptr<const Weights> m_weights;
    std::string m_title;
    SteadyClock m_wallClock;
    HoldableClock m_clock{m_wallClock}; // the run's: the engine thread's
    RingSink m_ringSink;
    std::unique_ptr<Engine> m_engine; // the engine thread's while it runs
    Arrivals m_arrivals;              // likewise

    // The engine thread's.
    bool m_paused;
    std::uint64_t m_stepsAllowed = 0; // while paused
    double m_stepsPerSecond = 0;      // 0: as fast as it goes
    std::int64_t m_nextStepNs = 0;    // with a speed: when the next step is due, by m_wallClock
    std::uint64_t m_seed;

    std::mutex m_mutex; // of what follows
    std::condition_variable m_wake;
    std::deque<source::Command> m_commands;
    bool m_stopping = false;
    std::mutex m_questionMutex;
    std::vector<std::pair<std::uint64_t, source::AnswerHandler>> m_questions;

    // The controlling thread's.
    bool m_started = false;
    std::thread m_engineThread, m_deliveryThread;
};

} // namespace kvatlas::engine

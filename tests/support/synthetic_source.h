// SPDX-License-Identifier: Apache-2.0
// A live source without a model or an engine: a SyntheticRun delivered on a thread, obeying pause, resume, step and
// speed. Answers no question itself, as the engine's live source. Threads as core/source/event_source.h says.
#pragma once

#include "core/source/event_source.h"
#include "tests/support/synthetic_run.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace kvatlas::test {

class SyntheticSource final : public source::EventSource {
public:
    explicit SyntheticSource(SyntheticOptions options, bool paused = false)
        : m_run(options)
        , m_paused(paused) {}
    ~SyntheticSource() override { stop(); }

    source::SourceInfo info() const override {
        return {"synthetic", "", "", {.control = true, .submit = false, .seek = false, .live = true}};
    }
    Result<void> start(trace::EventSink& sink) override {
        m_sink = &sink;
        m_thread = std::thread([this] { deliver(); });
        return {};
    }
    void stop() override {
        {
            const std::lock_guard lock(m_mutex);
            m_stopping = true;
        }
        m_wake.notify_all();
        if (m_thread.joinable())
            m_thread.join();
    }
    void send(source::Command command) override {
        const std::lock_guard lock(m_mutex);
        if (std::holds_alternative<source::Pause>(command))
            m_paused = true;
        else if (std::holds_alternative<source::Resume>(command))
            m_paused = false;
        else if (const auto* forward = std::get_if<source::StepForward>(&command)) {
            m_paused = true;
            m_stepsToGo += forward->steps;
        } else if (const auto* speed = std::get_if<source::SetSpeed>(&command))
            m_stepsPerSecond = speed->stepsPerSecond.value_or(0);
        m_wake.notify_all();
    }
    void ask(std::uint64_t tag, source::Question, source::AnswerHandler handler) override {
        handler({tag, Error{ErrorKind::Failed, "Nothing is recorded."}});
    }
    std::string piece(TokenId token) const override { return SyntheticRun::piece(token); }

private:
    void deliver() {
        std::unique_lock lock(m_mutex);
        while (!m_stopping && !m_run.done()) {
            m_wake.wait(lock, [&] { return m_stopping || !m_paused || m_stepsToGo > 0; });
            if (m_stopping)
                return;
            if (m_stepsToGo > 0)
                --m_stepsToGo;
            const double speed = m_stepsPerSecond;
            lock.unlock();
            m_sink->onEvents(m_run.nextStep());
            lock.lock();
            if (speed > 0)
                m_wake.wait_for(lock, std::chrono::duration<double>(1 / speed), [&] { return m_stopping; });
        }
        lock.unlock();
        if (m_run.done())
            m_sink->onEnd();
    }

    SyntheticRun m_run; // the delivery thread's
    trace::EventSink* m_sink = nullptr;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_paused, m_stopping = false;
    std::uint32_t m_stepsToGo = 0;
    double m_stepsPerSecond = 0;
    std::thread m_thread;
};

} // namespace kvatlas::test

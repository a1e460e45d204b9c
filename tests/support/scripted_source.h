// SPDX-License-Identifier: Apache-2.0
// An EventSource over a synthetic run: live (events come by themselves, on a thread) or recorded (seeks). Everything is
// computed beforehand, so that tests know what must be shown. Same thread rules as any source.
#pragma once

#include "core/source/event_source.h"
#include "core/state/cache_state.h"
#include "core/state/run_history.h"
#include "tests/support/synthetic_run.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace kvatlas::test {

struct ScriptedOptions {
    SyntheticOptions run;
    bool live = true; // else: recorded, seeks
    bool paused = false;
    std::string title = "Synthetic chats", location = "synthetic.kvatlas";
    std::string recording;         // why it is not recorded any more, or what is damaged
    Step recordedTo = 0xFFFF'FFFF; // questions are answered up to here
    bool silent = false;           // recorded: delivers nothing, as a file whose first part is damaged
};

class ScriptedSource final : public source::EventSource {
public:
    explicit ScriptedSource(ScriptedOptions options)
        : m_options(std::move(options))
        , m_playing(!m_options.paused) {
        SyntheticRun run(m_options.run);
        state::CacheState folded;
        state::RunHistory history;
        while (!run.done()) {
            m_steps.push_back(run.nextStep());
            for (const trace::Event& event : m_steps.back()) {
                if (auto applied = folded.apply(event); !applied)
                    m_error = applied.error().message;
                if (auto row = history.apply(event, folded))
                    m_rows.push_back(*row);
            }
            m_keyframes.push_back(folded.encode());
        }
        for (const auto& [id, row] : history.requests())
            m_requests.push_back(row);
    }
    ~ScriptedSource() override { stop(); }

    const std::string& error() const { return m_error; }
    Step lastStep() const { return static_cast<Step>(m_steps.size() - 1); }
    int questions() const { return m_questions; }
    std::vector<source::Command> commands() const {
        std::lock_guard lock(m_mutex);
        return m_commands;
    }

    source::SourceInfo info() const override {
        return {m_options.title,
                m_options.location,
                m_options.recording,
                {.control = true, .submit = m_options.live, .seek = !m_options.live, .live = m_options.live}};
    }
    Result<void> start(trace::EventSink& sink) override {
        m_sink = &sink;
        m_thread = std::jthread([this](std::stop_token stop) { loop(stop); });
        return {};
    }
    void stop() override {
        m_thread.request_stop();
        m_wake.notify_all();
        if (m_thread.joinable())
            m_thread.join();
    }
    void send(source::Command command) override {
        {
            std::lock_guard lock(m_mutex);
            m_commands.push_back(command);
            m_queue.push_back(std::move(command));
        }
        m_wake.notify_all();
    }
    void ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) override {
        ++m_questions;
        {
            std::lock_guard lock(m_mutex);
            m_asked.push_back({tag, std::move(question), std::move(handler)});
        }
        m_wake.notify_all();
    }
    std::string piece(TokenId token) const override { return SyntheticRun::piece(token); }

private:
    struct Asked {
        std::uint64_t tag;
        source::Question question;
        source::AnswerHandler handler;
    };

    void loop(const std::stop_token& stop) {
        double allowance = 0;
        while (!stop.stop_requested()) {
            std::vector<source::Command> commands;
            std::vector<Asked> asked;
            {
                std::unique_lock lock(m_mutex);
                const bool idle = !m_playing && m_allowed == 0;
                m_wake.wait_for(lock, std::chrono::milliseconds(idle ? 20 : 1),
                                [&] { return !m_queue.empty() || !m_asked.empty() || stop.stop_requested(); });
                commands.swap(m_queue);
                asked.swap(m_asked);
            }
            for (source::Command& command : commands)
                obey(command);
            for (Asked& one : asked)
                one.handler({one.tag, answer(one.question)});
            allowance += m_playing ? (m_stepsPerSecond > 0 ? m_stepsPerSecond / 1000 : 1) : 0;
            if (m_options.silent)
                continue;
            for (; (m_allowed > 0 || allowance >= 1) && m_next < m_steps.size(); ++m_next) {
                m_sink->onEvents(m_steps[m_next]);
                m_allowed > 0 ? void(--m_allowed) : void(allowance -= 1);
            }
            if (m_next >= m_steps.size() && !m_ended && m_options.live) {
                m_ended = true;
                m_sink->onEnd();
            }
        }
    }
    void obey(const source::Command& command) {
        if (std::holds_alternative<source::Pause>(command))
            m_playing = false;
        else if (std::holds_alternative<source::Resume>(command))
            m_playing = true;
        else if (const auto* step = std::get_if<source::StepForward>(&command)) {
            m_playing = false;
            m_allowed += step->steps;
        } else if (const auto* speed = std::get_if<source::SetSpeed>(&command))
            m_stepsPerSecond = speed->stepsPerSecond.value_or(0);
        else if (const auto* seek = std::get_if<source::Seek>(&command); seek && !m_options.live && !m_options.silent) {
            const std::size_t target = std::min<std::size_t>(seek->step, m_steps.size() - 1);
            m_sink->onKeyframe(static_cast<Step>(target), m_keyframes[target]);
            m_next = target + 1;
        }
    }
    std::variant<Error, source::StateAtAnswer, source::HistoryAnswer, source::RequestTextAnswer>
    answer(const source::Question& question) {
        const Step newest = std::min(m_options.recordedTo,
                                     m_options.live ? static_cast<Step>(m_next == 0 ? 0 : m_next - 1) : lastStep());
        if (const auto* at = std::get_if<source::StateAt>(&question)) {
            const std::size_t step = std::min<std::size_t>(at->step, newest);
            // The keyframe of the step before and this step's events, so that both parts are exercised.
            source::StateAtAnswer state{static_cast<Step>(step), {}, m_steps[step]};
            if (step > 0)
                state.keyframe = m_keyframes[step - 1];
            return state;
        }
        if (std::holds_alternative<source::History>(question)) {
            source::HistoryAnswer history{newest, {m_rows.begin(), m_rows.begin() + newest + 1}, {}, {}};
            for (const trace::RequestRow& row : m_requests)
                if (row.arrivedStep <= newest)
                    history.requests.push_back(asOf(row, newest));
            return history;
        }
        const RequestId wanted = std::get<source::RequestText>(question).request;
        source::RequestTextAnswer text{wanted, {}, {}, {}};
        for (std::size_t step = 0; step <= newest; ++step)
            for (const trace::Event& event : m_steps[step]) {
                if (const auto* arrived = std::get_if<trace::RequestArrived>(&event.body);
                    arrived && arrived->request == wanted)
                    text.promptTokens = arrived->promptTokens;
                if (const auto* sampled = std::get_if<trace::TokenSampled>(&event.body);
                    sampled && sampled->request == wanted) {
                    text.outputTokens.push_back(sampled->token);
                    text.outputSteps.push_back(event.step);
                }
            }
        return text;
    }
    static trace::RequestRow asOf(trace::RequestRow row, Step step) {
        const auto later = [step](std::optional<Step>& at) {
            if (at && *at > step)
                at.reset();
        };
        later(row.admittedStep);
        later(row.firstTokenStep);
        if (row.finishedStep && *row.finishedStep > step) {
            row.finishedStep.reset();
            row.finishReason.reset();
            row.finishedNs.reset();
        }
        return row;
    }

    ScriptedOptions m_options;
    std::string m_error;
    std::vector<std::vector<trace::Event>> m_steps;
    std::vector<std::vector<std::byte>> m_keyframes; // after each step
    std::vector<trace::StepRow> m_rows;
    std::vector<trace::RequestRow> m_requests;
    trace::EventSink* m_sink = nullptr;
    mutable std::mutex m_mutex;
    std::condition_variable m_wake;
    std::vector<source::Command> m_queue, m_commands;
    std::vector<Asked> m_asked;
    std::atomic<int> m_questions{0};
    bool m_playing, m_ended = false; // the thread's, as all below
    std::uint64_t m_allowed = 0;
    double m_stepsPerSecond = 0;
    std::size_t m_next = 0;
    std::jthread m_thread;
};

} // namespace kvatlas::test

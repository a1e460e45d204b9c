// SPDX-License-Identifier: Apache-2.0
// A session file as an EventSource: plays, pauses, steps and seeks through what was recorded, at the recorded pace or
// another one. Needs no model.
//
// Threads as event_source.h says: the sink is called on the playback thread, answers come on a second one; each has its
// own reader, so that a long query does not hold the picture up. The caller only queues.
// Delivery is step by step: all events of a step, then the wait that the speed asks for. At the end of the file onEnd
// is delivered and playback pauses; a Seek back begins with a keyframe and plays on from there. Damaged parts: playback
// jumps over them with the next undamaged keyframe, info().recording says so.
#pragma once

#include "core/source/event_source.h"

#include <chrono>
#include <memory>
#include <string>

namespace kvatlas::sessions {

struct ReplayOptions {
    bool paused = false; // begins after the first recorded step and waits
    // At the recorded pace, a pause between two steps is never longer than this.
    std::chrono::milliseconds longestPause{1000};
};

class ReplaySource final : public source::EventSource {
public:
    static Result<std::unique_ptr<ReplaySource>> open(const std::string& path, ReplayOptions options = {});
    ~ReplaySource() override;

    source::SourceInfo info() const override;
    Result<void> start(trace::EventSink& sink) override;
    void stop() override;
    // Understood: Pause, Resume, StepForward, SetSpeed, Seek. The others cannot change what was recorded and do
    // nothing.
    void send(source::Command command) override;
    void ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) override;
    std::string piece(TokenId token) const override;

private:
    struct Impl;
    explicit ReplaySource(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvatlas::sessions

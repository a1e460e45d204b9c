// SPDX-License-Identifier: Apache-2.0
// All that a window or a tool knows of where events come from: a live engine, a recorded session, later a cluster.
//
// Thread. start, stop, send, ask and info may be called from any one thread (the GUI's) and never wait for the engine,
// a disk or a query; only stop waits, for the last delivery. Sinks and answer handlers are called on the source's
// threads. Errors come back as Result, or as an Answer that holds one.
#pragma once

#include "core/base/result.h"
#include "core/trace/event_sink.h"
#include "core/trace/rows.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvatlas::source {

// Views enable actions by these, never by the kind of source.
struct Capabilities {
    bool control = false; // pause, resume, step, speed
    bool submit = false;  // submit, cancel, preempt: the run can be changed
    bool seek = false;    // jumps to any step
    bool live = false;    // new steps may come by themselves
};

struct SourceInfo {
    std::string title;     // of the scenario or the file, for the window's title
    std::string location;  // file being written or read; empty when there is none
    std::string recording; // empty, or why recording stopped or what is odd about its file, in one sentence
    Capabilities capabilities;
};

// ---- Commands: fire and forget. One that changes state takes effect between steps and comes back as CommandApplied.
struct Submit {
    std::string requestJson; // one entry of a scenario's `requests` (core/workload), "at" left out
};
struct Cancel {
    RequestId request;
};
struct Preempt {
    RequestId request;
};
struct Pause {};
struct Resume {};
struct StepForward {
    std::uint32_t steps = 1; // then paused again
};
struct SetSpeed {
    std::optional<double> stepsPerSecond; // 0: as fast as it goes; none: a replay as recorded, a run as fast as it goes
};
struct Seek {
    Step step = 0; // replay: delivers a keyframe and the events up to the end of this step
};
using Command = std::variant<Submit, Cancel, Preempt, Pause, Resume, StepForward, SetSpeed, Seek>;

// ---- Questions: answered later, once, with the tag they were asked with. A newer question of the same kind may cancel
// an older one that has not been answered (its handler is then never called).
struct StateAt {
    Step step = 0;
};
struct History {
    Step firstStep = 0, lastStep = 0xFFFF'FFFF;
    std::uint32_t maxRows =
        4096; // more steps than that are merged: maxima of bytes and blocks, sums of tokens and times
};
struct RequestText {
    RequestId request;
};
using Question = std::variant<StateAt, History, RequestText>;

// A keyframe at or before the step, and the State events from there to the end of the step: CacheState folds them.
struct StateAtAnswer {
    Step step = 0;
    std::vector<std::byte> keyframe; // empty: fold from nothing
    std::vector<trace::Event> events;
};
struct HistoryAnswer {
    Step lastStep = 0; // the newest step that the source can answer for
    std::vector<trace::StepRow> steps;
    std::vector<trace::RequestRow> requests; // those alive in the range, by id
    std::vector<trace::PreemptionGap> gaps;  // those in the range, by step
};
struct RequestTextAnswer {
    RequestId request;
    std::vector<TokenId> promptTokens, outputTokens;
    std::vector<Step> outputSteps; // the step that sampled each output token
};
struct Answer {
    std::uint64_t tag = 0;
    std::variant<Error, StateAtAnswer, HistoryAnswer, RequestTextAnswer> body;
};
using AnswerHandler = std::function<void(Answer)>;

class EventSource {
public:
    virtual ~EventSource() = default; // stops

    virtual SourceInfo info() const = 0;

    // Begins delivery. The sink outlives the source or its stop(). A run begins paused when the source was made so.
    virtual Result<void> start(trace::EventSink& sink) = 0;

    // Returns after the last delivery and the last answer; nothing is called afterwards. Twice is once.
    virtual void stop() = 0;

    virtual void send(Command command) = 0;
    virtual void ask(std::uint64_t tag, Question question, AnswerHandler handler) = 0;

    // The bytes of a vocabulary entry (not always whole characters); empty when unknown. Any thread.
    virtual std::string piece(TokenId token) const = 0;
};

} // namespace kvatlas::source

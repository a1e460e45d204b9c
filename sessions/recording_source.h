// SPDX-License-Identifier: Apache-2.0
// A live source whose run is recorded as it happens: delivers to the given sink and to a session file, and answers
// questions about the past from that file. Without a file of its own it records into a temporary one, deleted at the
// end.
//
// Threads as event_source.h says: the sink is called on the live source's delivery thread, answers come on a worker's.
// A recording that stops (full disk, ...) leaves the run alone: info().recording says why, and questions are answered
// as far as the recording goes. stop() closes the file: its end marker is then written and it is no longer in WAL mode.
#pragma once

#include "core/source/event_source.h"
#include "sessions/recorder.h"

#include <map>
#include <memory>
#include <string>

namespace kvatlas::sessions {

struct RecordingOptions {
    std::string path;                                // empty: a temporary file
    std::map<std::string, std::string> attributes{}; // further rows of `meta`
};

class RecordingSource final : public source::EventSource {
public:
    // Errors: the file cannot be created. The live source must not have been started.
    static Result<std::unique_ptr<RecordingSource>> create(std::shared_ptr<source::EventSource> live,
                                                           RecordingOptions options);
    ~RecordingSource() override;

    source::SourceInfo info() const override;
    Result<void> start(trace::EventSink& sink) override;
    void stop() override;
    void send(source::Command command) override;
    void ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) override;
    std::string piece(TokenId token) const override;

    RecorderStatus recorderStatus() const;

private:
    struct Impl;
    explicit RecordingSource(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvatlas::sessions

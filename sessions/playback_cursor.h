// SPDX-License-Identifier: Apache-2.0
// A place in a recorded stream, moved step by step. One thread, as its reader, which outlives it.
#pragma once

#include "sessions/reader.h"

#include <optional>
#include <vector>

namespace kvatlas::sessions {

class PlaybackCursor {
public:
    explicit PlaybackCursor(SessionReader& reader)
        : m_reader(reader) {}

    // A part of the stream: the state to begin from, when it does not follow on the last one, then events.
    struct Part {
        bool jump = false;
        std::vector<std::byte> keyframe; // with jump; empty: from nothing
        Step keyframeStep = 0;
        std::vector<trace::Event> events;
        std::optional<Step> step; // the last one that ended in it
        std::int64_t endNs = 0;   // of that step's end
        std::string skipped;      // why something was left out; one sentence
    };

    // The events up to the end of the next step; nothing at the end of the stream.
    std::optional<Part> nextStep();

    // The state after `step`: a jump. The events of earlier steps come without samples.
    Result<Part> seek(Step step);

private:
    bool skipDamage(std::size_t from, const std::string& why, Part& part);

    SessionReader& m_reader;
    std::int64_t m_next = 0; // event
    bool m_started = false;
};

} // namespace kvatlas::sessions

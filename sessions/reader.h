// SPDX-License-Identifier: Apache-2.0
// Reads a session file: finished, interrupted, or being recorded at this moment. The file is never changed and nothing
// in it is executed; damaged chunks and keyframes are skipped and named in damaged().
//
// One thread at a time; cancel() on any thread. Errors: one sentence. Every call ends within its time limit.
#pragma once

#include "core/base/result.h"
#include "core/source/event_source.h"
#include "core/trace/event.h"
#include "core/trace/rows.h"
#include "sessions/open_file.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kvatlas::sessions {

struct ReaderOptions {
    std::chrono::milliseconds openLimit{5000}, queryLimit{30'000};
    bool cutToo = false; // open a file that is shorter than its header says
};

struct SessionInfo {
    std::string path; // with links resolved
    std::uint32_t schema = 0;
    std::uint64_t events = 0, steps = 0, keyframes = 0, chunks = 0, bytes = 0;
    std::optional<Step> lastStep; // the newest that has ended
    bool endedCleanly = false;    // the end marker is there and nothing that it counts is missing
    std::string endReason;        // empty without an end marker
    std::string hint;             // empty, or one sentence about a part that may be missing
    std::map<std::string, std::string> meta;
};

struct ChunkEntry {
    std::int64_t id = 0, firstEvent = 0, events = 0;
    Step firstStep = 0, lastStep = 0;
    std::int64_t endEvent() const { return firstEvent + events; }
};

struct KeyframeEntry {
    Step step = 0;
    std::int64_t firstEvent = 0; // the events before it are in it
    std::uint64_t stateHash = 0;
};

using SharedEvents = std::shared_ptr<const std::vector<trace::Event>>;

class SessionReader {
public:
    static Result<std::unique_ptr<SessionReader>> open(const std::string& path, ReaderOptions options = {});

    const SessionInfo& info() const { return m_info; }

    // Picks up what a recorder has committed since; nothing to do for a finished session.
    Result<void> refresh();

    // Refreshes, and from here on everything read is of this one moment, whatever a recorder commits meanwhile. For
    // work that compares several queries; a -wal grows for as long as the reader lives.
    Result<void> hold();

    // The state after `step` (or the newest one): a keyframe and the State events from there on. An error names the
    // damage when the state is not to be had.
    Result<source::StateAtAnswer> stateAt(Step step);

    // Rows of the steps in the range. More than maxRows are merged into as many or fewer, each over the same number of
    // steps: first start, last end, sums of times and tokens, maxima of everything else; step and hash of the last one.
    Result<source::HistoryAnswer> history(Step firstStep, Step lastStep, std::uint32_t maxRows);
    Result<std::vector<trace::RequestRow>> requests(Step firstStep = 0,
                                                    Step lastStep = 0xFFFF'FFFF); // alive in the range
    Result<source::RequestTextAnswer> requestText(RequestId request);
    Result<std::string> piece(TokenId token); // empty when not recorded
    Result<std::unordered_map<TokenId, std::string>> pieces();

    // The stream itself, chunk by chunk. An entry's events are the run's, numbered from 0, from firstEvent on; between
    // two entries some may be missing.
    const std::vector<ChunkEntry>& chunks() const { return m_chunks; }
    const std::vector<KeyframeEntry>& keyframes() const { return m_keyframes; }
    Result<SharedEvents> chunkEvents(std::size_t index);
    // The events of the steps [firstStep, endStep) in order, until `visit` says false. Damaged chunks are left out.
    Result<void> forEachEvent(Step firstStep, Step endStep, const std::function<bool(const trace::Event&)>& visit);
    Result<std::vector<std::byte>> keyframe(std::size_t index);

    // Where to begin for the state after `step`: the newest undamaged keyframe at or before it, if any, and the first
    // event that it does not include.
    struct Base {
        std::vector<std::byte> keyframe; // empty: fold from nothing
        std::optional<Step> step;        // that the keyframe includes
        std::int64_t firstEvent = 0;
    };
    Result<Base> baseFor(Step step);

    // One sentence per damaged or missing part found so far, each once.
    const std::vector<std::string>& damaged() const { return m_damaged; }

    void cancel() { m_file.limit->cancel(); } // for good: this and every later query fails

    Database& database() { return m_file.database; } // for checks and exports: read-only, time-limited
    void startTimeLimit() { m_file.limit->start(m_options.queryLimit); }

private:
    SessionReader() = default;
    Result<void> load();
    Result<void> loadMeta();
    Result<void> loadChunks();
    Result<void> loadKeyframes();
    void loadCounts();
    void noteMissingWal();
    bool scanChunks(const char* order, std::int64_t fromId, std::vector<ChunkEntry>& found);
    void acceptChunks(std::vector<ChunkEntry>&& found);
    Result<void> findGaps();
    void noteDamage(std::string sentence);

    ReaderOptions m_options;
    OpenedFile m_file;
    SessionInfo m_info;
    bool m_held = false; // in a read transaction that ends with the reader
    std::int64_t m_session = 0;
    std::int64_t m_countedTo = std::numeric_limits<std::int64_t>::min(); // step up to which info().steps counts
    std::vector<ChunkEntry> m_chunks;                                    // by id, ranges ascending
    std::vector<KeyframeEntry> m_keyframes;                              // by step
    std::vector<std::string> m_damaged;
    std::vector<trace::PreemptionGap> m_gaps; // of the events before m_gapsTo
    std::unordered_map<std::uint64_t, std::size_t>
        m_openGaps; // of a request that has not caught up: its place in m_gaps
    std::int64_t m_gapsTo = 0;
    std::list<std::pair<ChunkEntry, SharedEvents>> m_cache; // decoded chunks, newest use first
};

} // namespace kvatlas::sessions

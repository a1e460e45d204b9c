// SPDX-License-Identifier: Apache-2.0
#include "sessions/reader.h"

#include "core/state/cache_state.h"
#include "sessions/columns.h"
#include "sessions/packed.h"
#include "sessions/schema.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

namespace kvatlas::sessions {

namespace {

constexpr std::size_t kCachedChunks = 4;
constexpr std::size_t kMaxAnswerEvents = 100'000; // above, the reader folds them itself: 40 MB of events
constexpr std::size_t kMaxDamageSentences = 1000;

std::optional<std::uint64_t> numberIn(const std::map<std::string, std::string>& meta, const char* key) {
    const auto found = meta.find(key);
    std::uint64_t value = 0;
    if (found == meta.end())
        return std::nullopt;
    const char* end = found->second.data() + found->second.size();
    const auto parsed = std::from_chars(found->second.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end)
        return std::nullopt;
    return value;
}

std::string chunkName(const ChunkEntry& chunk) {
    return fmt::format("chunk {} (events {} to {}, steps {} to {})", chunk.id, chunk.firstEvent, chunk.endEvent() - 1,
                       chunk.firstStep, chunk.lastStep);
}

} // namespace

Result<std::unique_ptr<SessionReader>> SessionReader::open(const std::string& path, ReaderOptions options) {
    auto file = openSessionFile(path, options.openLimit, options.cutToo);
    if (!file)
        return tl::unexpected(file.error());
    std::unique_ptr<SessionReader> reader(new SessionReader);
    reader->m_options = options;
    reader->m_file = std::move(*file);
    reader->m_info.path = reader->m_file.path;
    reader->m_info.schema = reader->m_file.schemaVersion;
    if (!reader->m_file.note.empty())
        reader->noteDamage(reader->m_file.note);
    if (auto loaded = reader->refresh(); !loaded)
        return tl::unexpected(loaded.error());
    return reader;
}

Result<void> SessionReader::refresh() {
    if (m_info.endedCleanly || m_held)
        return {};
    // One read transaction, so that rows and chunks are of the same moment.
    if (auto begun = m_file.database.exec("BEGIN"); !begun)
        return begun;
    auto loaded = load();
    (void)m_file.database.exec("COMMIT");
    return loaded;
}

Result<void> SessionReader::hold() {
    if (m_info.endedCleanly || m_held)
        return {};
    if (auto begun = m_file.database.exec("BEGIN"); !begun)
        return begun;
    m_held = true;
    return load();
}

Result<void> SessionReader::load() {
    m_file.limit->start(m_options.queryLimit);
    std::error_code none;
    m_info.bytes = 0;
    for (const char* suffix : {"", "-wal"})
        if (const auto size = std::filesystem::file_size(m_info.path + suffix, none); !none)
            m_info.bytes += size;
    auto loaded = loadMeta();
    if (loaded)
        loaded = loadChunks();
    if (loaded)
        loaded = loadKeyframes();
    if (loaded)
        loadCounts();
    return loaded;
}

void SessionReader::noteDamage(std::string sentence) {
    if (m_damaged.size() < kMaxDamageSentences &&
        std::find(m_damaged.begin(), m_damaged.end(), sentence) == m_damaged.end())
        m_damaged.push_back(std::move(sentence));
}

Result<void> SessionReader::loadMeta() {
    auto rows = Statement::prepare(m_file.database, "SELECT key, value, checksum FROM meta LIMIT 1000");
    if (!rows)
        return tl::unexpected(rows.error());
    m_info.meta.clear();
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        std::string key = rows->text(0), value = rows->text(1);
        if (metaChecksum(key, value) != rows->integer(2))
            noteDamage(fmt::format("meta '{}': its checksum does not match", key.substr(0, 64)));
        else
            m_info.meta[std::move(key)] = std::move(value);
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("meta: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    m_session = static_cast<std::int64_t>(numberIn(m_info.meta, "session").value_or(0));
    return {};
}

// True when the scan came to its natural end.
bool SessionReader::scanChunks(const char* order, std::int64_t fromId, std::vector<ChunkEntry>& found) {
    auto rows = Statement::prepare(
        m_file.database, fmt::format("SELECT id, first_event, events, first_step, last_step, session FROM chunks "
                                     "WHERE track = {} AND {} LIMIT {}",
                                     kEventTrack, order, kMaxIndexRows));
    if (!rows)
        return false;
    rows->bind(1, fromId);
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const std::int64_t id = rows->integer(0), firstEvent = rows->integer(1), events = rows->integer(2);
        const std::int64_t firstStep = rows->integer(3), lastStep = rows->integer(4);
        if (m_session == 0) // its row of meta is damaged; a foreign chunk is still found by the others' session
            m_session = rows->integer(5);
        if (firstEvent < 0 || firstEvent > (1LL << 48) || events < 1 ||
            events > static_cast<std::int64_t>(kMaxChunkEvents) || !isStep(firstStep) || !isStep(lastStep) ||
            firstStep > lastStep)
            noteDamage(fmt::format("chunk {}: its numbers make no sense", id));
        else if (rows->integer(5) != m_session)
            noteDamage(fmt::format("chunk {}: it belongs to another session", id));
        else
            found.push_back({id, firstEvent, events, static_cast<Step>(firstStep), static_cast<Step>(lastStep)});
    }
    return code == SQLITE_DONE;
}

Result<void> SessionReader::loadChunks() {
    // The last chunk known may have grown since.
    const std::int64_t fromId = m_chunks.empty() ? std::numeric_limits<std::int64_t>::min() : m_chunks.back().id;
    if (!m_chunks.empty())
        m_chunks.pop_back();
    std::vector<ChunkEntry> found;
    if (!scanChunks("id >= ?1 ORDER BY id", fromId, found)) {
        if (m_file.limit->isOver())
            return tl::unexpected(m_file.database.lastError());
        // A damaged page: from the other end, then each id in between by itself.
        const std::int64_t stoppedAfter = found.empty() ? std::max<std::int64_t>(fromId, 0) : found.back().id;
        std::vector<ChunkEntry> tail;
        scanChunks("id > ?1 ORDER BY id DESC", stoppedAfter, tail);
        noteDamage("chunks: a part of the table cannot be read");
        std::int64_t end = stoppedAfter + kMaxIndexRows;
        if (!tail.empty())
            end = std::min(end, tail.back().id);
        else if (const auto chunks = numberIn(m_info.meta, "end_chunks"))
            end = static_cast<std::int64_t>(std::min<std::uint64_t>(*chunks + 1, static_cast<std::uint64_t>(end)));
        else // each chunk takes a page and more
            end = std::min(end, static_cast<std::int64_t>(m_info.bytes / 4096) + 1);
        for (std::int64_t id = stoppedAfter + 1; id < end && !m_file.limit->isOver(); ++id)
            scanChunks("id = ?1", id, found);
        found.insert(found.end(), tail.rbegin(), tail.rend());
    }
    acceptChunks(std::move(found));
    return {};
}

void SessionReader::acceptChunks(std::vector<ChunkEntry>&& found) {
    for (const ChunkEntry& chunk : found) {
        const std::int64_t expected = m_chunks.empty() ? 0 : m_chunks.back().endEvent();
        if (chunk.firstEvent < expected) {
            noteDamage(fmt::format("chunk {}: it overlaps the one before", chunk.id));
            continue;
        }
        if (chunk.firstEvent > expected)
            noteDamage(fmt::format("events {} to {} are missing", expected, chunk.firstEvent - 1));
        m_chunks.push_back(chunk);
    }
    m_info.events = 0;
    for (const ChunkEntry& chunk : m_chunks)
        m_info.events += static_cast<std::uint64_t>(chunk.events);
    m_info.chunks = m_chunks.size();
}

Result<void> SessionReader::loadKeyframes() {
    auto rows = Statement::prepare(
        m_file.database,
        fmt::format(
            "SELECT step, first_event, state_hash, session FROM keyframes WHERE step > ?1 ORDER BY step LIMIT {}",
            kMaxIndexRows));
    if (!rows)
        return tl::unexpected(rows.error());
    rows->bind(1, m_keyframes.empty() ? std::int64_t{-1} : std::int64_t{m_keyframes.back().step});
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const std::int64_t step = rows->integer(0), firstEvent = rows->integer(1);
        if (!isStep(step) || firstEvent < 0 || firstEvent > (1LL << 48))
            noteDamage(fmt::format("keyframe of step {}: its numbers make no sense", step));
        else if (rows->integer(3) != m_session)
            noteDamage(fmt::format("keyframe of step {}: it belongs to another session", step));
        else
            m_keyframes.push_back({static_cast<Step>(step), firstEvent, static_cast<std::uint64_t>(rows->integer(2))});
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("keyframes: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    m_info.keyframes = m_keyframes.size();
    return {};
}

void SessionReader::loadCounts() {
    // Steps are only ever added at the end, so a refresh counts the new ones.
    auto row = Statement::prepare(m_file.database, "SELECT count(*), max(step) FROM steps WHERE step > ?1");
    if (row && row->bind(1, m_countedTo).step() == SQLITE_ROW) {
        m_info.steps += static_cast<std::uint64_t>(row->integer(0));
        if (const auto last = optionalStep(*row, 1)) {
            m_info.lastStep = last;
            m_countedTo = *last;
        }
    } else {
        noteDamage("steps: a part of the table cannot be read");
    }
    if (!m_info.lastStep && !m_keyframes.empty())
        m_info.lastStep = m_keyframes.back().step;
    const bool marked = numberIn(m_info.meta, "end_events").has_value();
    m_info.endReason = marked ? m_info.meta["end_reason"] : std::string();
    m_info.endedCleanly = marked;
    noteMissingWal();
    if (m_info.endReason == kSalvaged)
        m_info.hint = fmt::format(
            "'{}' holds what could be saved of a damaged or interrupted recording, not all of it.", m_info.path);
    if (!marked)
        return;
    const std::tuple<const char*, const char*, std::uint64_t> counts[] = {
        {"end_events", "events", m_info.events},
        {"end_keyframes", "keyframes", m_info.keyframes},
        {"end_steps", "steps", m_info.steps}};
    for (const auto& [key, what, there] : counts) {
        const auto counted = numberIn(m_info.meta, key);
        if (counted == there)
            continue;
        m_info.endedCleanly = false;
        noteDamage(counted ? fmt::format("the end marker counts {} {}, {} are there", *counted, what, there)
                           : fmt::format("the end marker does not count the {}", what));
    }
}

// A recording that was cut off has a -wal beside it, unless it was copied without, or another program has moved the
// -wal's contents into the file. Only the first commit's rows tell: they are in every file that has lost nothing.
void SessionReader::noteMissingWal() {
    std::error_code none;
    const auto walBytes = std::filesystem::file_size(m_info.path + "-wal", none);
    m_info.hint.clear();
    if (!m_file.walMode || !m_info.endReason.empty() || (!none && walBytes > 0))
        return;
    if (m_info.meta.empty() && m_chunks.empty())
        noteDamage(fmt::format("'{0}-wal', which holds what was recorded, is missing; put it beside '{0}', the two "
                               "belong together (a recording cut off before its first step looks the same).",
                               m_info.path));
    else
        m_info.hint = fmt::format("'{0}' is a recording that was cut off; if there was a '{0}-wal' where it comes "
                                  "from, put it beside it: it holds the newest part.",
                                  m_info.path);
}

Result<SharedEvents> SessionReader::chunkEvents(std::size_t index) {
    const ChunkEntry entry = m_chunks.at(index);
    for (auto it = m_cache.begin(); it != m_cache.end(); ++it)
        if (it->first.id == entry.id && it->first.events == entry.events) {
            m_cache.splice(m_cache.begin(), m_cache, it);
            return m_cache.front().second;
        }
    startTimeLimit();
    const auto damage = [&](std::string_view what) {
        noteDamage(fmt::format("{}: {}", chunkName(entry), what));
        return makeError(ErrorKind::Refused, "{} of '{}' is damaged: {}", chunkName(entry), m_info.path, what);
    };
    auto row = Statement::prepare(m_file.database, "SELECT session, track, first_event, events, first_step, last_step, "
                                                   "codec, raw_bytes, checksum, data FROM chunks WHERE id = ?1");
    if (!row)
        return tl::unexpected(row.error());
    const int code = row->bind(1, entry.id).step();
    if (code == SQLITE_INTERRUPT)
        return tl::unexpected(row->error());
    if (code != SQLITE_ROW)
        return damage("it cannot be read");
    std::int64_t columns[9] = {entry.id};
    for (int i = 0; i < 8; ++i)
        columns[i + 1] = row->integer(i);
    if (columns[4] < entry.events) // a growing chunk may have more by now, never fewer
        return damage("it changed while it was read");
    if (blobChecksum(columns, row->blob(9)) != row->integer(8))
        return damage("its checksum does not match");
    if (columns[7] != kCodecZstdEvents)
        return damage("its codec is unknown");
    auto raw = decompress(row->blob(9), columns[8], kMaxChunkRawBytes);
    if (!raw)
        return damage(raw.error().message);
    auto events = decodeEvents(*raw, columns[4]);
    if (!events)
        return damage(events.error().message);
    events->resize(static_cast<std::size_t>(entry.events));
    auto shared = std::make_shared<const std::vector<trace::Event>>(std::move(*events));
    m_cache.emplace_front(entry, shared);
    if (m_cache.size() > kCachedChunks)
        m_cache.pop_back();
    return shared;
}

Result<void> SessionReader::forEachEvent(Step firstStep, Step endStep,
                                         const std::function<bool(const trace::Event&)>& visit) {
    for (std::size_t i = 0; i < m_chunks.size(); ++i) {
        if (m_chunks[i].lastStep < firstStep || m_chunks[i].firstStep >= endStep)
            continue;
        const std::size_t damages = m_damaged.size();
        const auto events = chunkEvents(i);
        if (!events && m_damaged.size() == damages && m_file.limit->isOver())
            return tl::unexpected(events.error());
        if (!events)
            continue;
        for (const trace::Event& event : **events)
            if (event.step >= firstStep && event.step < endStep && !visit(event))
                return {};
    }
    return {};
}

Result<std::vector<std::byte>> SessionReader::keyframe(std::size_t index) {
    const KeyframeEntry entry = m_keyframes.at(index);
    startTimeLimit();
    const auto damage = [&](std::string_view what) {
        noteDamage(fmt::format("keyframe of step {}: {}", entry.step, what));
        return makeError(ErrorKind::Refused, "the keyframe of step {} in '{}' is damaged: {}", entry.step, m_info.path,
                         what);
    };
    auto row =
        Statement::prepare(m_file.database, "SELECT session, first_event, state_hash, codec, raw_bytes, checksum, "
                                            "data FROM keyframes WHERE step = ?1");
    if (!row)
        return tl::unexpected(row.error());
    const int code = row->bind(1, std::int64_t{entry.step}).step();
    if (code == SQLITE_INTERRUPT)
        return tl::unexpected(row->error());
    if (code != SQLITE_ROW)
        return damage("it cannot be read");
    std::int64_t columns[6] = {entry.step};
    for (int i = 0; i < 5; ++i)
        columns[i + 1] = row->integer(i);
    if (blobChecksum(columns, row->blob(6)) != row->integer(5))
        return damage("its checksum does not match");
    if (columns[4] != kCodecZstdState)
        return damage("its codec is unknown");
    auto raw = decompress(row->blob(6), columns[5], kMaxKeyframeRawBytes);
    if (!raw)
        return damage(raw.error().message);
    return std::move(*raw);
}

Result<SessionReader::Base> SessionReader::baseFor(Step step) {
    auto after = std::upper_bound(m_keyframes.begin(), m_keyframes.end(), step,
                                  [](Step wanted, const KeyframeEntry& entry) { return wanted < entry.step; });
    while (after != m_keyframes.begin()) {
        --after;
        auto bytes = keyframe(static_cast<std::size_t>(after - m_keyframes.begin()));
        if (bytes)
            return Base{std::move(*bytes), after->step, after->firstEvent};
        if (m_file.limit->isOver())
            return tl::unexpected(bytes.error());
    }
    if (m_info.meta.contains("attached_after_step"))
        return makeError(ErrorKind::Refused,
                         "The state at step {} cannot be shown: no undamaged keyframe of '{}' lies before it.", step,
                         m_info.path);
    return Base{};
}

Result<source::StateAtAnswer> SessionReader::stateAt(Step step) {
    if (auto fresh = refresh(); !fresh)
        return tl::unexpected(fresh.error());
    source::StateAtAnswer answer;
    answer.step = std::min(step, m_info.lastStep.value_or(0));
    auto base = baseFor(answer.step);
    if (!base)
        return tl::unexpected(base.error());
    answer.keyframe = std::move(base->keyframe);
    std::int64_t next = base->firstEvent;
    auto chunk = std::upper_bound(m_chunks.begin(), m_chunks.end(), next,
                                  [](std::int64_t event, const ChunkEntry& entry) { return event < entry.endEvent(); });
    for (; chunk != m_chunks.end(); ++chunk) {
        if (chunk->firstStep > answer.step && chunk->firstEvent >= next)
            break;
        if (chunk->firstEvent > next)
            return makeError(ErrorKind::Refused,
                             "The state at step {} cannot be shown: events {} to {} of '{}' are missing.", answer.step,
                             next, chunk->firstEvent - 1, m_info.path);
        auto events = chunkEvents(static_cast<std::size_t>(chunk - m_chunks.begin()));
        if (!events)
            return makeError(events.error().kind, "The state at step {} cannot be shown: {}.", answer.step,
                             events.error().message);
        for (std::size_t i = static_cast<std::size_t>(next - chunk->firstEvent); i < (*events)->size(); ++i) {
            const trace::Event& event = (**events)[i];
            if (event.step > answer.step)
                return answer;
            if (trace::classOf(event.kind()) == trace::EventClass::State)
                answer.events.push_back(event);
        }
        next = chunk->endEvent();
        if (answer.events.size() < kMaxAnswerEvents)
            continue;
        auto state = answer.keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                             : state::CacheState::decode(answer.keyframe);
        if (!state)
            return tl::unexpected(state.error());
        for (const trace::Event& event : answer.events)
            if (auto fits = state->apply(event); !fits)
                return tl::unexpected(fits.error());
        answer.keyframe = state->encode();
        answer.events.clear();
    }
    const bool reached = base->step == answer.step || chunk != m_chunks.end() ||
                         (!m_chunks.empty() && m_chunks.back().lastStep >= answer.step);
    if (!reached && m_info.steps > 0)
        return makeError(ErrorKind::Refused, "The state at step {} cannot be shown: the events of '{}' end before it.",
                         answer.step, m_info.path);
    return answer;
}

} // namespace kvatlas::sessions

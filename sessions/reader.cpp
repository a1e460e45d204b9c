// SPDX-License-Identifier: Apache-2.0
#include "sessions/reader.h"

#include "core/state/cache_state.h"
#include "sessions/names.h"
#include "sessions/packed.h"
#include "sessions/schema.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace kvatlas::sessions {

namespace {

constexpr std::size_t kCachedChunks = 4;
constexpr std::size_t kMaxAnswerEvents = 100'000; // above, the reader folds them itself: 40 MB of events
constexpr std::size_t kMaxDamageSentences = 1000;
constexpr std::int64_t kMaxStep = 0xFFFF'FFFF;

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

bool isStep(std::int64_t value) {
    return value >= 0 && value <= kMaxStep;
}

std::optional<Step> optionalStep(const Statement& row, int column) {
    if (row.isNull(column) || !isStep(row.integer(column)))
        return std::nullopt;
    return static_cast<Step>(row.integer(column));
}

std::optional<std::int64_t> optionalNs(const Statement& row, int column) {
    if (row.isNull(column))
        return std::nullopt;
    return row.integer(column);
}

trace::StepRow stepRowOf(const Statement& s) {
    const auto u32 = [&](int column) { return static_cast<std::uint32_t>(s.integer(column)); };
    const auto u64 = [&](int column) { return static_cast<std::uint64_t>(s.integer(column)); };
    trace::StepRow row;
    row.step = u32(0);
    row.startNs = s.integer(1);
    row.endNs = s.integer(2);
    row.computeNs = s.integer(3);
    row.waitNs = s.integer(4);
    row.prefillTokens = u32(5);
    row.decodeTokens = u32(6);
    row.sequences = u32(7);
    row.waitingRequests = u32(8);
    row.activeBytes = u64(9);
    row.cachedBytes = u64(10);
    row.reservedBytes = u64(11);
    row.capacityBytes = u64(12);
    row.usedBytes = u64(13);
    row.activeBlocks = u32(14);
    row.cachedBlocks = u32(15);
    row.reservedBlocks = u32(16);
    row.freeBlocks = u32(17);
    row.stateHash = u64(18);
    return row;
}

// Sums that a hostile file cannot make overflow.
std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void mergeInto(trace::StepRow& row, const trace::StepRow& next) {
    row.step = next.step;
    row.stateHash = next.stateHash;
    row.endNs = next.endNs;
    row.computeNs = sum(row.computeNs, next.computeNs);
    row.waitNs = sum(row.waitNs, next.waitNs);
    row.prefillTokens += next.prefillTokens;
    row.decodeTokens += next.decodeTokens;
    row.sequences = std::max(row.sequences, next.sequences);
    row.waitingRequests = std::max(row.waitingRequests, next.waitingRequests);
    row.activeBytes = std::max(row.activeBytes, next.activeBytes);
    row.cachedBytes = std::max(row.cachedBytes, next.cachedBytes);
    row.reservedBytes = std::max(row.reservedBytes, next.reservedBytes);
    row.capacityBytes = std::max(row.capacityBytes, next.capacityBytes);
    row.usedBytes = std::max(row.usedBytes, next.usedBytes);
    row.activeBlocks = std::max(row.activeBlocks, next.activeBlocks);
    row.cachedBlocks = std::max(row.cachedBlocks, next.cachedBlocks);
    row.reservedBlocks = std::max(row.reservedBlocks, next.reservedBlocks);
    row.freeBlocks = std::max(row.freeBlocks, next.freeBlocks);
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
    const auto expected = numberIn(m_info.meta, "end_events");
    m_info.endReason = expected ? m_info.meta["end_reason"] : std::string();
    const bool complete = expected == m_info.events && numberIn(m_info.meta, "end_keyframes") == m_info.keyframes &&
                          numberIn(m_info.meta, "end_steps") == m_info.steps;
    m_info.endedCleanly = expected && complete;
    noteMissingWal();
    if (expected && !complete)
        noteDamage(fmt::format("the end marker counts {} events, {} are there", *expected, m_info.events));
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

Result<source::HistoryAnswer> SessionReader::history(Step firstStep, Step lastStep, std::uint32_t maxRows) {
    if (auto fresh = refresh(); !fresh)
        return tl::unexpected(fresh.error());
    startTimeLimit();
    source::HistoryAnswer answer;
    answer.lastStep = m_info.lastStep.value_or(0);
    auto extent = Statement::prepare(m_file.database,
                                     "SELECT count(*), min(step), max(step) FROM steps WHERE step BETWEEN ?1 AND ?2");
    auto rows = Statement::prepare(m_file.database, "SELECT * FROM steps WHERE step BETWEEN ?1 AND ?2 ORDER BY step");
    if (!extent || !rows)
        return tl::unexpected(m_file.database.lastError());
    if (extent->bind(1, std::int64_t{firstStep}).bind(2, std::int64_t{lastStep}).step() != SQLITE_ROW)
        return tl::unexpected(extent->error());
    const std::int64_t count = extent->integer(0), first = extent->integer(1), last = extent->integer(2);
    const std::int64_t limit = std::clamp<std::int64_t>(maxRows, 1, 1'000'000);
    const std::int64_t stepsPerRow = count > limit ? (last - first + limit) / limit : 1;
    std::int64_t bucket = -1;
    rows->bind(1, std::int64_t{firstStep}).bind(2, std::int64_t{lastStep});
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const trace::StepRow row = stepRowOf(*rows);
        const std::int64_t at = (rows->integer(0) - first) / stepsPerRow;
        if (at == bucket && !answer.steps.empty())
            mergeInto(answer.steps.back(), row);
        else
            answer.steps.push_back(row);
        bucket = at;
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("steps: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    auto alive = requests(firstStep, lastStep);
    if (!alive)
        return tl::unexpected(alive.error());
    answer.requests = std::move(*alive);
    const bool preempted = std::any_of(answer.requests.begin(), answer.requests.end(),
                                       [](const trace::RequestRow& row) { return row.preemptions > 0; });
    if (!preempted)
        return answer;
    if (auto found = findGaps(); !found)
        return tl::unexpected(found.error());
    std::copy_if(m_gaps.begin(), m_gaps.end(), std::back_inserter(answer.gaps), [&](const trace::PreemptionGap& gap) {
        return gap.preempted <= lastStep && gap.resumed.value_or(lastStep) >= firstStep;
    });
    return answer;
}

// The tables have no row per preemption: from the events, each looked at once.
Result<void> SessionReader::findGaps() {
    const auto resume = [this](RequestId request, Step step) {
        if (const auto open = m_openGaps.find(request.value); open != m_openGaps.end())
            if (trace::PreemptionGap& gap = m_gaps[open->second]; !gap.resumed)
                gap.resumed = step;
    };
    const auto catchUp = [this](RequestId request, Step step) {
        if (const auto open = m_openGaps.extract(request.value))
            m_gaps[open.mapped()].caughtUp = step;
    };
    for (std::size_t i = 0; i < m_chunks.size(); ++i) {
        const ChunkEntry& chunk = m_chunks[i];
        if (chunk.endEvent() <= m_gapsTo)
            continue;
        const auto events = chunkEvents(i);
        if (!events && m_file.limit->isOver())
            return tl::unexpected(events.error());
        const std::int64_t from = std::max<std::int64_t>(m_gapsTo - chunk.firstEvent, 0);
        m_gapsTo = chunk.endEvent();
        if (!events) // damaged, and named as such
            continue;
        for (std::size_t e = static_cast<std::size_t>(from); e < (*events)->size(); ++e) {
            const trace::Event& event = (**events)[e];
            if (const auto* preempted = std::get_if<trace::RequestPreempted>(&event.body)) {
                catchUp(preempted->request, event.step); // as far as it came
                m_openGaps[preempted->request.value] = m_gaps.size();
                m_gaps.push_back({preempted->request, event.step, {}, {}});
            } else if (const auto* resumed = std::get_if<trace::RequestResumed>(&event.body)) {
                resume(resumed->request, event.step);
            } else if (const auto* sampled = std::get_if<trace::TokenSampled>(&event.body)) {
                catchUp(sampled->request, event.step);
            } else if (const auto* finished = std::get_if<trace::RequestFinished>(&event.body)) {
                resume(finished->request, event.step);
                catchUp(finished->request, event.step);
            }
        }
    }
    return {};
}

Result<std::vector<trace::RequestRow>> SessionReader::requests(Step firstStep, Step lastStep) {
    startTimeLimit();
    auto rows = Statement::prepare(m_file.database,
                                   "SELECT * FROM requests WHERE arrived_step <= ?2 AND (finished_step IS NULL OR "
                                   "finished_step >= ?1) ORDER BY request LIMIT 1000000");
    if (!rows)
        return tl::unexpected(rows.error());
    rows->bind(1, std::int64_t{firstStep}).bind(2, std::int64_t{lastStep});
    std::vector<trace::RequestRow> found;
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        trace::RequestRow row;
        row.request = RequestId(static_cast<std::uint64_t>(rows->integer(0)));
        row.title = rows->text(1);
        row.promptTokens = static_cast<std::uint32_t>(rows->integer(2));
        row.outputTokens = static_cast<std::uint32_t>(rows->integer(3));
        row.cachedTokens = static_cast<std::uint32_t>(rows->integer(4));
        row.preemptions = static_cast<std::uint32_t>(rows->integer(5));
        row.arrivedStep = static_cast<Step>(rows->integer(6));
        row.arrivedNs = rows->integer(7);
        row.admittedStep = optionalStep(*rows, 8);
        row.firstTokenStep = optionalStep(*rows, 9);
        row.firstTokenNs = optionalNs(*rows, 10);
        row.finishedStep = optionalStep(*rows, 11);
        row.finishedNs = optionalNs(*rows, 12);
        row.finishReason = finishReasonNamed(rows->text(13));
        row.detail = rows->text(14);
        found.push_back(std::move(row));
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("requests: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    return found;
}

Result<source::RequestTextAnswer> SessionReader::requestText(RequestId request) {
    startTimeLimit();
    auto rows = Statement::prepare(
        m_file.database, "SELECT token, step FROM tokens WHERE request = ?1 ORDER BY position LIMIT 20000000");
    if (!rows)
        return tl::unexpected(rows.error());
    rows->bind(1, static_cast<std::int64_t>(request.value));
    source::RequestTextAnswer answer;
    answer.request = request;
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const auto token = static_cast<TokenId>(rows->integer(0));
        if (const auto step = optionalStep(*rows, 1)) {
            answer.outputTokens.push_back(token);
            answer.outputSteps.push_back(*step);
        } else {
            answer.promptTokens.push_back(token);
        }
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("tokens: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    return answer;
}

Result<std::string> SessionReader::piece(TokenId token) {
    startTimeLimit();
    auto row = Statement::prepare(m_file.database, "SELECT bytes, checksum FROM pieces WHERE id = ?1");
    if (!row)
        return tl::unexpected(row.error());
    const int code = row->bind(1, std::int64_t{token}).step();
    if (code == SQLITE_DONE)
        return std::string();
    if (code != SQLITE_ROW)
        return tl::unexpected(row->error());
    const auto bytes = row->blob(0);
    if (pieceChecksum(token, bytes) != row->integer(1)) {
        noteDamage(fmt::format("piece {}: its checksum does not match", token));
        return std::string();
    }
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::unordered_map<TokenId, std::string>> SessionReader::pieces() {
    startTimeLimit();
    auto rows = Statement::prepare(m_file.database, "SELECT id, bytes, checksum FROM pieces");
    if (!rows)
        return tl::unexpected(rows.error());
    std::unordered_map<TokenId, std::string> found;
    std::int64_t total = 0;
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const std::int64_t id = rows->integer(0);
        const auto bytes = rows->blob(1);
        if (id < 0 || id > std::numeric_limits<TokenId>::max() || pieceChecksum(id, bytes) != rows->integer(2)) {
            noteDamage(fmt::format("piece {}: its checksum does not match", id));
            continue;
        }
        total += static_cast<std::int64_t>(bytes.size()) + 64;
        if (total > kMaxPieceBytes)
            return makeError(ErrorKind::Refused, "'{}' holds more vocabulary than any model has.", m_info.path);
        found.emplace(static_cast<TokenId>(id), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    if ((code & 0xFF) == SQLITE_CORRUPT)
        noteDamage("pieces: a part of the table cannot be read");
    else if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    return found;
}

} // namespace kvatlas::sessions

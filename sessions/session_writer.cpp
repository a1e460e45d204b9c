// SPDX-License-Identifier: Apache-2.0
#include "sessions/session_writer.h"

#include "core/trace/codec.h"
#include "sessions/create_file.h"
#include "sessions/names.h"
#include "sessions/packed.h"
#include "sessions/schema.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <fmt/chrono.h>
#include <random>
#include <unistd.h>

namespace kvatlas::sessions {

namespace {

std::int64_t signedBits(std::uint64_t value) {
    return std::bit_cast<std::int64_t>(value);
}

std::string utcNow() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// Positive, so that it reads the same in every tool.
std::int64_t randomId() {
    std::random_device random;
    return static_cast<std::int64_t>((std::uint64_t{random()} << 32 | random()) >> 1);
}

template <class T> void bindOptional(Statement& statement, int index, const std::optional<T>& value) {
    if (value)
        statement.bind(index, static_cast<std::int64_t>(*value));
    else
        statement.bindNull(index);
}

} // namespace

struct SessionWriter::Statements {
    Statement begin, commit, rollback, meta, chunk, keyframe, request, token, piece, step, metric, kernel;
};

Result<std::unique_ptr<SessionWriter>> SessionWriter::create(const std::string& path,
                                                             std::function<std::string(TokenId)> piece,
                                                             const std::map<std::string, std::string>& attributes) {
    auto realPath = createSessionFile(path);
    if (!realPath)
        return tl::unexpected(realPath.error());
    auto writer = open(*realPath, std::move(piece), attributes);
    if (!writer) // what we have just created, and nobody else has written to
        for (const char* suffix : {"", "-wal", "-shm"})
            ::unlink((*realPath + suffix).c_str());
    return writer;
}

Result<std::unique_ptr<SessionWriter>> SessionWriter::open(const std::string& realPath,
                                                           std::function<std::string(TokenId)> piece,
                                                           const std::map<std::string, std::string>& attributes) {
    auto database = Database::open(realPath, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
    if (!database)
        return tl::unexpected(database.error());
    std::unique_ptr<SessionWriter> writer(new SessionWriter);
    writer->m_path = realPath;
    writer->m_piece = std::move(piece);
    writer->m_database = std::move(*database);
    sqlite3_busy_timeout(writer->m_database.handle(), 1000);
    // NORMAL in WAL mode: a killed process loses nothing, a power cut at most the last commits. secure_delete (Debian's
    // default) would write each replaced tail chunk twice.
    if (auto set = writer->m_database.exec("PRAGMA synchronous=NORMAL; PRAGMA secure_delete=OFF; "
                                           "PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=16777216; "
                                           "PRAGMA cache_size=-8192;");
        !set)
        return tl::unexpected(set.error());

    writer->m_statements = std::make_unique<Statements>();
    const std::pair<Statement Statements::*, const char*> statements[] = {
        {&Statements::begin, "BEGIN IMMEDIATE"},
        {&Statements::commit, "COMMIT"},
        {&Statements::rollback, "ROLLBACK"},
        {&Statements::meta, "INSERT OR REPLACE INTO meta VALUES(?,?,?)"},
        {&Statements::chunk, "INSERT OR REPLACE INTO chunks VALUES(?,?,?,?,?,?,?,?,?,?,?)"},
        {&Statements::keyframe, "INSERT OR REPLACE INTO keyframes VALUES(?,?,?,?,?,?,?,?)"},
        {&Statements::request, "INSERT OR REPLACE INTO requests VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
        {&Statements::token, "INSERT OR REPLACE INTO tokens VALUES(?,?,?,?,?,?)"},
        {&Statements::piece, "INSERT OR REPLACE INTO pieces VALUES(?,?,?)"},
        {&Statements::step, "INSERT OR REPLACE INTO steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
        {&Statements::metric, "INSERT OR REPLACE INTO metrics VALUES(?,?,?)"},
        {&Statements::kernel, "INSERT OR REPLACE INTO kernels VALUES(?,?,?,?,?,?,?)"},
    };
    for (const auto& [member, sql] : statements) {
        auto statement = Statement::prepare(writer->m_database, sql);
        if (!statement)
            return tl::unexpected(statement.error());
        (*writer->m_statements).*member = std::move(*statement);
    }
    for (const auto& [key, value] : attributes)
        writer->putMeta(key, value);
    writer->m_session = randomId();
    writer->putMeta("format", "KVAtlas session");
    writer->putMeta("session", std::to_string(writer->m_session));
    writer->putMeta("created_utc", utcNow());
    if (auto committed = writer->commit(); !committed)
        return tl::unexpected(committed.error());
    return writer;
}

SessionWriter::~SessionWriter() {
    close();
}

void SessionWriter::close() {
    m_statements.reset();
    m_database.close();
}

void SessionWriter::putMeta(const std::string& key, const std::string& value) {
    m_meta[key] = value;
    m_dirty = true;
}

Result<void> SessionWriter::appendKeyframe(Step step, std::span<const std::byte> keyframe) {
    assert(m_counts.events == 0);
    if (auto started = m_rows.startFrom(keyframe); !started)
        return started;
    Blob blob;
    blob.key = step;
    blob.stateHash = signedBits(m_rows.state().stateHash());
    blob.rawBytes = static_cast<std::int64_t>(keyframe.size());
    blob.data = compress(keyframe);
    m_keyframes.push_back(std::move(blob));
    m_keyframeStep = step;
    m_keyframeBytes = keyframe.size();
    ++m_counts.keyframes;
    putMeta("attached_after_step", std::to_string(step));
    return {};
}

void SessionWriter::append(std::span<trace::Event> events) {
    constexpr std::size_t kSlice = 128; // events between looks at the size
    m_dirty = m_dirty || !events.empty();
    for (std::size_t begin = 0; begin < events.size(); begin += kSlice) {
        const std::size_t end = std::min(events.size(), begin + kSlice);
        m_scratch.clear();
        trace::encodeTo(m_scratch, events.subspan(begin, end - begin));
        m_tailRawBytes += m_scratch.size();
        m_bytesSinceKeyframe += m_scratch.size();
        for (std::size_t i = begin; i < end; ++i) {
            m_rows.apply(events[i]);
            ++m_counts.events;
            if (std::holds_alternative<trace::StepEnded>(events[i].body)) {
                ++m_counts.steps;
                m_counts.lastStep = events[i].step;
                noteKeyframe(events[i]);
            }
            m_tail.push_back(std::move(events[i]));
        }
        if (m_tailRawBytes >= kChunkRawBytes || m_tail.size() + kSlice > kMaxChunkEvents)
            closeTail();
    }
}

void SessionWriter::noteKeyframe(const trace::Event& event) {
    const bool due = event.step - m_keyframeStep >= kKeyframeSteps ||
                     m_bytesSinceKeyframe > std::max(m_keyframeBytes, kMinKeyframeEventBytes);
    if (!due || !m_rows.stateKnown())
        return;
    const std::vector<std::byte> raw = m_rows.state().encode();
    Blob keyframe;
    keyframe.key = event.step;
    keyframe.firstEvent = static_cast<std::int64_t>(m_counts.events);
    keyframe.stateHash = signedBits(m_rows.state().stateHash());
    keyframe.rawBytes = static_cast<std::int64_t>(raw.size());
    keyframe.data = compress(raw);
    m_keyframes.push_back(std::move(keyframe));
    m_keyframeStep = event.step;
    m_keyframeBytes = raw.size();
    m_bytesSinceKeyframe = 0;
    ++m_counts.keyframes;
}

SessionWriter::Blob SessionWriter::packTail() const {
    Blob chunk;
    chunk.key = m_tailId;
    chunk.firstEvent = m_tailFirstEvent;
    chunk.events = static_cast<std::int64_t>(m_tail.size());
    const auto [first, last] =
        std::minmax_element(m_tail.begin(), m_tail.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
    chunk.firstStep = first->step;
    chunk.lastStep = last->step;
    const std::vector<std::byte> raw = trace::encode(m_tail);
    chunk.rawBytes = static_cast<std::int64_t>(raw.size());
    chunk.data = compress(raw);
    return chunk;
}

void SessionWriter::closeTail() {
    if (m_tail.empty())
        return;
    m_chunks.push_back(packTail());
    m_tailFirstEvent += static_cast<std::int64_t>(m_tail.size());
    m_tail.clear();
    m_tailRawBytes = 0;
    ++m_tailId;
}

Result<void> SessionWriter::commit() {
    if (!m_dirty)
        return {};
    m_mayPass = false;
    int moved = 0;
    m_gone = sqlite3_file_control(m_database.handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
    if (m_gone)
        return makeError(ErrorKind::Failed, "'{}' was moved or deleted while it was recorded.", m_path);
    auto written = m_statements->begin.run();
    if (written)
        written = writeAll();
    if (written)
        written = m_statements->commit.run();
    if (!written) {
        const int code = m_database.lastCode() & 0xFF;
        m_mayPass = code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_BUSY;
        if (sqlite3_get_autocommit(m_database.handle()) == 0)
            (void)m_statements->rollback.run(); // SQLite has often done so already
        return written;
    }
    m_chunks.clear();
    m_keyframes.clear();
    m_meta.clear();
    m_rows.clearBatch();
    m_committed = m_counts;
    m_committed.chunks = static_cast<std::uint64_t>(m_tailId - (m_tail.empty() ? 1 : 0));
    m_dirty = false;
    return {};
}

Result<void> SessionWriter::writeAll() {
    for (const Blob& chunk : m_chunks)
        if (auto written = writeChunk(chunk); !written)
            return written;
    if (!m_tail.empty())
        if (auto written = writeChunk(packTail()); !written)
            return written;
    if (auto written = writeKeyframes(); !written)
        return written;
    if (auto written = writeRows(); !written)
        return written;
    for (const auto& [key, value] : m_meta)
        if (auto written = writeMeta(key, value); !written)
            return written;
    return {};
}

Result<void> SessionWriter::writeMeta(const std::string& key, const std::string& value) {
    return m_statements->meta.bind(1, std::string_view(key))
        .bind(2, std::string_view(value))
        .bind(3, metaChecksum(key, value))
        .run();
}

Result<void> SessionWriter::writeChunk(const Blob& chunk) {
    if (chunk.rawBytes > kMaxChunkRawBytes)
        return makeError(ErrorKind::Failed, "One event of step {} takes {} bytes, more than a session can hold.",
                         chunk.lastStep, chunk.rawBytes);
    const std::int64_t columns[] = {chunk.key,       m_session,      kEventTrack,      chunk.firstEvent, chunk.events,
                                    chunk.firstStep, chunk.lastStep, kCodecZstdEvents, chunk.rawBytes};
    Statement& s = m_statements->chunk;
    int i = 0;
    for (const std::int64_t value : columns)
        s.bind(++i, value);
    return s.bind(10, blobChecksum(columns, chunk.data)).bind(11, std::span<const std::byte>(chunk.data)).run();
}

Result<void> SessionWriter::writeKeyframes() {
    for (const Blob& keyframe : m_keyframes) {
        const std::int64_t columns[] = {keyframe.key,       m_session,       keyframe.firstEvent,
                                        keyframe.stateHash, kCodecZstdState, keyframe.rawBytes};
        Statement& s = m_statements->keyframe;
        int i = 0;
        for (const std::int64_t value : columns)
            s.bind(++i, value);
        auto written =
            s.bind(7, blobChecksum(columns, keyframe.data)).bind(8, std::span<const std::byte>(keyframe.data)).run();
        if (!written)
            return written;
    }
    return {};
}

Result<void> SessionWriter::writeRows() {
    const RowBatch& batch = m_rows.batch();
    for (const trace::StepRow& row : batch.steps) {
        Statement& s = m_statements->step;
        int i = 0;
        for (const std::int64_t value :
             {std::int64_t{row.step}, row.startNs, row.endNs, row.computeNs, row.waitNs,
              std::int64_t{row.prefillTokens}, std::int64_t{row.decodeTokens}, std::int64_t{row.sequences},
              std::int64_t{row.waitingRequests}, signedBits(row.activeBytes), signedBits(row.cachedBytes),
              signedBits(row.reservedBytes), signedBits(row.capacityBytes), signedBits(row.usedBytes),
              std::int64_t{row.activeBlocks}, std::int64_t{row.cachedBlocks}, std::int64_t{row.reservedBlocks},
              std::int64_t{row.freeBlocks}, signedBits(row.stateHash)})
            s.bind(++i, value);
        if (auto written = s.run(); !written)
            return written;
    }
    for (const auto& [id, row] : batch.requests) {
        Statement& s = m_statements->request;
        s.bind(1, signedBits(id.value))
            .bind(2, std::string_view(row.title))
            .bind(3, std::int64_t{row.promptTokens})
            .bind(4, std::int64_t{row.outputTokens})
            .bind(5, std::int64_t{row.cachedTokens})
            .bind(6, std::int64_t{row.preemptions})
            .bind(7, std::int64_t{row.arrivedStep})
            .bind(8, row.arrivedNs)
            .bind(15, std::string_view(row.detail));
        bindOptional(s, 9, row.admittedStep);
        bindOptional(s, 10, row.firstTokenStep);
        bindOptional(s, 11, row.firstTokenNs);
        bindOptional(s, 12, row.finishedStep);
        bindOptional(s, 13, row.finishedNs);
        if (row.finishReason)
            s.bind(14, nameOf(*row.finishReason));
        else
            s.bindNull(14);
        if (auto written = s.run(); !written)
            return written;
    }
    for (const TokenRow& row : batch.tokens) {
        Statement& s = m_statements->token;
        s.bind(1, signedBits(row.request.value))
            .bind(2, std::int64_t{row.position})
            .bind(3, std::int64_t{row.sequence.value})
            .bind(4, std::int64_t{row.token});
        bindOptional(s, 5, row.step);
        if (row.probability)
            s.bind(6, *row.probability);
        else
            s.bindNull(6);
        if (auto written = s.run(); !written)
            return written;
    }
    for (const TokenId token : batch.pieces) {
        const std::string bytes = m_piece ? m_piece(token) : std::string();
        if (bytes.empty())
            continue;
        const auto span = std::as_bytes(std::span(bytes));
        if (auto written = m_statements->piece.bind(1, std::int64_t{token})
                               .bind(2, span)
                               .bind(3, pieceChecksum(token, span))
                               .run();
            !written)
            return written;
    }
    for (const auto& [key, value] : batch.metrics)
        if (auto written = m_statements->metric.bind(1, std::int64_t{key.first})
                               .bind(2, std::string_view(key.second))
                               .bind(3, value)
                               .run();
            !written)
            return written;
    for (const auto& [key, row] : batch.kernels)
        if (auto written = m_statements->kernel.bind(1, std::int64_t{row.firstStep})
                               .bind(2, nameOf(row.kernel))
                               .bind(3, std::int64_t{row.lastStep})
                               .bind(4, row.calls)
                               .bind(5, row.durationNs)
                               .bind(6, row.bytes)
                               .bind(7, row.flops)
                               .run();
            !written)
            return written;
    for (const auto& [key, value] : batch.meta)
        if (auto written = writeMeta(key, value); !written)
            return written;
    return {};
}

Result<std::string> SessionWriter::finish(const std::string& reason) {
    closeTail();
    m_counts.chunks = static_cast<std::uint64_t>(m_tailId - 1);
    putMeta("end_reason", reason);
    putMeta("end_events", std::to_string(m_counts.events));
    putMeta("end_steps", std::to_string(m_counts.steps));
    putMeta("end_chunks", std::to_string(m_counts.chunks));
    putMeta("end_keyframes", std::to_string(m_counts.keyframes));
    putMeta("ended_utc", utcNow());
    if (!m_rows.stateKnown())
        putMeta("state_error", m_rows.error());
    if (auto committed = commit(); !committed)
        return tl::unexpected(committed.error());
    auto left = leaveWal();
    close();
    return left;
}

Result<std::string> SessionWriter::leaveWal() {
    m_statements.reset();
    if (auto checkpointed = m_database.exec("PRAGMA wal_checkpoint(TRUNCATE)"); !checkpointed)
        return tl::unexpected(checkpointed.error());
    // MEMORY rather than DELETE: both leave WAL mode and give the same file, but this way no rollback journal exists at
    // any moment, and a journal that lies beside a session is always somebody else's.
    auto mode = Statement::prepare(m_database, "PRAGMA journal_mode=MEMORY");
    if (!mode)
        return tl::unexpected(mode.error());
    if (mode->step() != SQLITE_ROW || mode->text(0) != "memory")
        return fmt::format("The session is complete, but another program has '{0}' open: keep '{0}' and '{0}-wal' "
                           "together.",
                           m_path);
    return std::string();
}

} // namespace kvatlas::sessions

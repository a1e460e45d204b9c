// SPDX-License-Identifier: Apache-2.0
#include "sessions/check.h"

#include "sessions/names.h"
#include "sessions/reader.h"
#include "sessions/row_collector.h"

#include <algorithm>
#include <bit>

namespace kvatlas::sessions {

namespace {

constexpr std::size_t kMaxSentences = 200;

class Checker {
public:
    explicit Checker(SessionReader& reader)
        : m_reader(reader) {}

    CheckResult run() {
        checkIntegrity();
        prepare();
        for (std::size_t i = 0; i < m_reader.chunks().size(); ++i)
            checkChunk(i);
        for (std::size_t i = 0; i < m_reader.keyframes().size(); ++i) // those that no event led to
            if (!m_seenKeyframes.contains(i))
                (void)m_reader.keyframe(i);
        checkFinalRows();
        if (auto pieces = m_reader.pieces(); !pieces)
            note(pieces.error().message);

        CheckResult result;
        result.schema = m_reader.info().schema;
        result.events = m_reader.info().events;
        result.steps = m_reader.info().steps;
        result.keyframes = m_reader.info().keyframes;
        result.endedCleanly = m_reader.info().endedCleanly;
        result.hint = m_reader.info().hint;
        result.damaged = m_reader.damaged();
        for (std::string& sentence : m_damaged)
            if (result.damaged.size() < kMaxSentences)
                result.damaged.push_back(std::move(sentence));
        result.ok = result.damaged.empty();
        return result;
    }

private:
    void note(std::string sentence) {
        if (m_damaged.size() < kMaxSentences)
            m_damaged.push_back(std::move(sentence));
    }

    void checkIntegrity() {
        m_reader.startTimeLimit();
        auto rows = Statement::prepare(m_reader.database(), "PRAGMA integrity_check(20)");
        if (!rows)
            return note(rows.error().message);
        int code;
        while ((code = rows->step()) == SQLITE_ROW)
            if (rows->text(0) != "ok")
                note("SQLite's integrity check: " + rows->text(0).substr(0, 200));
        if (code != SQLITE_DONE)
            note("SQLite's integrity check could not be finished: " + rows->error().message);
    }

    void prepare() {
        if (m_reader.keyframes().empty() || m_reader.keyframes().front().firstEvent != 0)
            return;
        m_seenKeyframes[0] = true;
        const auto keyframe = m_reader.keyframe(0);
        if (!keyframe || !m_rows.startFrom(*keyframe))
            m_unbroken = m_stateKnown = false;
        m_nextKeyframe = 1;
        m_joined = true;
    }

    void checkChunk(std::size_t index) {
        const ChunkEntry entry = m_reader.chunks()[index];
        const auto events = m_reader.chunkEvents(index);
        if (!events || entry.firstEvent != m_nextEvent) {
            m_unbroken = m_stateKnown = false;
            m_nextEvent = entry.endEvent();
            if (!events)
                return;
            m_nextEvent = entry.firstEvent;
        }
        Step first = 0xFFFF'FFFF, last = 0;
        for (const trace::Event& event : **events) {
            meetKeyframes();
            if (m_stateKnown)
                m_rows.apply(event);
            first = std::min(first, event.step);
            last = std::max(last, event.step);
            ++m_nextEvent;
        }
        meetKeyframes();
        if (first != entry.firstStep || last != entry.lastStep)
            note(fmt::format("chunk {}: its events are of steps {} to {}, not {} to {}", entry.id, first, last,
                             entry.firstStep, entry.lastStep));
        if (!m_stateKnown)
            return;
        if (!m_rows.stateKnown()) {
            if (!m_reader.info().meta.contains("state_error"))
                note(fmt::format("chunk {}: an event does not fit: {}", entry.id, m_rows.error()));
            m_unbroken = m_stateKnown = false;
            return;
        }
        compareBatch();
    }

    // Keyframes whose events have all been folded by now: equal to the state, or a place to begin anew after damage.
    void meetKeyframes() {
        const auto& keyframes = m_reader.keyframes();
        for (; m_nextKeyframe < keyframes.size() && keyframes[m_nextKeyframe].firstEvent <= m_nextEvent;
             ++m_nextKeyframe) {
            const KeyframeEntry entry = keyframes[m_nextKeyframe];
            m_seenKeyframes[m_nextKeyframe] = true;
            const auto bytes = m_reader.keyframe(m_nextKeyframe);
            if (!bytes || entry.firstEvent != m_nextEvent)
                continue;
            if (m_stateKnown && m_rows.stateKnown()) {
                if (m_rows.state().stateHash() != entry.stateHash || m_rows.state().encode() != *bytes)
                    note(
                        fmt::format("keyframe of step {}: it differs from the state that the events give", entry.step));
                continue;
            }
            RowCollector fresh;
            if (!fresh.startFrom(*bytes) || fresh.state().stateHash() != entry.stateHash)
                note(fmt::format("keyframe of step {}: it is no valid state", entry.step));
            else {
                m_rows = std::move(fresh);
                m_stateKnown = true;
            }
        }
    }

    void compareBatch() {
        const RowBatch& batch = m_rows.batch();
        m_reader.startTimeLimit();
        for (const trace::StepRow& row : batch.steps)
            compareStep(row);
        for (const TokenRow& row : batch.tokens)
            compareToken(row);
        m_stepCount += batch.steps.size();
        for (const auto& [id, row] : batch.requests)
            m_requests[id] = row;
        for (const auto& [key, row] : batch.kernels)
            m_kernels[{key.first, std::string(nameOf(key.second))}] = row;
        for (const auto& [key, value] : batch.metrics)
            m_metrics[key] = value;
        for (const auto& [key, value] : batch.meta)
            if (const auto found = m_reader.info().meta.find(key);
                found == m_reader.info().meta.end() || found->second != value)
                note(fmt::format("meta '{}': it differs from the run's first event", key));
        m_rows.clearBatch();
    }

    const Statement* fetch(std::optional<Statement>& statement, const char* sql,
                           std::initializer_list<std::int64_t> key, const std::string& what) {
        if (!statement) {
            auto prepared = Statement::prepare(m_reader.database(), sql);
            if (!prepared) {
                note(prepared.error().message);
                return nullptr;
            }
            statement = std::move(*prepared);
        }
        statement->reset();
        int i = 0;
        for (const std::int64_t value : key)
            statement->bind(++i, value);
        if (statement->step() == SQLITE_ROW)
            return &*statement;
        note(what + ": it is missing or cannot be read");
        statement->reset();
        return nullptr;
    }

    void compareStep(const trace::StepRow& row) {
        const std::string what = fmt::format("steps row {}", row.step);
        const Statement* there = fetch(m_step, "SELECT * FROM steps WHERE step = ?1", {row.step}, what);
        if (!there)
            return;
        const std::int64_t expected[] = {row.step,
                                         row.startNs,
                                         row.endNs,
                                         row.computeNs,
                                         row.waitNs,
                                         row.prefillTokens,
                                         row.decodeTokens,
                                         row.sequences,
                                         row.waitingRequests,
                                         std::bit_cast<std::int64_t>(row.activeBytes),
                                         std::bit_cast<std::int64_t>(row.cachedBytes),
                                         std::bit_cast<std::int64_t>(row.reservedBytes),
                                         std::bit_cast<std::int64_t>(row.capacityBytes),
                                         std::bit_cast<std::int64_t>(row.usedBytes),
                                         row.activeBlocks,
                                         row.cachedBlocks,
                                         row.reservedBlocks,
                                         row.freeBlocks,
                                         std::bit_cast<std::int64_t>(row.stateHash)};
        for (int i = 0; i < static_cast<int>(std::size(expected)); ++i)
            if (there->isNull(i) || there->integer(i) != expected[i])
                return note(fmt::format("{}: column {} differs from the events", what,
                                        sqlite3_column_name(there->handle(), i)));
    }

    void compareToken(const TokenRow& row) {
        const std::string what = fmt::format("tokens row of request {}, position {}", row.request.value, row.position);
        ++m_tokenCount;
        const Statement* there =
            fetch(m_token, "SELECT sequence, token, step, probability FROM tokens WHERE request = ?1 AND position = ?2",
                  {std::bit_cast<std::int64_t>(row.request.value), row.position}, what);
        if (!there)
            return;
        const bool same = there->integer(0) == row.sequence.value && there->integer(1) == row.token &&
                          there->isNull(2) == !row.step && (!row.step || there->integer(2) == *row.step) &&
                          there->isNull(3) == !row.probability &&
                          (!row.probability || there->real(3) == *row.probability);
        if (!same)
            note(what + ": it differs from the events");
    }

    void checkFinalRows() {
        if (!m_unbroken || m_joined) // what lies before the damage or the joining is not known
            return;
        m_reader.startTimeLimit();
        compareCount("steps", m_stepCount);
        compareCount("tokens", m_tokenCount);
        compareCount("metrics", m_metrics.size());
        compareCount("kernels", m_kernels.size());
        const auto requests = m_reader.requests();
        if (!requests)
            return note(requests.error().message);
        if (requests->size() != m_requests.size())
            note(fmt::format("requests: {} rows where the events tell of {}", requests->size(), m_requests.size()));
        for (const trace::RequestRow& row : *requests)
            if (const auto found = m_requests.find(row.request); found == m_requests.end() || found->second != row)
                note(fmt::format("requests row {}: it differs from the events", row.request.value));
        compareMetrics();
        compareKernels();
    }

    void compareCount(const char* table, std::uint64_t expected) {
        auto row = Statement::prepare(m_reader.database(), fmt::format("SELECT count(*) FROM {}", table));
        if (!row || row->step() != SQLITE_ROW)
            note(fmt::format("{}: it cannot be read", table));
        else if (static_cast<std::uint64_t>(row->integer(0)) != expected)
            note(fmt::format("{}: {} rows where the events tell of {}", table, row->integer(0), expected));
    }

    void compareMetrics() {
        auto rows = Statement::prepare(m_reader.database(), "SELECT step, name, value FROM metrics");
        while (rows && rows->step() == SQLITE_ROW) {
            const auto found = m_metrics.find({static_cast<Step>(rows->integer(0)), rows->text(1)});
            if (found == m_metrics.end() || found->second != rows->integer(2))
                note(fmt::format("metrics row of step {}, '{}': it differs from the events", rows->integer(0),
                                 rows->text(1).substr(0, 64)));
        }
    }

    void compareKernels() {
        auto rows = Statement::prepare(m_reader.database(), "SELECT * FROM kernels");
        while (rows && rows->step() == SQLITE_ROW) {
            const auto found = m_kernels.find({rows->integer(0), rows->text(1)});
            if (found == m_kernels.end() || found->second.lastStep != rows->integer(2) ||
                found->second.calls != rows->integer(3) || found->second.durationNs != rows->integer(4) ||
                found->second.bytes != rows->integer(5) || found->second.flops != rows->integer(6))
                note(fmt::format("kernels row of step {}, '{}': it differs from the events", rows->integer(0),
                                 rows->text(1).substr(0, 64)));
        }
    }

    SessionReader& m_reader;
    RowCollector m_rows;
    std::vector<std::string> m_damaged;
    std::int64_t m_nextEvent = 0;
    std::size_t m_nextKeyframe = 0;
    std::map<std::size_t, bool> m_seenKeyframes;
    bool m_stateKnown = true, m_unbroken = true, m_joined = false;
    std::optional<Statement> m_step, m_token;
    std::uint64_t m_stepCount = 0, m_tokenCount = 0;
    std::map<RequestId, trace::RequestRow> m_requests;
    std::map<std::pair<std::int64_t, std::string>, KernelRow> m_kernels;
    std::map<MetricKey, std::int64_t> m_metrics;
};

} // namespace

Result<CheckResult> checkSession(const std::string& path) {
    auto reader =
        SessionReader::open(path, {.openLimit = std::chrono::seconds(30), .queryLimit = std::chrono::minutes(10)});
    if (!reader)
        return tl::unexpected(reader.error());
    if (auto held = (*reader)->hold(); !held)
        return tl::unexpected(held.error());
    return Checker(**reader).run();
}

} // namespace kvatlas::sessions

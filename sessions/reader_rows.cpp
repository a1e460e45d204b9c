// SPDX-License-Identifier: Apache-2.0
// What the reader answers from the tables: steps, requests, their tokens and text.
#include "sessions/reader.h"

#include "sessions/columns.h"
#include "sessions/names.h"
#include "sessions/packed.h"
#include "sessions/schema.h"

#include <algorithm>

namespace kvatlas::sessions {

namespace {

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

} // namespace

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

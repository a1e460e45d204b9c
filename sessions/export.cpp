// SPDX-License-Identifier: Apache-2.0
#include "sessions/export.h"

#include "sessions/event_json.h"
#include "sessions/names.h"

#include <charconv>

namespace kvatlas::sessions {

namespace {

// Collects text and hands it on in large pieces.
class Output {
public:
    explicit Output(const TextSink& sink)
        : m_sink(sink) {}

    void put(std::string_view text) {
        m_text += text;
        if (m_text.size() >= kPieceBytes)
            flush();
    }
    void flush() {
        if (m_open && !m_text.empty())
            m_open = m_sink(m_text);
        m_text.clear();
    }
    bool open() const { return m_open; }
    Result<void> finish() {
        flush();
        if (!m_open)
            return makeError(ErrorKind::Failed, "The export could not be written to its end.");
        return {};
    }

private:
    static constexpr std::size_t kPieceBytes = 1 << 16;
    const TextSink& m_sink;
    std::string m_text;
    bool m_open = true;
};

std::string csvField(const std::string& text) {
    if (text.find_first_of("\",\r\n") == std::string::npos)
        return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"')
            quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

Result<void> exportTable(SessionReader& reader, const char* sql, Output& out) {
    reader.startTimeLimit();
    auto rows = Statement::prepare(reader.database(), sql);
    if (!rows)
        return tl::unexpected(rows.error());
    const int columns = sqlite3_column_count(rows->handle());
    for (int i = 0; i < columns; ++i)
        out.put((i ? "," : "") + csvField(sqlite3_column_name(rows->handle(), i)));
    out.put("\r\n");
    int code;
    while (out.open() && (code = rows->step()) == SQLITE_ROW) {
        for (int i = 0; i < columns; ++i) {
            out.put(i ? "," : "");
            if (sqlite3_column_type(rows->handle(), i) == SQLITE_INTEGER)
                out.put(std::to_string(rows->integer(i)));
            else if (!rows->isNull(i))
                out.put(csvField(rows->text(i)));
        }
        out.put("\r\n");
    }
    if (out.open() && code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    return out.finish();
}

template <class Visit> Result<void> forEachEvent(SessionReader& reader, Output& out, Visit visit) {
    std::int64_t next = 0;
    for (std::size_t i = 0; i < reader.chunks().size() && out.open(); ++i) {
        next = reader.chunks()[i].firstEvent;
        const auto events = reader.chunkEvents(i);
        if (!events && reader.damaged().empty()) // not damage: a time-out or a failing disk
            return tl::unexpected(events.error());
        if (!events)
            continue; // named in damaged()
        for (const trace::Event& event : **events)
            visit(next++, event);
    }
    return {};
}

Result<void> exportNdjson(SessionReader& reader, Output& out) {
    auto done = forEachEvent(reader, out, [&](std::int64_t, const trace::Event& event) {
        out.put(toLine(toJson(event)));
        out.put("\n");
    });
    if (!done)
        return done;
    return out.finish();
}

std::string sqlText(std::string_view text) {
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'')
            quoted += '\'';
        if (c != '\0')
            quoted += c;
    }
    return quoted + "'";
}

Result<void> exportSql(SessionReader& reader, Output& out) {
    out.put(
        "CREATE TABLE events(event INTEGER PRIMARY KEY, step INTEGER, ns INTEGER, kind TEXT, fields TEXT);\nBEGIN;\n");
    auto done = forEachEvent(reader, out, [&](std::int64_t number, const trace::Event& event) {
        out.put(fmt::format("INSERT INTO events VALUES({},{},{},{},{});\n", number, event.step, event.ns,
                            sqlText(trace::nameOf(event.kind())), sqlText(toLine(fieldsOf(event)))));
    });
    if (!done)
        return done;
    out.put("COMMIT;\n");
    return out.finish();
}

// Chrome's trace event format, as Perfetto and chrome://tracing read it: `ts` and `dur` in microseconds.
class TraceWriter {
public:
    explicit TraceWriter(Output& out)
        : m_out(out) {
        m_out.put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        name("process_name", 0, "KVAtlas");
        name("thread_name", kSteps, "steps");
        name("thread_name", kKernels, "kernels (sums per step, one after the other)");
    }

    void add(const trace::Event& event) {
        m_lastNs = std::max(m_lastNs, event.ns);
        std::visit([&](const auto& body) { note(event, body); }, event.body);
    }

    void end() {
        for (const auto& [request, phase] : m_phases) {
            async('e', request, phase, m_lastNs);
            async('e', request, "request", m_lastNs);
        }
        m_out.put("\n]}\n");
    }

private:
    static constexpr int kSteps = 1, kKernels = 2;

    static std::string microseconds(std::int64_t ns) {
        ns = std::max<std::int64_t>(ns, 0);
        return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
    }
    static std::string quoted(std::string_view text) { return toLine(nlohmann::ordered_json(std::string(text))); }

    void entry(const std::string& text) {
        m_out.put(m_first ? "" : ",\n");
        m_first = false;
        m_out.put(text);
    }
    void name(std::string_view what, int thread, std::string_view text) {
        entry(fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"{}","args":{{"name":{}}}}})", thread, what,
                          quoted(text)));
    }
    void slice(int thread, const std::string& text, std::int64_t beginNs, std::int64_t durationNs,
               const std::string& args) {
        entry(fmt::format(R"({{"ph":"X","pid":1,"tid":{},"name":{},"ts":{},"dur":{},"args":{}}})", thread, quoted(text),
                          microseconds(beginNs), microseconds(durationNs), args));
    }
    void async(char phase, RequestId request, std::string_view text, std::int64_t ns, const std::string& args = "{}") {
        entry(fmt::format(R"({{"ph":"{}","cat":"request","pid":1,"tid":0,"id":"{}","name":{},"ts":{},"args":{}}})",
                          phase, request.value, quoted(text), microseconds(ns), args));
    }
    void enter(RequestId request, const char* phase, std::int64_t ns) {
        const auto known = m_phases.find(request);
        if (known == m_phases.end())
            async('b', request, "request", ns);
        else
            async('e', request, known->second, ns);
        async('b', request, phase, ns);
        m_phases[request] = phase;
    }

    template <class Body> void note(const trace::Event&, const Body&) {}
    void note(const trace::Event& e, const trace::StepStarted& body) {
        m_stepNs = m_kernelNs = e.ns;
        m_batch = body.batch.size();
    }
    void note(const trace::Event& e, const trace::StepEnded& body) {
        slice(kSteps, fmt::format("step {}", e.step), m_stepNs, e.ns - m_stepNs,
              fmt::format(R"({{"sequences":{},"compute_ns":{},"wait_ns":{}}})", m_batch, body.computeNs, body.waitNs));
    }
    void note(const trace::Event&, const trace::KernelSpan& body) {
        slice(kKernels, std::string(nameOf(body.kernel)), m_kernelNs, body.durationNs,
              fmt::format(R"({{"calls":{},"bytes":{},"flops":{}}})", body.calls, body.bytes, body.flops));
        m_kernelNs += std::clamp<std::int64_t>(body.durationNs, 0, 1'000'000'000'000);
    }
    void note(const trace::Event& e, const trace::MemoryCounter& body) {
        entry(fmt::format(
            R"({{"ph":"C","pid":1,"name":"memory","ts":{},"args":{{"arena_bytes":{},"resident_bytes":{}}}}})",
            microseconds(e.ns), body.arenaBytes, body.residentBytes));
    }
    void note(const trace::Event& e, const trace::RequestArrived& body) { enter(body.request, "waiting", e.ns); }
    void note(const trace::Event& e, const trace::RequestAdmitted& body) { enter(body.request, "running", e.ns); }
    void note(const trace::Event& e, const trace::RequestPreempted& body) { enter(body.request, "preempted", e.ns); }
    void note(const trace::Event& e, const trace::RequestResumed& body) { enter(body.request, "running", e.ns); }
    void note(const trace::Event& e, const trace::TokenSampled& body) {
        async('n', body.request, "token", e.ns,
              fmt::format(R"({{"token":{},"position":{}}})", body.token, body.position));
    }
    void note(const trace::Event& e, const trace::RequestFinished& body) {
        const auto known = m_phases.find(body.request);
        if (known == m_phases.end())
            return;
        async('e', body.request, known->second, e.ns);
        async('e', body.request, "request", e.ns, fmt::format(R"({{"reason":{}}})", quoted(nameOf(body.reason))));
        m_phases.erase(known);
    }

    Output& m_out;
    bool m_first = true;
    std::int64_t m_stepNs = 0, m_kernelNs = 0, m_lastNs = 0;
    std::size_t m_batch = 0;
    std::map<RequestId, const char*> m_phases; // of unfinished requests
};

Result<void> exportTrace(SessionReader& reader, Output& out) {
    TraceWriter trace(out);
    if (auto done = forEachEvent(reader, out, [&](std::int64_t, const trace::Event& event) { trace.add(event); });
        !done)
        return done;
    trace.end();
    return out.finish();
}

} // namespace

Result<void> exportSession(SessionReader& reader, ExportKind kind, const TextSink& sink) {
    if (auto held = reader.hold(); !held)
        return held;
    Output out(sink);
    switch (kind) {
    case ExportKind::StepsCsv:
        return exportTable(
            reader, // Hashes are 16 hexadecimal digits everywhere.
            "SELECT step, start_ns, end_ns, compute_ns, wait_ns, prefill_tokens, decode_tokens, sequences, "
            "waiting_requests, active_bytes, cached_bytes, reserved_bytes, capacity_bytes, used_bytes, "
            "active_blocks, cached_blocks, reserved_blocks, free_blocks, "
            "printf('%016x', state_hash) AS state_hash FROM steps ORDER BY step",
            out);
    case ExportKind::RequestsCsv:
        return exportTable(reader, "SELECT * FROM requests ORDER BY request", out);
    case ExportKind::EventsNdjson:
        return exportNdjson(reader, out);
    case ExportKind::EventsSql:
        return exportSql(reader, out);
    case ExportKind::Trace:
        return exportTrace(reader, out);
    }
    return makeError(ErrorKind::Usage, "Unknown kind of export.");
}

} // namespace kvatlas::sessions

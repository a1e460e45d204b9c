// SPDX-License-Identifier: Apache-2.0
#include "sessions/export.h"

#include "sessions/event_json.h"
#include "tests/support/session_files.h"

#include <clocale>
#include <fmt/format.h>
#include <locale>
#include <sstream>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;
using nlohmann::json;

class Export : public ::testing::Test {
protected:
    std::string exported(ExportKind kind) {
        auto reader = SessionReader::open(m_path);
        EXPECT_TRUE(reader);
        std::string text;
        const auto done = exportSession(**reader, kind, [&](std::string_view piece) {
            text += piece;
            return true;
        });
        EXPECT_TRUE(done) << (done ? "" : done.error().message);
        return text;
    }
    TemporaryFolder m_folder;
    const std::string m_path = m_folder.file("run.kvatlas");
    const SyntheticOptions m_options{.seed = 41, .steps = 120};
};

// A reader of RFC 4180, written for this test.
std::vector<std::vector<std::string>> parseCsv(const std::string& text) {
    std::vector<std::vector<std::string>> rows(1);
    rows.back().emplace_back();
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string& field = rows.back().back();
        if (quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
            field += '"';
            ++i;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted && text[i] == ',') {
            rows.back().emplace_back();
        } else if (!quoted && text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
            ++i;
            rows.emplace_back().emplace_back();
        } else {
            field += text[i];
        }
    }
    EXPECT_EQ(rows.back(), std::vector<std::string>{""}); // the last line has its line end
    rows.pop_back();
    return rows;
}

TEST_F(Export, writesOneCsvRowPerStep) {
    record(m_path, m_options);
    const auto rows = parseCsv(exported(ExportKind::StepsCsv));
    ASSERT_EQ(rows.size(), 121u);
    EXPECT_EQ(rows[0][0], "step");
    EXPECT_EQ(rows[1][0], "0");
    EXPECT_EQ(rows[120][0], "119");
    for (const auto& row : rows)
        EXPECT_EQ(row.size(), rows[0].size());
    EXPECT_EQ(rows[0].back(), "state_hash");
    for (const auto& [step, hash] : hashesOf(SyntheticRun::all(m_options)))
        EXPECT_EQ(rows[step + 1].back(), fmt::format("{:016x}", hash));
}

TEST_F(Export, quotesTitlesThatCsvCannotHold) {
    auto recorder = SessionRecorder::create(m_path);
    ASSERT_TRUE(recorder);
    auto events = SyntheticRun::all({.steps = 1});
    const std::string title = "one, \"two\"\r\nthree \xE2\x82\xAC";
    events.push_back({1, 9, trace::RequestArrived{RequestId(900), {1, 2}, 5, title}});
    (*recorder)->onEvents(events);
    ASSERT_TRUE((*recorder)->stop());
    const auto rows = parseCsv(exported(ExportKind::RequestsCsv));
    EXPECT_EQ(rows.back()[0], "900");
    EXPECT_EQ(rows.back()[1], title);
}

TEST_F(Export, writesEveryEventAsOneLineOfJson) {
    record(m_path, m_options);
    const auto events = SyntheticRun::all(m_options);
    std::istringstream lines(exported(ExportKind::EventsNdjson));
    std::string line;
    std::size_t n = 0;
    for (; std::getline(lines, line); ++n) {
        ASSERT_LT(n, events.size());
        const auto parsed = json::parse(line);
        EXPECT_EQ(parsed["step"], events[n].step);
        EXPECT_EQ(parsed["ns"], events[n].ns);
        EXPECT_EQ(parsed["kind"], trace::nameOf(events[n].kind()));
        EXPECT_EQ(parsed, json(toJson(events[n])));
    }
    EXPECT_EQ(n, events.size());
}

TEST_F(Export, expandsTheChunksForSql) {
    record(m_path, m_options);
    sql(m_folder.file("events.db"), exported(ExportKind::EventsSql));
    std::map<std::string, int> expected;
    for (const trace::Event& event : SyntheticRun::all(m_options))
        ++expected[std::string(trace::nameOf(event.kind()))];
    for (const auto& [kind, count] : expected)
        EXPECT_EQ(sql(m_folder.file("events.db"), "SELECT count(*) FROM events WHERE kind = '" + kind + "'")[0],
                  std::to_string(count));
    EXPECT_EQ(sql(m_folder.file("events.db"), "SELECT json_extract(fields, '$.request') FROM events WHERE kind = "
                                              "'request arrived' ORDER BY event LIMIT 1")[0],
              "1");
}

TEST_F(Export, writesATraceWhoseSpansOpenAndClose) {
    record(m_path, m_options);
    const auto trace = json::parse(exported(ExportKind::Trace));
    std::map<std::string, int> open; // per request and name
    int steps = 0, spans = 0;
    for (const json& entry : trace["traceEvents"]) {
        const std::string phase = entry["ph"];
        if (phase == "b" || phase == "e") {
            int& depth = open[entry["id"].get<std::string>() + entry["name"].get<std::string>()];
            depth += phase == "b" ? 1 : -1;
            EXPECT_GE(depth, 0);
            EXPECT_LE(depth, 1);
            spans += phase == "b";
        }
        if (phase == "X" && entry["tid"] == 1) {
            EXPECT_GE(entry["ts"].get<double>(), steps * 5000.0); // microseconds: a step every 5 ms
            EXPECT_LT(entry["ts"].get<double>(), steps * 5000.0 + 5000);
            ++steps;
        }
    }
    EXPECT_EQ(steps, 120);
    EXPECT_GT(spans, 20);
    for (const auto& [name, depth] : open)
        EXPECT_EQ(depth, 0) << name;
}

struct Decimal : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

TEST_F(Export, isTheSameInEveryLocale) {
    record(m_path, m_options);
    const ExportKind kinds[] = {ExportKind::StepsCsv, ExportKind::RequestsCsv, ExportKind::EventsNdjson,
                                ExportKind::EventsSql, ExportKind::Trace};
    std::vector<std::string> plain;
    for (const ExportKind kind : kinds)
        plain.push_back(exported(kind));
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Decimal));
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "tr_TR.UTF-8"}) // where the machine has them
        std::setlocale(LC_ALL, name);
    for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_EQ(exported(kinds[i]), plain[i]);
    std::locale::global(before);
    std::setlocale(LC_ALL, "C");
}

TEST_F(Export, endsWhenNobodyReads) {
    record(m_path, m_options);
    auto reader = SessionReader::open(m_path);
    ASSERT_TRUE(reader);
    int pieces = 0;
    EXPECT_FALSE(exportSession(**reader, ExportKind::EventsNdjson, [&](std::string_view) { return ++pieces < 2; }));
    EXPECT_EQ(pieces, 2);
}

} // namespace
} // namespace kvatlas::sessions

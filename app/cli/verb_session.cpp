// SPDX-License-Identifier: Apache-2.0
#include "app/cli/checks.h"
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "core/base/counted.h"
#include "sessions/check.h"
#include "sessions/export.h"
#include "sessions/reader.h"
#include "sessions/salvage.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace kvatlas::app {

namespace {

struct SessionOptions {
    std::string file, to;
    bool json = false;
    bool csvSteps = false, csvRequests = false, ndjson = false, sql = false, trace = false;
};

Json textsJson(const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const auto& text : texts)
        list.push_back(text);
    return list;
}

std::string yesNo(bool yes) {
    return yes ? "yes" : "no";
}

int showInfo(const SessionOptions& options) {
    const auto reader = sessions::SessionReader::open(options.file);
    if (!reader)
        return fail(reader.error());
    const auto& info = (*reader)->info();
    const auto& damaged = (*reader)->damaged();
    if (options.json) {
        Json meta = Json::object();
        for (const auto& [key, value] : info.meta)
            meta[key] = value;
        writeJson({{"ok", damaged.empty()},
                   {"schema", info.schema},
                   {"events", info.events},
                   {"steps", info.steps},
                   {"keyframes", info.keyframes},
                   {"ended_cleanly", info.endedCleanly},
                   {"damaged", textsJson(damaged)},
                   {"bytes", info.bytes},
                   {"meta", meta}});
        return damaged.empty() ? kExitOk : kExitRefused;
    }
    std::vector<std::pair<std::string, std::string>> rows{{"file", info.path},
                                                          {"size", bytesText(static_cast<double>(info.bytes))},
                                                          {"schema", fmt::format("{}", info.schema)},
                                                          {"steps", fmt::format("{}", info.steps)},
                                                          {"events", fmt::format("{}", info.events)},
                                                          {"keyframes", fmt::format("{}", info.keyframes)},
                                                          {"ended cleanly", yesNo(info.endedCleanly)}};
    constexpr std::size_t kMaxShown = 100;
    for (const auto& [key, value] : info.meta)
        rows.emplace_back(shortened(key, kMaxShown), shortened(value, kMaxShown));
    writeData(listText(rows));
    for (const auto& sentence : damaged)
        say(sentence);
    if (!info.hint.empty())
        say(info.hint);
    return damaged.empty() ? kExitOk : kExitRefused;
}

int check(const SessionOptions& options) {
    const auto result = sessions::checkSession(options.file);
    if (!result)
        return fail(result.error());
    if (options.json)
        writeJson({{"ok", result->ok},
                   {"schema", result->schema},
                   {"events", result->events},
                   {"steps", result->steps},
                   {"keyframes", result->keyframes},
                   {"ended_cleanly", result->endedCleanly},
                   {"damaged", textsJson(result->damaged)}});
    else
        writeData(listText({{"sound", yesNo(result->ok)},
                            {"schema", fmt::format("{}", result->schema)},
                            {"steps", fmt::format("{}", result->steps)},
                            {"events", fmt::format("{}", result->events)},
                            {"keyframes", fmt::format("{}", result->keyframes)},
                            {"ended cleanly", yesNo(result->endedCleanly)}}));
    for (const auto& sentence : result->damaged)
        say(sentence);
    if (!result->hint.empty())
        say(result->hint);
    return result->ok ? kExitOk : kExitRefused;
}

int salvage(const SessionOptions& options) {
    const auto result = sessions::salvageSession(options.file, options.to);
    if (!result)
        return fail(result.error());
    if (options.json)
        writeJson({{"events", result->events},
                   {"steps", result->steps},
                   {"lost_events", result->lostEvents},
                   {"damaged", textsJson(result->damaged)},
                   {"file", options.to}});
    else
        writeData(fmt::format("{} of {} written to {}; known to be lost: {}.\n", counted(result->events, "event"),
                              counted(result->steps, "step"), options.to, counted(result->lostEvents, "event")));
    for (const auto& sentence : result->damaged)
        say(sentence);
    return kExitOk;
}

// Writes to stdout, or to a new file, which stays only when flush() has found it whole.
class ExportTarget {
public:
    explicit ExportTarget(std::string file)
        : m_path(std::move(file))
        , m_file(m_path.empty() ? stdout : std::fopen(m_path.c_str(), "wbx")) {}
    ~ExportTarget() {
        if (m_file == nullptr || m_file == stdout)
            return;
        std::fclose(m_file);
        if (!m_whole)
            std::remove(m_path.c_str());
    }
    ExportTarget(const ExportTarget&) = delete;
    ExportTarget& operator=(const ExportTarget&) = delete;

    bool isOpen() const { return m_file != nullptr; }
    bool hasFailed() const { return m_error != 0; }
    bool write(std::string_view text) {
        if (m_file != stdout)
            return noted(std::fwrite(text.data(), 1, text.size(), m_file) == text.size());
        writeData(text);
        return !dataIsLost();
    }
    bool flush() {
        if (m_file != stdout)
            return m_whole = noted(std::fflush(m_file) == 0);
        flushData();
        return !dataIsLost();
    }

    // The sentence about what could not be written.
    Error failure() const {
        return {ErrorKind::Failed, fmt::format("{} could not be written whole and is not kept: {}.", m_path,
                                               std::generic_category().message(m_error))};
    }

private:
    bool noted(bool done) {
        if (!done && m_error == 0)
            m_error = errno;
        return done;
    }
    std::string m_path;
    std::FILE* m_file;
    bool m_whole = false;
    int m_error = 0;
};

Result<sessions::ExportKind> exportKind(const SessionOptions& options) {
    const std::array<std::pair<bool, sessions::ExportKind>, 5> kinds{
        {{options.csvSteps, sessions::ExportKind::StepsCsv},
         {options.csvRequests, sessions::ExportKind::RequestsCsv},
         {options.ndjson || options.json, sessions::ExportKind::EventsNdjson},
         {options.sql, sessions::ExportKind::EventsSql},
         {options.trace, sessions::ExportKind::Trace}}};
    std::optional<sessions::ExportKind> chosen;
    for (const auto& [wanted, kind] : kinds) {
        if (wanted && chosen)
            return makeError(ErrorKind::Usage, "export writes one kind at a time: choose one of the flags.");
        if (wanted)
            chosen = kind;
    }
    if (!chosen)
        return makeError(ErrorKind::Usage, "Say what to export: --steps, --requests, --ndjson, --sql or --trace.");
    return *chosen;
}

int exportTo(const SessionOptions& options) {
    const auto kind = exportKind(options);
    if (!kind)
        return fail(kind.error());
    const auto reader = sessions::SessionReader::open(options.file);
    if (!reader)
        return fail(reader.error());
    ExportTarget target(options.to);
    if (!target.isOpen() && errno == EEXIST)
        return fail({ErrorKind::Refused,
                     fmt::format("{} exists already and is not overwritten; choose another name.", options.to)});
    if (!target.isOpen())
        return fail({ErrorKind::Failed,
                     fmt::format("{} cannot be written: {}.", options.to, std::generic_category().message(errno))});
    const auto done =
        sessions::exportSession(**reader, *kind, [&](std::string_view text) { return target.write(text); });
    if (dataIsLost())
        return kExitFailed;
    if (!done)
        return fail(target.hasFailed() ? target.failure() : done.error());
    if (!target.flush() && !dataIsLost())
        return fail(target.failure());
    for (const auto& sentence : (*reader)->damaged())
        say(sentence);
    return (*reader)->damaged().empty() ? kExitOk : kExitRefused;
}

CLI::App* subverb(CLI::App& verb, const char* name, const char* help, SessionOptions& options, const char* jsonHelp) {
    auto* added = verb.add_subcommand(name, help);
    added->add_option("file", options.file, "a session file (.kvatlas)")->required()->check(notEmpty());
    added->add_flag("--json", options.json, jsonHelp);
    added->footer(fmt::format("Example: kvatlas-cli session {} run.kvatlas", name));
    return added;
}

} // namespace

void addSession(CLI::App& app, int& status) {
    constexpr const char* kJson = "one JSON object on stdout";
    auto options = std::make_shared<SessionOptions>();
    auto* verb = app.add_subcommand("session", "Recorded sessions: look, check, rescue, hand on");
    verb->require_subcommand(1);
    verb->footer("Example: kvatlas-cli session check --json run.kvatlas");
    subverb(*verb, "info", "What a session file holds, without reading it all", *options, kJson)
        ->callback([options, &status] { status = showInfo(*options); });
    subverb(*verb, "check", "Read all of it and compare everything; status 3 when something is damaged", *options,
            kJson)
        ->callback([options, &status] { status = check(*options); });
    auto* rescue = subverb(*verb, "salvage", "Write what can be read into a new session", *options, kJson);
    rescue->add_option("to", options->to, "the new session file, which must not exist")->required()->check(notEmpty());
    rescue->footer("Example: kvatlas-cli session salvage damaged.kvatlas rescued.kvatlas");
    rescue->callback([options, &status] { status = salvage(*options); });
    auto* hand = subverb(*verb, "export", "Write it in a format that other programs read", *options, "as --ndjson");
    hand->add_flag("--steps", options->csvSteps, "CSV, a row per step");
    hand->add_flag("--requests", options->csvRequests, "CSV, a row per request");
    hand->add_flag("--ndjson", options->ndjson, "every event, a JSON object per line");
    hand->add_flag("--sql", options->sql, "every event as SQL for the sqlite3 shell");
    hand->add_flag("--trace", options->trace, "Chrome and Perfetto JSON");
    hand->add_option("--out", options->to, "a new file; without it stdout")->check(notEmpty());
    hand->footer("Example: kvatlas-cli session export --steps run.kvatlas > steps.csv");
    hand->callback([options, &status] { status = exportTo(*options); });
}

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
#include "sessions/reader.h"

#include "core/state/run_history.h"
#include "sessions/schema.h"
#include "tests/support/session_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

class Reader : public ::testing::Test {
protected:
    void SetUp() override { record(m_path, m_options); }

    std::unique_ptr<SessionReader> open() {
        auto reader = SessionReader::open(m_path);
        EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
        return reader ? std::move(*reader) : nullptr;
    }
    std::string refusal() {
        const auto reader = SessionReader::open(m_path);
        EXPECT_FALSE(reader);
        return reader ? std::string() : reader.error().message;
    }

    TemporaryFolder m_folder;
    const std::string m_path = m_folder.file("run.kvatlas");
    const SyntheticOptions m_options{.seed = 2, .steps = 600};
};

TEST_F(Reader, givesTheStateAtEveryStepAsTheGeneratorKnewIt) {
    const auto hashes = hashesOf(SyntheticRun::all(m_options));
    const auto reader = open();
    for (Step step = 0; step < 600; step += step % 2 ? 12 : 1) {
        auto answer = reader->stateAt(step);
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->step, step);
        auto state = answer->keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                              : state::CacheState::decode(answer->keyframe);
        ASSERT_TRUE(state);
        for (const trace::Event& event : answer->events) {
            EXPECT_EQ(trace::classOf(event.kind()), trace::EventClass::State);
            ASSERT_TRUE(state->apply(event));
        }
        EXPECT_EQ(state->stateHash(), hashes.at(step));
        EXPECT_EQ(state->step(), step);
        EXPECT_TRUE(state->stepEnded());
    }
    EXPECT_EQ(reader->stateAt(100'000)->step, 599u);
}

TEST_F(Reader, givesOneRowPerStepWhenThereIsRoom) {
    state::CacheState state;
    state::RunHistory history;
    std::vector<trace::StepRow> expected;
    for (const trace::Event& event : SyntheticRun::all(m_options)) {
        ASSERT_TRUE(state.apply(event));
        if (auto row = history.apply(event, state))
            expected.push_back(*row);
    }
    const auto reader = open();
    const auto answer = reader->history(0, 0xFFFF'FFFF, 4096);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->steps, expected);
    EXPECT_EQ(answer->lastStep, 599u);
    ASSERT_EQ(answer->requests.size(), history.requests().size());
    for (const trace::RequestRow& row : answer->requests)
        EXPECT_EQ(row, history.requests().at(row.request));
    const auto part = reader->history(100, 199, 4096);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->steps, std::vector(expected.begin() + 100, expected.begin() + 200));
    for (const trace::RequestRow& row : part->requests) {
        EXPECT_LE(row.arrivedStep, 199u);
        EXPECT_GE(row.finishedStep.value_or(0xFFFF'FFFF), 100u);
    }
}

// Against the folded state after each step, in which a request is preempted or is not.
TEST_F(Reader, tellsWhenARequestWasPreempted) {
    const auto steps = SyntheticRun::all({.seed = 9, .steps = 400, .poolBlocks = 24});
    const std::string path = m_folder.file("crowded.kvatlas");
    auto recorder = SessionRecorder::create(path);
    ASSERT_TRUE(recorder);
    std::unique_ptr<SessionReader> follower; // asks while the file grows
    std::size_t asked = 0;
    for (std::size_t from = 0; from < steps.size(); from += 200) {
        (*recorder)->onEvents(std::span(steps).subspan(from, std::min<std::size_t>(200, steps.size() - from)));
        ASSERT_TRUE((*recorder)->flush());
        if (!follower) {
            auto opened = SessionReader::open(path);
            ASSERT_TRUE(opened);
            follower = std::move(*opened);
        }
        asked += follower->history(0, 399, 100)->gaps.size();
    }
    EXPECT_GT(asked, 0u);
    const auto followed = follower->history(0, 399, 100);
    follower.reset();
    ASSERT_TRUE((*recorder)->stop());
    const auto reader = SessionReader::open(path);
    ASSERT_TRUE(reader);
    const auto answer = (*reader)->history(0, 399, 100);
    ASSERT_TRUE(answer && followed);
    EXPECT_EQ(answer->gaps, followed->gaps);

    state::CacheState state;
    std::size_t preempted = 0;
    for (const trace::Event& event : steps) {
        ASSERT_TRUE(state.apply(event));
        if (!std::holds_alternative<trace::StepEnded>(event.body))
            continue;
        std::vector<RequestId> expected, found;
        const auto snapshot = state.snapshot();
        for (const state::RequestState& request : snapshot->requests)
            if (request.status == trace::RequestStatus::Preempted)
                expected.push_back(request.request);
        for (const trace::PreemptionGap& gap : answer->gaps)
            if (gap.preempted <= event.step && event.step < gap.resumed.value_or(400))
                found.push_back(gap.request);
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found, expected) << "step " << event.step;
        preempted += expected.size();
    }
    EXPECT_GT(preempted, 10u);
    EXPECT_TRUE((*reader)->history(0, 0, 100)->gaps.empty());
    std::size_t caughtUp = 0;
    for (const trace::PreemptionGap& gap : answer->gaps) { // by looking at every event from there on
        std::optional<Step> expected;
        for (const trace::Event& event : steps) {
            if (event.step < gap.preempted || expected)
                continue;
            if (const auto* sampled = std::get_if<trace::TokenSampled>(&event.body);
                sampled && sampled->request == gap.request && gap.resumed && event.step >= *gap.resumed)
                expected = event.step;
            if (const auto* finished = std::get_if<trace::RequestFinished>(&event.body);
                finished && finished->request == gap.request)
                expected = event.step;
            if (const auto* again = std::get_if<trace::RequestPreempted>(&event.body);
                again && again->request == gap.request && event.step > gap.preempted)
                expected = event.step;
        }
        EXPECT_EQ(gap.caughtUp, expected) << "request " << gap.request.value << " at step " << gap.preempted;
        caughtUp += expected.has_value();
    }
    EXPECT_GT(caughtUp, 5u);
}

TEST_F(Reader, mergesRowsAsMaximaAndSums) {
    const auto reader = open();
    const auto all = reader->history(0, 599, 4096);
    const auto merged = reader->history(0, 599, 7);
    ASSERT_TRUE(all && merged);
    ASSERT_LE(merged->steps.size(), 7u);
    ASSERT_GE(merged->steps.size(), 6u);
    std::size_t next = 0;
    for (const trace::StepRow& row : merged->steps) {
        trace::StepRow expected = all->steps[next];
        for (++next; next < all->steps.size() && all->steps[next].step <= row.step; ++next) {
            const trace::StepRow& other = all->steps[next];
            expected.step = other.step;
            expected.endNs = other.endNs;
            expected.stateHash = other.stateHash;
            expected.computeNs += other.computeNs;
            expected.waitNs += other.waitNs;
            expected.prefillTokens += other.prefillTokens;
            expected.decodeTokens += other.decodeTokens;
            expected.sequences = std::max(expected.sequences, other.sequences);
            expected.waitingRequests = std::max(expected.waitingRequests, other.waitingRequests);
            expected.activeBytes = std::max(expected.activeBytes, other.activeBytes);
            expected.usedBytes = std::max(expected.usedBytes, other.usedBytes);
            expected.capacityBytes = std::max(expected.capacityBytes, other.capacityBytes);
            expected.activeBlocks = std::max(expected.activeBlocks, other.activeBlocks);
            expected.freeBlocks = std::max(expected.freeBlocks, other.freeBlocks);
        }
        EXPECT_EQ(row, expected);
    }
    EXPECT_EQ(next, 600u);
}

TEST_F(Reader, givesTheTokensOfARequestAndTheirText) {
    std::map<std::uint64_t, source::RequestTextAnswer> expected;
    for (const trace::Event& event : SyntheticRun::all(m_options)) {
        if (const auto* e = std::get_if<trace::RequestArrived>(&event.body))
            expected[e->request.value].promptTokens = e->promptTokens;
        if (const auto* e = std::get_if<trace::TokenSampled>(&event.body)) {
            expected[e->request.value].outputTokens.push_back(e->token);
            expected[e->request.value].outputSteps.push_back(event.step);
        }
    }
    const auto reader = open();
    ASSERT_GT(expected.size(), 20u);
    for (const auto& [request, text] : expected) {
        const auto answer = reader->requestText(RequestId(request));
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->promptTokens, text.promptTokens);
        EXPECT_EQ(answer->outputTokens, text.outputTokens);
        EXPECT_EQ(answer->outputSteps, text.outputSteps);
    }
    const auto pieces = reader->pieces();
    ASSERT_TRUE(pieces);
    for (const auto& [token, bytes] : *pieces) {
        EXPECT_EQ(bytes, SyntheticRun::piece(token));
        EXPECT_EQ(*reader->piece(token), bytes);
    }
    EXPECT_EQ(*reader->piece(999'999), "");
    EXPECT_TRUE(reader->requestText(RequestId(999'999))->outputTokens.empty());
}

TEST_F(Reader, givesTheEventsOfARangeOfSteps) {
    std::vector<trace::Event> expected, found;
    for (const trace::Event& event : SyntheticRun::all(m_options))
        if (event.step >= 120 && event.step < 340)
            expected.push_back(event);
    const auto reader = open();
    ASSERT_TRUE(reader->forEachEvent(120, 340, [&](const trace::Event& event) {
        found.push_back(event);
        return true;
    }));
    EXPECT_EQ(found, expected);
    int seen = 0;
    ASSERT_TRUE(reader->forEachEvent(0, 600, [&](const trace::Event&) { return ++seen < 5; }));
    EXPECT_EQ(seen, 5);
}

TEST_F(Reader, endsAQueryWhenItIsCancelled) {
    const auto reader = open();
    reader->cancel();
    EXPECT_FALSE(reader->history(0, 599, 10));
}

// ---- files that are no session, or were made to do harm

TEST_F(Reader, refusesWhatIsNoSession) {
    EXPECT_FALSE(SessionReader::open(m_folder.file("missing.kvatlas")));
    EXPECT_FALSE(SessionReader::open(m_folder.path()));
    EXPECT_FALSE(SessionReader::open("/dev/null"));
    EXPECT_FALSE(SessionReader::open(""));
    ASSERT_EQ(::mkfifo(m_folder.file("fifo").c_str(), 0600), 0);
    const auto fifo = SessionReader::open(m_folder.file("fifo"));
    ASSERT_FALSE(fifo);
    EXPECT_NE(fifo.error().message.find("pipe"), std::string::npos);
    for (const std::string& bytes : {std::string(), std::string("SQLite format 3"), std::string(4096, 'x')}) {
        writeBytes(m_folder.file("other"), bytes);
        EXPECT_FALSE(SessionReader::open(m_folder.file("other")));
    }
    sql(m_folder.file("foreign.db"), "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    const auto foreign = SessionReader::open(m_folder.file("foreign.db"));
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().message.find("another program"), std::string::npos) << foreign.error().message;
}

TEST_F(Reader, refusesANewerVersionWithBothNumbers) {
    sql(m_path, "PRAGMA user_version = 2");
    const std::string sentence = refusal();
    EXPECT_NE(sentence.find("format 2"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("up to 1"), std::string::npos) << sentence;
    sql(m_path, "PRAGMA user_version = 0");
    EXPECT_NE(refusal().find("format 0"), std::string::npos);
}

TEST_F(Reader, refusesANegativeVersionAsOneThatNobodyWrote) {
    sql(m_path, "PRAGMA user_version = -1");
    const auto refused = SessionReader::open(m_path);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("format -1"), std::string::npos) << refused.error().message;
}

TEST_F(Reader, refusesTablesAndTriggersThatAreNotOurs) {
    const std::string good = bytesOf(m_path);
    sql(m_path, "CREATE TRIGGER evil AFTER INSERT ON steps BEGIN DELETE FROM chunks; END");
    EXPECT_NE(refusal().find("evil"), std::string::npos);
    writeBytes(m_path, good);
    sql(m_path, "CREATE TABLE more(a)");
    EXPECT_NE(refusal().find("more"), std::string::npos);
    writeBytes(m_path, good);
    sql(m_path, "DROP VIEW request_latency; ALTER TABLE steps RENAME TO hidden; "
                "CREATE VIEW steps AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r");
    EXPECT_NE(refusal().find("hidden"), std::string::npos);
    writeBytes(m_path, good);
    sql(m_path, "DROP TABLE metrics");
    EXPECT_NE(refusal().find("metrics"), std::string::npos);
}

TEST_F(Reader, neverRunsAViewOfTheFile) {
    sql(m_path,
        "CREATE VIEW endless AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r");
    EXPECT_EQ(open()->info().steps, 600u);
}

TEST_F(Reader, refusesSideFilesThatAreLinksOrDevices) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
        ASSERT_EQ(::symlink("/etc/passwd", (m_path + suffix).c_str()), 0);
        EXPECT_NE(refusal().find(suffix), std::string::npos);
        ::unlink((m_path + suffix).c_str());
        ASSERT_EQ(::mkfifo((m_path + suffix).c_str(), 0600), 0);
        EXPECT_NE(refusal().find(suffix), std::string::npos);
        ::unlink((m_path + suffix).c_str());
    }
    writeBytes(m_path + "-journal", std::string(512, '\xD9'));
    EXPECT_NE(refusal().find("-journal"), std::string::npos);
}

TEST_F(Reader, doesNotMixAForeignWalIntoAFinishedSession) {
    const std::string good = bytesOf(m_path);
    // Another session's WAL, with valid checksums, renamed.
    auto recorder = SessionRecorder::create(m_folder.file("other.kvatlas"));
    ASSERT_TRUE(recorder);
    (*recorder)->onEvents(SyntheticRun::all({.seed = 99, .steps = 50}));
    ASSERT_TRUE((*recorder)->flush());
    std::filesystem::copy_file(m_folder.file("other.kvatlas-wal"), m_path + "-wal");
    const auto reader = open();
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->info().steps, 600u);
    ASSERT_EQ(reader->damaged().size(), 1u);
    EXPECT_NE(reader->damaged()[0].find("-wal"), std::string::npos);
    EXPECT_EQ(bytesOf(m_path), good);
}

TEST_F(Reader, changesNothingOnTheDisk) {
    const std::string before = bytesOf(m_path);
    {
        const auto reader = open();
        EXPECT_TRUE(reader->stateAt(300));
    }
    EXPECT_EQ(bytesOf(m_path), before);
    EXPECT_FALSE(std::filesystem::exists(m_path + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(m_path + "-shm"));
}

TEST_F(Reader, followsALinkToTheFileButNotItsSideFiles) {
    ASSERT_EQ(::symlink(m_path.c_str(), m_folder.file("link.kvatlas").c_str()), 0);
    const auto reader = SessionReader::open(m_folder.file("link.kvatlas"));
    ASSERT_TRUE(reader);
    EXPECT_EQ((*reader)->info().steps, 600u);
}

// ---- a folder that may not be written, seen by a user who is not root

constexpr uid_t kNobody = 65534;

// Runs `work` as a user without rights (root may write everywhere); its result is the exit status.
template <class Work> int asNobody(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
            ::_exit(99);
        ::_exit(work());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_F(Reader, opensAFinishedSessionInAReadOnlyFolder) {
    ::chmod(m_path.c_str(), 0444);
    ::chmod(m_folder.path().c_str(), 0555);
    EXPECT_EQ(asNobody([&] {
                  const auto reader = SessionReader::open(m_path);
                  return reader && (*reader)->info().steps == 600 && (*reader)->stateAt(300) ? 0 : 1;
              }),
              0);
    ::chmod(m_folder.path().c_str(), 0755);
}

TEST_F(Reader, readsAHotWalInAReadOnlyFolder) {
    const std::string path = m_folder.file("hot.kvatlas");
    auto recorder = SessionRecorder::create(path);
    ASSERT_TRUE(recorder);
    (*recorder)->onEvents(SyntheticRun::all({.seed = 4, .steps = 80}));
    ASSERT_TRUE((*recorder)->flush());
    const std::string course = m_folder.file("course");
    std::filesystem::create_directory(course);
    std::filesystem::copy_file(path, course + "/hot.kvatlas");
    std::filesystem::copy_file(path + "-wal", course + "/hot.kvatlas-wal");
    ASSERT_TRUE((*recorder)->stop()); // no thread of ours when asNobody forks
    ::chmod((course + "/hot.kvatlas").c_str(), 0444);
    ::chmod((course + "/hot.kvatlas-wal").c_str(), 0444);
    ::chmod(course.c_str(), 0555);
    EXPECT_EQ(asNobody([&] {
                  const auto reader = SessionReader::open(course + "/hot.kvatlas");
                  if (!reader)
                      std::fprintf(stderr, "%s\n", reader.error().message.c_str());
                  return reader && (*reader)->info().steps == 80 && (*reader)->stateAt(79) ? 0 : 1;
              }),
              0);
    ::chmod(course.c_str(), 0755);
    std::filesystem::remove(course + "/hot.kvatlas-wal");
    ::chmod(course.c_str(), 0555);
    EXPECT_EQ(asNobody([&] { // only the main file was copied: opens, and is not called complete
                  const auto reader = SessionReader::open(course + "/hot.kvatlas");
                  return reader && !(*reader)->info().endedCleanly ? 0 : 1;
              }),
              0);
    ::chmod(course.c_str(), 0755);
}

TEST_F(Reader, refusesAFileThatMayNotBeRead) {
    ::chmod(m_path.c_str(), 0000);
    EXPECT_EQ(asNobody([&] {
                  const auto reader = SessionReader::open(m_path);
                  return !reader && reader.error().message.find("permission") != std::string::npos ? 0 : 1;
              }),
              0);
}

TEST_F(Reader, recordingIntoAReadOnlyFolderIsRefusedWithASentence) {
    ::chmod(m_folder.path().c_str(), 0555);
    EXPECT_EQ(asNobody([&] {
                  const auto recorder = SessionRecorder::create(m_folder.file("new.kvatlas"));
                  return !recorder && recorder.error().message.find("read-only") != std::string::npos ? 0 : 1;
              }),
              0);
    ::chmod(m_folder.path().c_str(), 0755);
}

} // namespace
} // namespace kvatlas::sessions

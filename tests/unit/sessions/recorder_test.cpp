// SPDX-License-Identifier: Apache-2.0
#include "sessions/recorder.h"

#include "sessions/reader.h"
#include "sessions/schema.h"
#include "tests/support/session_files.h"

#include <atomic>
#include <thread>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

std::unique_ptr<SessionReader> openReader(const std::string& path) {
    auto reader = SessionReader::open(path);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return reader ? std::move(*reader) : nullptr;
}

std::vector<trace::Event> allEvents(SessionReader& reader) {
    std::vector<trace::Event> events;
    for (std::size_t i = 0; i < reader.chunks().size(); ++i) {
        auto chunk = reader.chunkEvents(i);
        EXPECT_TRUE(chunk) << (chunk ? "" : chunk.error().message);
        if (chunk)
            events.insert(events.end(), (*chunk)->begin(), (*chunk)->end());
    }
    return events;
}

TEST(Recorder, readsBackExactlyWhatWasRecorded) {
    TemporaryFolder folder;
    const SyntheticOptions options{.seed = 7, .steps = 700};
    record(folder.file("run.kvatlas"), options);
    const auto expected = SyntheticRun::all(options);
    const auto reader = openReader(folder.file("run.kvatlas"));
    ASSERT_TRUE(reader);
    EXPECT_EQ(allEvents(*reader), expected);
    EXPECT_EQ(reader->info().events, expected.size());
    EXPECT_EQ(reader->info().steps, 700u);
    EXPECT_EQ(reader->info().lastStep, Step{699});
    EXPECT_TRUE(reader->info().endedCleanly);
    EXPECT_EQ(reader->info().endReason, "run ended");
    EXPECT_GE(reader->info().keyframes, 2u);
    EXPECT_TRUE(reader->damaged().empty());
}

TEST(Recorder, leavesOneFileThatIsNotInWalMode) {
    TemporaryFolder folder;
    record(folder.file("run.kvatlas"), {.steps = 50});
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        EXPECT_EQ(entry.path().filename(), "run.kvatlas");
        ++files;
    }
    EXPECT_EQ(files, 1u);
    const std::string bytes = bytesOf(folder.file("run.kvatlas"));
    EXPECT_EQ(bytes.substr(68, 4), "KVAT");
    EXPECT_EQ(bytes[63], 1); // user_version
    EXPECT_EQ(bytes[18], 1); // no WAL
}

TEST(Recorder, writesRowsThatAnsweredBySqlAgreeWithTheEvents) {
    TemporaryFolder folder;
    const SyntheticOptions options{.seed = 3, .steps = 300};
    const std::string path = folder.file("run.kvatlas");
    record(path, options);
    std::map<std::uint64_t, std::string> outputs;
    std::uint64_t arrived = 0, sampled = 0, prompt = 0, spans = 0, computeNs = 0;
    for (const trace::Event& event : SyntheticRun::all(options)) {
        if (const auto* e = std::get_if<trace::RequestArrived>(&event.body)) {
            ++arrived;
            prompt += e->promptTokens.size();
        }
        if (const auto* e = std::get_if<trace::TokenSampled>(&event.body)) {
            ++sampled;
            outputs[e->request.value] += SyntheticRun::piece(e->token);
        }
        if (const auto* e = std::get_if<trace::KernelSpan>(&event.body))
            spans += e->calls;
        if (const auto* e = std::get_if<trace::StepEnded>(&event.body))
            computeNs += static_cast<std::uint64_t>(e->computeNs);
    }
    EXPECT_EQ(sql(path, "SELECT count(*) FROM requests")[0], std::to_string(arrived));
    EXPECT_EQ(sql(path, "SELECT count(*) FROM tokens WHERE step IS NULL")[0], std::to_string(prompt));
    EXPECT_EQ(sql(path, "SELECT count(*) FROM tokens WHERE step IS NOT NULL")[0], std::to_string(sampled));
    EXPECT_EQ(sql(path, "SELECT count(*), sum(compute_ns) FROM steps")[0], "300|" + std::to_string(computeNs));
    EXPECT_EQ(sql(path, "SELECT sum(calls) FROM kernels")[0], std::to_string(spans));
    EXPECT_EQ(sql(path,
                  "SELECT count(*) FROM steps WHERE active_blocks + cached_blocks + reserved_blocks + free_blocks "
                  "<> 256")[0],
              "0");
    for (const auto& [request, text] : outputs)
        EXPECT_EQ(sql(path, "SELECT output FROM request_text WHERE request = " + std::to_string(request))[0], text);
    for (const char* view : {"request_latency", "memory_over_time", "run_summary", "kernel_totals"})
        EXPECT_FALSE(sql(path, std::string("SELECT * FROM ") + view).empty()) << view;
    EXPECT_EQ(sql(path, "SELECT value FROM meta WHERE key = 'model_name'")[0], "synthetic");
}

TEST(Recorder, letsAReaderInWhileItRecords) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    auto recorder = SessionRecorder::create(path, {.piece = SyntheticRun::piece});
    ASSERT_TRUE(recorder) << recorder.error().message;
    SyntheticRun run({.seed = 5, .steps = 900});
    std::vector<trace::Event> expected;
    std::unique_ptr<SessionReader> reader;
    while (!run.done()) {
        const auto events = run.nextStep();
        expected.insert(expected.end(), events.begin(), events.end());
        (*recorder)->onEvents(events);
        if (expected.back().step % 150 != 149)
            continue;
        ASSERT_TRUE((*recorder)->flush());
        if (!reader)
            reader = openReader(path);
        ASSERT_TRUE(reader);
        ASSERT_TRUE(reader->refresh());
        EXPECT_EQ(reader->info().events, expected.size());
        EXPECT_FALSE(reader->info().endedCleanly);
        EXPECT_EQ(allEvents(*reader), expected);
    }
    reader.reset();
    EXPECT_TRUE((*recorder)->stop());
    EXPECT_TRUE(openReader(path)->info().endedCleanly);
    EXPECT_EQ(openReader(path)->info().endReason, "recording stopped");
}

TEST(Recorder, notesAReaderThatKeepsTheFileOpenAtTheEnd) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    auto recorder = SessionRecorder::create(path);
    ASSERT_TRUE(recorder);
    (*recorder)->onEvents(SyntheticRun::all({.steps = 5}));
    ASSERT_TRUE((*recorder)->flush());
    const auto reader = openReader(path);
    EXPECT_TRUE((*recorder)->stop());
    const RecorderStatus status = (*recorder)->status();
    EXPECT_EQ(status.error, "");
    EXPECT_NE(status.note.find("complete"), std::string::npos) << status.note;
    EXPECT_NE(status.note.find("-wal"), std::string::npos) << status.note;
    EXPECT_EQ(status.note.find("together"), status.note.rfind("together")) << status.note;
    EXPECT_TRUE(openReader(path)->info().endedCleanly);
}

TEST(Recorder, writesAKeyframeAtLeastEvery256StepsWithTheLiveStateHash) {
    TemporaryFolder folder;
    const SyntheticOptions options{.seed = 11, .steps = 1000, .samples = false};
    record(folder.file("run.kvatlas"), options);
    const auto hashes = hashesOf(SyntheticRun::all(options));
    const auto reader = openReader(folder.file("run.kvatlas"));
    ASSERT_TRUE(reader);
    Step last = 0;
    ASSERT_FALSE(reader->keyframes().empty());
    for (std::size_t i = 0; i < reader->keyframes().size(); ++i) {
        const KeyframeEntry& entry = reader->keyframes()[i];
        EXPECT_LE(entry.step - last, kKeyframeSteps);
        last = entry.step;
        auto bytes = reader->keyframe(i);
        ASSERT_TRUE(bytes);
        auto state = state::CacheState::decode(*bytes);
        ASSERT_TRUE(state) << state.error().message;
        EXPECT_EQ(state->stateHash(), hashes.at(entry.step));
        EXPECT_EQ(entry.stateHash, hashes.at(entry.step));
    }
    EXPECT_LE(999 - last, kKeyframeSteps);
}

TEST(Recorder, refusesToReplaceAFileOrToRecordIntoNothing) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    auto first = SessionRecorder::create(path);
    ASSERT_TRUE(first);
    const auto second = SessionRecorder::create(path);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("exists already"), std::string::npos) << second.error().message;
    const auto nowhere = SessionRecorder::create(folder.file("no/such/run.kvatlas"));
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().message.find("does not exist"), std::string::npos) << nowhere.error().message;
    writeBytes(folder.file("other.kvatlas-wal"), "left over");
    const auto leftOver = SessionRecorder::create(folder.file("other.kvatlas"));
    ASSERT_FALSE(leftOver);
    EXPECT_NE(leftOver.error().message.find("-wal"), std::string::npos);
    EXPECT_EQ(bytesOf(folder.file("other.kvatlas-wal")), "left over");
    EXPECT_FALSE(SessionRecorder::create(folder.path() + "/"));
    EXPECT_FALSE(SessionRecorder::create(""));
}

TEST(Recorder, givesAStalledDiskUpWithoutKeepingTheRun) {
    TemporaryFolder folder;
    std::atomic<bool> stalled{true};
    RecorderOptions options;
    options.transaction = std::chrono::milliseconds(5);
    options.stall = std::chrono::milliseconds(150);
    options.queueEvents = 500;
    options.beforeCommit = [&] {
        while (stalled)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    auto recorder = SessionRecorder::create(folder.file("run.kvatlas"), options);
    ASSERT_TRUE(recorder);
    SyntheticRun run({.steps = 200});
    while (!run.done())
        (*recorder)->onEvents(run.nextStep()); // must return
    const RecorderStatus status = (*recorder)->status();
    EXPECT_FALSE(status.recording);
    EXPECT_NE(status.error.find("did not keep up"), std::string::npos) << status.error;
    EXPECT_GE(status.waitedNs, 140'000'000);
    EXPECT_GT(status.lostEvents, 0u);
    EXPECT_FALSE((*recorder)->flush());
    stalled = false;
    EXPECT_FALSE((*recorder)->stop());
    const auto reader = openReader(folder.file("run.kvatlas"));
    ASSERT_TRUE(reader);
    EXPECT_FALSE(reader->info().endedCleanly);
}

TEST(Recorder, waitsForRoomWithoutLosingAnEvent) {
    TemporaryFolder folder;
    RecorderOptions options;
    options.transaction = std::chrono::milliseconds(1);
    options.queueEvents = 60;
    auto recorder = SessionRecorder::create(folder.file("run.kvatlas"), options);
    ASSERT_TRUE(recorder);
    const SyntheticOptions synthetic{.steps = 120};
    SyntheticRun run(synthetic);
    while (!run.done())
        (*recorder)->onEvents(run.nextStep());
    ASSERT_TRUE((*recorder)->stop());
    EXPECT_EQ((*recorder)->status().lostEvents, 0u);
    EXPECT_EQ(allEvents(*openReader(folder.file("run.kvatlas"))), SyntheticRun::all(synthetic));
}

TEST(Recorder, stopsWithASentenceWhenItsFolderIsDeleted) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("inner"));
    auto recorder = SessionRecorder::create(folder.file("inner/run.kvatlas"));
    ASSERT_TRUE(recorder);
    SyntheticRun run({.steps = 20});
    (*recorder)->onEvents(run.nextStep());
    ASSERT_TRUE((*recorder)->flush());
    std::filesystem::remove_all(folder.file("inner"));
    (*recorder)->onEvents(run.nextStep());
    const auto flushed = (*recorder)->flush();
    ASSERT_FALSE(flushed);
    EXPECT_NE(flushed.error().message.find("deleted"), std::string::npos) << flushed.error().message;
    (*recorder)->onEvents(run.nextStep());
    EXPECT_FALSE((*recorder)->stop());
}

TEST(Recorder, promisesNothingAboutAFileThatIsGone) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    for (const bool moved : {true, false}) {
        auto recorder = SessionRecorder::create(path);
        ASSERT_TRUE(recorder);
        SyntheticRun run({.steps = 20});
        (*recorder)->onEvents(run.nextStep());
        ASSERT_TRUE((*recorder)->flush());
        if (moved)
            std::filesystem::rename(path, folder.file("other.kvatlas"));
        else
            std::filesystem::remove(path);
        (*recorder)->onEvents(run.nextStep());
        EXPECT_FALSE((*recorder)->stop());
        const std::string error = (*recorder)->status().error;
        EXPECT_NE(error.find("moved or deleted"), std::string::npos) << error;
        EXPECT_NE(error.find("If you moved it"), std::string::npos) << error;
        EXPECT_EQ(error.find("together"), std::string::npos) << error;
        EXPECT_EQ(error.find("readable"), std::string::npos) << error;
        if (moved) { // what the sentence advises
            std::filesystem::rename(path + "-wal", folder.file("other.kvatlas-wal"));
            EXPECT_GT(openReader(folder.file("other.kvatlas"))->info().events, 0u);
        }
        for (const char* suffix : {"-wal", "-shm"})
            std::filesystem::remove(path + suffix);
    }
}

TEST(Recorder, joinsARunUnderWayByItsKeyframe) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    SyntheticRun run({.seed = 21, .steps = 400});
    state::CacheState live;
    for (int step = 0; step < 100; ++step)
        for (const trace::Event& event : run.nextStep())
            ASSERT_TRUE(live.apply(event));
    auto recorder = SessionRecorder::create(path, {.piece = SyntheticRun::piece});
    ASSERT_TRUE(recorder);
    (*recorder)->onKeyframe(99, live.encode());
    std::map<Step, std::uint64_t> hashes;
    while (!run.done()) {
        const auto events = run.nextStep();
        (*recorder)->onEvents(events);
        hashes.merge(hashesOf(events));
    }
    ASSERT_TRUE((*recorder)->stop());
    const auto reader = openReader(path);
    ASSERT_TRUE(reader);
    EXPECT_TRUE(reader->info().endedCleanly);
    for (const Step step : {100u, 101u, 250u, 399u}) {
        auto answer = reader->stateAt(step);
        ASSERT_TRUE(answer) << answer.error().message;
        auto state = state::CacheState::decode(answer->keyframe);
        ASSERT_TRUE(state);
        for (const trace::Event& event : answer->events)
            ASSERT_TRUE(state->apply(event));
        EXPECT_EQ(state->stateHash(), hashes.at(step)) << step;
    }
    EXPECT_FALSE(reader->stateAt(50));
}

TEST(Recorder, endsBeforeAJump) {
    TemporaryFolder folder;
    auto recorder = SessionRecorder::create(folder.file("run.kvatlas"));
    ASSERT_TRUE(recorder);
    (*recorder)->onEvents(SyntheticRun::all({.steps = 5}));
    ASSERT_TRUE((*recorder)->flush());
    (*recorder)->onKeyframe(2, {});
    EXPECT_NE((*recorder)->status().error.find("jumped"), std::string::npos);
    EXPECT_FALSE((*recorder)->stop());
    EXPECT_EQ(openReader(folder.file("run.kvatlas"))->info().steps, 5u);
}

TEST(Recorder, keepsEventsThatFitNoStateAndSaysSo) {
    TemporaryFolder folder;
    auto recorder = SessionRecorder::create(folder.file("run.kvatlas"));
    ASSERT_TRUE(recorder);
    std::vector<trace::Event> events = SyntheticRun::all({.steps = 5});
    events.push_back({5, 1, trace::SequenceEnded{SequenceId(12345)}});
    (*recorder)->onEvents(events);
    EXPECT_TRUE((*recorder)->stop());
    const auto reader = openReader(folder.file("run.kvatlas"));
    EXPECT_EQ(allEvents(*reader), events);
    EXPECT_TRUE(reader->info().meta.contains("state_error"));
}

} // namespace
} // namespace kvatlas::sessions

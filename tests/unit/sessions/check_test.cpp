// SPDX-License-Identifier: Apache-2.0
#include "sessions/check.h"

#include "sessions/reader.h"
#include "sessions/salvage.h"
#include "tests/support/session_files.h"

#include <atomic>
#include <thread>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

class Check : public ::testing::Test {
protected:
    void SetUp() override { record(m_path, m_options); }

    CheckResult check() {
        const auto result = checkSession(m_path);
        EXPECT_TRUE(result) << (result ? "" : result.error().message);
        return result.value_or(CheckResult{});
    }
    void expectDamage(const std::string& where) {
        const CheckResult result = check();
        EXPECT_FALSE(result.ok);
        bool named = false;
        for (const std::string& sentence : result.damaged)
            named = named || sentence.find(where) != std::string::npos;
        EXPECT_TRUE(named) << where << " is not named; first: " << (result.damaged.empty() ? "" : result.damaged[0]);
    }
    // Flips one bit in the middle of a chunk's or keyframe's blob, in the file itself.
    void flipIn(const std::string& table, const std::string& key, std::int64_t id) {
        const std::string hex = sql(m_path, "SELECT hex(substr(data, length(data) / 2, 24)) FROM " + table + " WHERE " +
                                                key + " = " + std::to_string(id))[0];
        std::string needle;
        for (std::size_t i = 0; i < hex.size(); i += 2)
            needle += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        std::string bytes = bytesOf(m_path);
        std::size_t at = bytes.find(needle);
        if (at == std::string::npos) { // it lies across two pages
            needle.resize(8);
            at = bytes.find(needle);
        }
        ASSERT_NE(at, std::string::npos);
        bytes[at + 3] = static_cast<char>(bytes[at + 3] ^ 4);
        writeBytes(m_path, bytes);
    }

    TemporaryFolder m_folder;
    const std::string m_path = m_folder.file("run.kvatlas");
    const SyntheticOptions m_options{.seed = 23, .steps = 1500, .poolBlocks = 100};
};

TEST_F(Check, findsNothingInASoundSession) {
    const CheckResult result = check();
    EXPECT_TRUE(result.ok) << result.damaged.at(0);
    EXPECT_TRUE(result.endedCleanly);
    EXPECT_EQ(result.schema, 1u);
    EXPECT_EQ(result.steps, 1500u);
    EXPECT_EQ(result.events, SyntheticRun::all(m_options).size());
    EXPECT_GE(result.keyframes, 5u);
}

TEST_F(Check, namesAFlippedBitInAChunkAndShowsTheRest) {
    flipIn("chunks", "id", 2);
    expectDamage("chunk 2");
    const auto reader = SessionReader::open(m_path);
    ASSERT_TRUE(reader);
    const ChunkEntry broken = (*reader)->chunks()[1];
    EXPECT_TRUE((*reader)->stateAt(broken.firstStep - 1));
    EXPECT_TRUE((*reader)->stateAt(1499));
    const auto lost = (*reader)->stateAt(broken.lastStep - 1);
    if (!lost) {
        EXPECT_NE(lost.error().message.find("chunk 2"), std::string::npos);
    }
}

TEST_F(Check, namesAFlippedBitInAKeyframeAndUsesTheOneBefore) {
    const auto before = SessionReader::open(m_path);
    ASSERT_TRUE(before);
    const Step step = (*before)->keyframes().back().step;
    flipIn("keyframes", "step", step);
    expectDamage("keyframe of step " + std::to_string(step));
    const auto reader = SessionReader::open(m_path);
    const auto answer = (*reader)->stateAt(step);
    ASSERT_TRUE(answer);
    auto state = state::CacheState::decode(answer->keyframe);
    ASSERT_TRUE(state);
    for (const trace::Event& event : answer->events)
        ASSERT_TRUE(state->apply(event));
    EXPECT_EQ(state->stateHash(), hashesOf(SyntheticRun::all(m_options)).at(step));
}

TEST_F(Check, comparesEveryTableWithTheEvents) {
    std::filesystem::remove(m_path);
    record(m_path, {.seed = 24, .steps = 560, .samples = true});
    const std::string good = bytesOf(m_path);
    const std::pair<const char*, const char*> changes[] = {
        {"UPDATE steps SET used_bytes = used_bytes + 1 WHERE step = 300", "steps row 300"},
        {"DELETE FROM steps WHERE step = 3", "steps row 3"},
        {"INSERT INTO steps SELECT 9999, start_ns, end_ns, compute_ns, wait_ns, prefill_tokens, decode_tokens, "
         "sequences, "
         "waiting_requests, active_bytes, cached_bytes, reserved_bytes, capacity_bytes, used_bytes, active_blocks, "
         "cached_blocks, reserved_blocks, free_blocks, state_hash FROM steps WHERE step = 5",
         "steps"},
        {"UPDATE tokens SET token = token + 1 WHERE request = 3 AND position = 2", "request 3, position 2"},
        {"UPDATE tokens SET probability = 0.25 WHERE request = 2 AND step IS NOT NULL", "request 2"},
        {"UPDATE requests SET finish_reason = 'cancelled' WHERE request = 2", "requests row 2"},
        {"DELETE FROM requests WHERE request = 4", "requests"},
        {"UPDATE metrics SET value = value + 1 WHERE step = 7", "metrics row of step 7"},
        {"UPDATE kernels SET calls = calls + 1 WHERE kernel = 'attend' AND first_step = 0", "'attend'"},
        {"UPDATE pieces SET bytes = x'41' WHERE id = (SELECT min(id) FROM pieces)", "piece"},
        {"UPDATE meta SET value = 'another' WHERE key = 'model_name'", "model_name"},
        {"DELETE FROM keyframes WHERE step > 300", "the end marker counts 4 keyframes, 2 are there"},
        {"DELETE FROM meta WHERE key = 'end_steps'", "the end marker does not count the steps"},
        {"DELETE FROM chunks WHERE id = 2", "missing"},
        {"UPDATE chunks SET first_event = first_event + 1 WHERE id = 2", "chunk 2"},
        {"UPDATE keyframes SET state_hash = 1 WHERE step > 300", "keyframe"},
    };
    for (const auto& [change, where] : changes) {
        sql(m_path, change);
        SCOPED_TRACE(change);
        expectDamage(where);
        writeBytes(m_path, good);
    }
}

TEST_F(Check, takesAnInterruptedRecordingForSoundButNotForEnded) {
    sql(m_path, "DELETE FROM meta WHERE key LIKE 'end%'");
    const CheckResult result = check();
    EXPECT_TRUE(result.ok) << result.damaged.at(0);
    EXPECT_FALSE(result.endedCleanly);
}

TEST_F(Check, seesOneMomentOfARecordingUnderWay) {
    const std::string path = m_folder.file("hot.kvatlas");
    auto recorder = SessionRecorder::create(path, {.transaction = std::chrono::milliseconds(1)});
    ASSERT_TRUE(recorder);
    std::atomic<bool> checked{false};
    std::thread engine([&] {
        SyntheticRun run({.seed = 31, .steps = 20'000});
        while (!run.done() && !checked) {
            (*recorder)->onEvents(run.nextStep());
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    for (int i = 0; i < 20; ++i) {
        const auto result = checkSession(path);
        EXPECT_TRUE(result && result->ok) << (result ? result->damaged.at(0) : result.error().message);
    }
    checked = true;
    engine.join();
}

TEST_F(Check, namesAMissingWal) {
    auto recorder = SessionRecorder::create(m_folder.file("hot.kvatlas"));
    ASSERT_TRUE(recorder);
    (*recorder)->onEvents(SyntheticRun::all({.seed = 9, .steps = 100}));
    ASSERT_TRUE((*recorder)->flush());
    const std::string hot = m_folder.file("hot.kvatlas"), copy = m_folder.file("copy.kvatlas");
    std::filesystem::copy_file(hot, copy);
    for (int i = 0; i < 2; ++i) { // SQLite leaves an empty -wal behind the first time
        const auto alone = checkSession(copy);
        ASSERT_TRUE(alone);
        EXPECT_FALSE(alone->ok);
        EXPECT_NE(alone->damaged.at(0).find("copy.kvatlas-wal"), std::string::npos) << alone->damaged.at(0);
    }
    const auto saved = salvageSession(copy, m_folder.file("saved.kvatlas"));
    ASSERT_FALSE(saved);
    EXPECT_NE(saved.error().message.find("copy.kvatlas-wal"), std::string::npos) << saved.error().message;

    // With its -wal it is sound, and nothing is missing.
    for (const char* suffix : {"", "-wal"})
        std::filesystem::copy_file(hot + suffix, copy + suffix, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::remove(copy + "-shm");
    EXPECT_TRUE(checkSession(copy)->ok);
    EXPECT_EQ(checkSession(copy)->hint, "");
    // Another program has moved the -wal into the file: sound, but nobody can know that this was all.
    sql(copy, "PRAGMA wal_checkpoint(TRUNCATE)");
    const auto merged = checkSession(copy);
    ASSERT_TRUE(merged);
    EXPECT_TRUE(merged->ok) << merged->damaged.at(0);
    EXPECT_EQ(merged->steps, 100u);
    EXPECT_NE(merged->hint.find("copy.kvatlas-wal"), std::string::npos) << merged->hint;
}

// ---- salvage

TEST_F(Check, salvagesTheLongestStretchIntoASoundSession) {
    flipIn("chunks", "id", 2);
    const std::string damaged = bytesOf(m_path);
    const auto saved = salvageSession(m_path, m_folder.file("saved.kvatlas"));
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_GT(saved->events, SyntheticRun::all(m_options).size() / 2);
    EXPECT_EQ(saved->events + saved->lostEvents, SyntheticRun::all(m_options).size());
    EXPECT_FALSE(saved->damaged.empty());
    EXPECT_EQ(bytesOf(m_path), damaged);
    const auto result = checkSession(m_folder.file("saved.kvatlas"));
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->ok) << result->damaged.at(0);
    EXPECT_TRUE(result->endedCleanly);
    EXPECT_NE(result->hint.find("what could be saved"), std::string::npos) << result->hint;
    // The states are those of the run.
    const auto hashes = hashesOf(SyntheticRun::all(m_options));
    const auto reader = SessionReader::open(m_folder.file("saved.kvatlas"));
    ASSERT_TRUE(reader);
    const auto history = (*reader)->history(0, 0xFFFF'FFFF, 100'000);
    ASSERT_TRUE(history);
    EXPECT_EQ(history->steps.size(), saved->steps);
    for (const trace::StepRow& row : history->steps)
        EXPECT_EQ(row.stateHash, hashes.at(row.step));
    EXPECT_TRUE((*reader)->stateAt(1499));
    EXPECT_FALSE(salvageSession(m_path, m_folder.file("saved.kvatlas"))) << "an existing file was replaced";
}

TEST_F(Check, salvagesAnInterruptedSessionWhole) {
    auto recorder = SessionRecorder::create(m_folder.file("hot.kvatlas"), {.piece = SyntheticRun::piece});
    ASSERT_TRUE(recorder);
    const auto events = SyntheticRun::all({.seed = 9, .steps = 100});
    (*recorder)->onEvents(events);
    ASSERT_TRUE((*recorder)->flush());
    const auto saved = salvageSession(m_folder.file("hot.kvatlas"), m_folder.file("saved.kvatlas"));
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(saved->events, events.size());
    EXPECT_EQ(saved->lostEvents, 0u);
    EXPECT_TRUE(checkSession(m_folder.file("saved.kvatlas"))->ok);
}

TEST_F(Check, saysWhenNothingCanBeSaved) {
    sql(m_path, "DELETE FROM chunks; DELETE FROM keyframes");
    const auto saved = salvageSession(m_path, m_folder.file("saved.kvatlas"));
    ASSERT_FALSE(saved);
    EXPECT_FALSE(std::filesystem::exists(m_folder.file("saved.kvatlas")));
}

TEST_F(Check, readsPastDamagedPagesFromBothEnds) {
    // Zero a whole page that holds rows of the chunks table (a leaf), as a bad sector would.
    const auto pages = sql(m_path, "SELECT rootpage FROM sqlite_schema WHERE name = 'chunks'");
    std::string bytes = bytesOf(m_path);
    const auto page = static_cast<std::size_t>(std::stoul(pages[0]) - 1) * 4096;
    ASSERT_EQ(bytes[page], 5) << "the root is a leaf itself: record more, this table is too small to try it";
    const auto child = [&](std::size_t cell) {
        const auto at = page + static_cast<std::size_t>(static_cast<unsigned char>(bytes[page + 12 + cell * 2]) << 8 |
                                                        static_cast<unsigned char>(bytes[page + 13 + cell * 2]));
        std::size_t number = 0;
        for (std::size_t i = 0; i < 4; ++i)
            number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
        return number;
    };
    const std::size_t second = child(1);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>((second - 1) * 4096), 4096, '\0');
    writeBytes(m_path, bytes);
    expectDamage("chunks");
    const auto reader = SessionReader::open(m_path);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_TRUE((*reader)->stateAt(0));
    EXPECT_TRUE((*reader)->stateAt(1499)); // what lies behind the damage is still there
    EXPECT_TRUE(salvageSession(m_path, m_folder.file("saved.kvatlas")));
}

// How a copy that broke off, or a full stick, leaves a file.
TEST_F(Check, seesThatAPartOfTheLastPageIsMissing) { // SQLite takes such a file
    std::filesystem::resize_file(m_path, std::filesystem::file_size(m_path) - 100);
    const auto reader = SessionReader::open(m_path);
    ASSERT_TRUE(reader);
    ASSERT_FALSE((*reader)->damaged().empty());
    EXPECT_NE((*reader)->damaged().front().find("its last 100 bytes are missing"), std::string::npos);
}

TEST_F(Check, salvagesTheBeginningOfAFileThatWasCut) {
    std::filesystem::remove(m_path);
    record(m_path, {.seed = 23, .steps = 4000, .poolBlocks = 100});
    const std::string whole = bytesOf(m_path);
    const std::size_t pages = whole.size() / 4096;
    const std::uint64_t all = SessionReader::open(m_path).value()->info().events;
    const std::pair<std::size_t, double> cuts[] = {{4096 * (pages - 1), 0.4},
                                                   {4096 * pages - 100, 0.4},
                                                   {4096 * (pages * 3 / 4), 0.25},
                                                   {4096 * (pages / 2), 0.1}};
    for (const auto& [size, share] : cuts) {
        SCOPED_TRACE(size);
        const std::string cut = m_folder.file("cut.kvatlas"), saved = m_folder.file("saved.kvatlas");
        writeBytes(cut, whole.substr(0, size));
        const auto result = salvageSession(cut, saved);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_GT(static_cast<double>(result->events), share * static_cast<double>(all));
        EXPECT_EQ(result->events + result->lostEvents, all);
        ASSERT_FALSE(result->damaged.empty());
        EXPECT_NE(result->damaged[0].find("cut short"), std::string::npos) << result->damaged[0];
        const auto sound = checkSession(saved);
        ASSERT_TRUE(sound);
        EXPECT_TRUE(sound->ok) << sound->damaged.at(0);
        EXPECT_EQ(bytesOf(cut).size(), size);
        std::filesystem::remove(saved);
    }
}

TEST_F(Check, salvageNeverRecommendsItself) {
    const std::string whole = bytesOf(m_path);
    for (std::size_t size : {101, 600, 4096, 5 * 4096, 11 * 4096, 12 * 4096, 16 * 4096}) {
        writeBytes(m_path, whole.substr(0, size));
        const auto saved = salvageSession(m_path, m_folder.file("saved.kvatlas"));
        ASSERT_FALSE(saved) << size;
        EXPECT_EQ(saved.error().message.rfind("Nothing in '", 0), 0u) << size << ": " << saved.error().message;
        EXPECT_EQ(saved.error().message.find("salvage'"), std::string::npos) << size << ": " << saved.error().message;
        EXPECT_FALSE(std::filesystem::exists(m_folder.file("saved.kvatlas")));
    }
}

} // namespace
} // namespace kvatlas::sessions

// SPDX-License-Identifier: Apache-2.0
// 500 damaged or hostile session files, made from a sound one with a seed: none crashes or hangs a reader, every
// changed payload is reported, and a file that a check calls sound gives exactly the events that were recorded.
#include "sessions/check.h"
#include "sessions/packed.h"
#include "sessions/reader.h"
#include "sessions/replay_source.h"
#include "sessions/salvage.h"
#include "tests/support/session_files.h"

#include <chrono>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

constexpr int kMutants = 500;
constexpr std::size_t kPage = 4096;

// Small, but with a keyframe: many mutants in little time.
constexpr SyntheticOptions kSmallRun{.seed = 55,
                                     .steps = 270,
                                     .poolBlocks = 32,
                                     .maxSequences = 2,
                                     .maxPromptTokens = 20,
                                     .arrivalsPerStep = 0.05,
                                     .samples = false};

struct Random {
    std::uint64_t state;
    std::size_t below(std::size_t bound) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>((state >> 33) % bound);
    }
};

struct Original {
    std::string bytes;       // a finished session
    std::string hot, hotWal; // one that was cut off, and its -wal
    std::string foreignWal;
    std::vector<trace::Event> events, hotEvents, foreignEvents;
};

Original makeOriginal(const TemporaryFolder& folder) {
    Original original;
    record(folder.file("sound.kvatlas"), kSmallRun);
    original.bytes = bytesOf(folder.file("sound.kvatlas"));
    original.events = SyntheticRun::all(kSmallRun);
    original.hotEvents = SyntheticRun::all({.seed = 56, .steps = 40});
    original.foreignEvents = SyntheticRun::all({.seed = 57, .steps = 30});
    for (const auto& [name, events] : {std::pair{"hot", original.hotEvents}, {"foreign", original.foreignEvents}}) {
        const std::string path = folder.file(std::string(name) + ".kvatlas");
        auto recorder = SessionRecorder::create(path, {.piece = SyntheticRun::piece});
        EXPECT_TRUE(recorder);
        (*recorder)->onEvents(events);
        EXPECT_TRUE((*recorder)->flush());
        if (std::string_view(name) == "hot") {
            original.hot = bytesOf(path);
            original.hotWal = bytesOf(path + "-wal");
        } else {
            original.foreignWal = bytesOf(path + "-wal");
        }
    }
    return original;
}

// Everything a window would do with a file. Returns what a check says, nothing when the file is refused.
std::optional<CheckResult> useIt(const std::string& path, bool salvage) {
    auto reader = SessionReader::open(path);
    if (!reader) {
        EXPECT_FALSE(reader.error().message.empty());
        EXPECT_FALSE(checkSession(path));
        return std::nullopt;
    }
    for (const Step step : {0u, 150u, 269u, 0xFFFF'FFFFu})
        if (auto answer = (*reader)->stateAt(step)) {
            auto state = answer->keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                                  : state::CacheState::decode(answer->keyframe);
            for (const trace::Event& event : answer->events)
                if (!state || !state->apply(event))
                    break;
        }
    (void)(*reader)->history(0, 0xFFFF'FFFF, 100);
    (void)(*reader)->requestText(RequestId(1));
    (void)(*reader)->pieces();
    if (salvage) {
        (void)salvageSession(path, path + ".saved");
        std::filesystem::remove(path + ".saved");
    }
    auto checked = checkSession(path);
    EXPECT_TRUE(checked);
    return checked ? std::optional(*checked) : std::nullopt;
}

std::vector<trace::Event> readAll(const std::string& path) {
    std::vector<trace::Event> events;
    auto reader = SessionReader::open(path);
    for (std::size_t i = 0; reader && i < (*reader)->chunks().size(); ++i)
        if (const auto chunk = (*reader)->chunkEvents(i))
            events.insert(events.end(), (*chunk)->begin(), (*chunk)->end());
    return events;
}

// Changes the file; false when only the main file's bytes were touched.
std::string mutate(const Original& original, int kind, Random& random, const std::string& path) {
    std::string bytes = original.bytes;
    const std::size_t pages = bytes.size() / kPage;
    switch (kind % 10) {
    case 0: // one bit anywhere
        bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
        break;
    case 1: // some bytes anywhere
        for (std::size_t n = 1 + random.below(40); n > 0; --n)
            bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
        break;
    case 2:
        bytes.resize(kPage * random.below(pages));
        break; // cut at a page
    case 3:
        bytes.resize(random.below(bytes.size()));
        break; // cut anywhere
    case 4:    // a header field
        for (std::size_t n = 1 + random.below(4), at = 16 + random.below(80); n > 0; --n)
            bytes[at++] = static_cast<char>(random.below(3) == 0 ? 0xFF : random.below(256));
        break;
    case 5: // a page zeroed
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(kPage * random.below(pages)), kPage, '\0');
        break;
    case 6: { // two pages exchanged
        const std::size_t a = kPage * random.below(pages), b = kPage * random.below(pages);
        std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                         bytes.begin() + static_cast<std::ptrdiff_t>(a + kPage),
                         bytes.begin() + static_cast<std::ptrdiff_t>(b));
        break;
    }
    case 7: { // the start of a page: the B-tree's own numbers
        const std::size_t page = random.below(pages) * kPage + (random.below(4) == 0 ? 0 : 8);
        for (std::size_t n = 1 + random.below(6); n > 0; --n)
            bytes[page + random.below(24)] = static_cast<char>(random.below(256));
        break;
    }
    case 8: // an unfinished session whose -wal is damaged, foreign or missing
        bytes = original.hot;
        if (random.below(3) == 0) {
            writeBytes(path + "-wal", original.foreignWal);
        } else if (random.below(2) == 0) {
            std::string wal = original.hotWal;
            wal[random.below(wal.size())] ^= 1;
            if (random.below(2) == 0)
                wal.resize(random.below(wal.size()));
            writeBytes(path + "-wal", wal);
        }
        break;
    case 9:
        writeBytes(path + "-wal", random.below(2) ? original.foreignWal : original.hotWal);
        break;
    }
    writeBytes(path, bytes);
    return bytes;
}

TEST(Mutants, neverCrashHangOrLie) {
    TemporaryFolder folder;
    const Original original = makeOriginal(folder);
    const std::string path = folder.file("mutant.kvatlas");
    int refused = 0, reported = 0, sound = 0;
    std::chrono::steady_clock::duration longest{};
    for (int i = 0; i < kMutants; ++i) {
        SCOPED_TRACE("mutant " + std::to_string(i));
        Random random{static_cast<std::uint64_t>(i) * 77 + 5};
        for (const char* suffix : {"", "-wal", "-shm"})
            std::filesystem::remove(path + suffix);
        const std::string bytes = mutate(original, i, random, path);
        const auto began = std::chrono::steady_clock::now();
        const auto checked = useIt(path, i % 5 == 0);
        longest = std::max(longest, std::chrono::steady_clock::now() - began);
        EXPECT_EQ(bytesOf(path), bytes) << "a reader changed the file";
        if (!checked) {
            ++refused;
        } else if (!checked->ok) {
            ++reported;
        } else {
            ++sound;
            const auto events = readAll(path);
            const auto isPrefixOf = [&](const std::vector<trace::Event>& all) {
                return events.size() <= all.size() && std::equal(events.begin(), events.end(), all.begin());
            };
            // The -wal of another session over a file that holds nothing yet is that other session.
            const auto& whole = i % 10 == 8 ? original.hotEvents : original.events;
            EXPECT_TRUE(isPrefixOf(whole) || (i % 10 == 8 && isPrefixOf(original.foreignEvents)));
            if (checked->endedCleanly) {
                EXPECT_EQ(events.size(), whole.size());
            } else {
                EXPECT_EQ(i % 10, 8) << "a finished session that lost its end passes as sound";
            }
        }
    }
    std::printf("%d mutants: %d refused, %d reported, %d with the recorded content; the slowest took %.0f ms\n",
                kMutants, refused, reported, sound, std::chrono::duration<double, std::milli>(longest).count());
    EXPECT_LT(longest, std::chrono::seconds(60)); // a hang, not a speed
    EXPECT_GT(reported, kMutants / 4);
    EXPECT_GT(refused, kMutants / 10);
}

void flipByte(const std::string& path, const std::string& table, std::int64_t row, int at, unsigned char mask) {
    sqlite3* database = nullptr;
    sqlite3_blob* blob = nullptr;
    unsigned char byte = 0;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_blob_open(database, "main", table.c_str(), "data", row, 1, &blob), SQLITE_OK);
    ASSERT_EQ(sqlite3_blob_read(blob, &byte, 1, at), SQLITE_OK);
    byte ^= mask;
    ASSERT_EQ(sqlite3_blob_write(blob, &byte, 1, at), SQLITE_OK);
    sqlite3_blob_close(blob);
    sqlite3_close(database);
}

// Every byte of a blob belongs to a chunk or keyframe; a flip of any is reported.
TEST(Mutants, everyFlipInAPayloadIsReported) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    record(path, kSmallRun);
    Random random{99};
    for (int i = 0; i < 40; ++i) {
        const std::string table = i % 3 == 2 ? "keyframes" : "chunks", key = i % 3 == 2 ? "step" : "id";
        const auto keys = sql(path, "SELECT " + key + ", length(data) FROM " + table);
        ASSERT_FALSE(keys.empty());
        const std::string& chosen = keys[random.below(keys.size())];
        const std::string id = chosen.substr(0, chosen.find('|'));
        const std::size_t at = random.below(std::stoul(chosen.substr(chosen.find('|') + 1)));
        const auto mask = static_cast<unsigned char>(1u << random.below(8));
        flipByte(path, table, std::stoll(id), static_cast<int>(at), mask);
        const auto checked = checkSession(path);
        ASSERT_TRUE(checked);
        EXPECT_FALSE(checked->ok) << table << " " << id << " byte " << at;
        flipByte(path, table, std::stoll(id), static_cast<int>(at), mask);
    }
    EXPECT_TRUE(checkSession(path)->ok);
}

// What a checksum does not protect from: a file made by somebody who can compute checksums.
TEST(Mutants, wellSealedNonsenseIsRefusedWithoutHarm) {
    TemporaryFolder folder;
    const std::string path = folder.file("run.kvatlas");
    record(path, {.steps = 20});
    const std::int64_t session = std::stoll(sql(path, "SELECT value FROM meta WHERE key = 'session'")[0]);
    const auto plant = [&](std::int64_t events, std::int64_t rawBytes, const std::vector<std::byte>& data) {
        sqlite3* database = nullptr;
        sqlite3_open(path.c_str(), &database);
        sqlite3_stmt* statement = nullptr;
        ASSERT_EQ(sqlite3_prepare_v2(database, "INSERT OR REPLACE INTO chunks VALUES(1,?,0,0,?,0,19,1,?,?,?)", -1,
                                     &statement, nullptr),
                  SQLITE_OK);
        const std::int64_t columns[] = {1, session, 0, 0, events, 0, 19, 1, rawBytes};
        sqlite3_bind_int64(statement, 1, session);
        sqlite3_bind_int64(statement, 2, events);
        sqlite3_bind_int64(statement, 3, rawBytes);
        sqlite3_bind_int64(statement, 4, blobChecksum(columns, data));
        sqlite3_bind_blob(statement, 5, data.empty() ? "" : static_cast<const void*>(data.data()),
                          static_cast<int>(data.size()), SQLITE_STATIC);
        EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
        sqlite3_finalize(statement);
        sqlite3_close(database);
    };
    const std::vector<std::byte> zeros(1 << 20);
    const std::vector<std::byte> huge = {std::byte{1}, std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF},
                                         std::byte{0x7F}};
    const std::vector<std::byte> bomb = compress(std::vector<std::byte>(60 << 20));
    const std::tuple<std::int64_t, std::int64_t, std::vector<std::byte>> plants[] = {
        {5, 1 << 20, compress(zeros)},                        // not a batch
        {0x0FFF'FFFF, 5, compress(huge)},                     // a count beyond every bound
        {5, 60 << 20, bomb},                                  // more than a chunk may unpack to
        {5, 100, bomb},                                       // a lie about the size
        {5, std::numeric_limits<std::int64_t>::max(), zeros}, // no zstd frame
        {5, -1, {}},                                          // nothing
    };
    for (const auto& [events, rawBytes, data] : plants) {
        plant(events, rawBytes, data);
        const auto reader = SessionReader::open(path);
        ASSERT_TRUE(reader);
        EXPECT_FALSE((*reader)->stateAt(10));
        EXPECT_FALSE((*reader)->damaged().empty());
        EXPECT_FALSE(checkSession(path)->ok);
    }
}

} // namespace
} // namespace kvatlas::sessions

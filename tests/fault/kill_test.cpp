// SPDX-License-Identifier: Apache-2.0
// kill -9 of a recording process at random moments: while it creates, records and ends files.
#include "sessions/check.h"
#include "sessions/reader.h"
#include "tests/fault/acknowledged.h"
#include "tests/support/session_files.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

constexpr int kKills = 24;

struct SharedMemory {
    explicit SharedMemory(const std::string& path) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        EXPECT_EQ(::ftruncate(file, sizeof(Acknowledged)), 0);
        acknowledged = static_cast<Acknowledged*>(
            ::mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
    }
    ~SharedMemory() { ::munmap(acknowledged, sizeof(Acknowledged)); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    Acknowledged* acknowledged;
};

struct Tally {
    int files = 0, interrupted = 0, ended = 0;
    std::uint64_t events = 0, acknowledged = 0;
};

void verify(const std::string& path, const SyntheticOptions& options, const Acknowledged::Run& run, Tally& tally) {
    SCOPED_TRACE(path);
    auto reader = SessionReader::open(path);
    ASSERT_TRUE(reader) << reader.error().message;
    const SessionInfo& info = (*reader)->info();
    EXPECT_GE(info.events, run.events) << "an acknowledged event is lost";
    EXPECT_TRUE(!run.ended || info.endedCleanly);
    // Killed before its first commit, a file holds nothing and looks like one that was copied without its -wal.
    const bool nothingYet = run.events == 0 && info.events == 0 && info.meta.empty();
    EXPECT_TRUE(nothingYet || (*reader)->damaged().empty());

    // The recorded events are a prefix of the live run, and fold to its states.
    SyntheticRun live(options);
    std::vector<trace::Event> expected;
    std::map<Step, std::uint64_t> hashes;
    while (expected.size() < info.events && !live.done()) {
        for (trace::Event& event : live.nextStep())
            expected.push_back(std::move(event));
        hashes[expected.back().step] = live.stateHash();
    }
    ASSERT_GE(expected.size(), info.events);
    std::size_t at = 0;
    for (std::size_t i = 0; i < (*reader)->chunks().size(); ++i) {
        const auto events = (*reader)->chunkEvents(i);
        ASSERT_TRUE(events);
        for (const trace::Event& event : **events)
            ASSERT_EQ(event, expected[at++]);
    }
    EXPECT_EQ(at, info.events);
    if (info.lastStep) {
        const auto answer = (*reader)->stateAt(*info.lastStep);
        ASSERT_TRUE(answer);
        auto state = answer->keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                              : state::CacheState::decode(answer->keyframe);
        ASSERT_TRUE(state);
        for (const trace::Event& event : answer->events)
            ASSERT_TRUE(state->apply(event));
        EXPECT_EQ(state->stateHash(), hashes.at(*info.lastStep));
    }
    tally.files += 1;
    tally.events += info.events;
    tally.acknowledged += run.events;
    (info.endedCleanly ? tally.ended : tally.interrupted) += 1;
    reader->reset();
    const auto checked = checkSession(path);
    ASSERT_TRUE(checked);
    EXPECT_TRUE(nothingYet || checked->ok) << checked->damaged.at(0);
}

TEST(Kill, losesNothingAcknowledgedAtAnyMoment) {
    Tally tally;
    std::uint64_t random = 12345;
    for (int kill = 0; kill < kKills; ++kill) {
        TemporaryFolder folder;
        const SharedMemory memory(folder.file("acknowledged"));
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl(RECORDER_PROGRAM, RECORDER_PROGRAM, folder.path().c_str(), std::to_string(kill).c_str(), nullptr);
            ::_exit(127);
        }
        random = random * 6364136223846793005u + 1442695040888963407u;
        // Every second kill may hit the creation of the first file; the others come when recording has begun, however
        // slow the machine is at this moment.
        const auto giveUp = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (kill % 2 == 0 && memory.acknowledged->runs[0].events == 0 && std::chrono::steady_clock::now() < giveUp)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::microseconds((random >> 33) % 150'000));
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "the recorder ended by itself: " << WEXITSTATUS(status);
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status));
        for (std::size_t run = 0; run < Acknowledged::kRuns; ++run) {
            const std::string path = killedFile(folder.path(), run);
            if (std::filesystem::exists(path))
                verify(path, killedRun(static_cast<std::uint64_t>(kill), run), memory.acknowledged->runs[run], tally);
            else
                EXPECT_EQ(memory.acknowledged->runs[run].events, 0u);
        }
    }
    std::printf("%d kills: %d files, %d interrupted, %d ended, %llu events acknowledged, %llu found\n", kKills,
                tally.files, tally.interrupted, tally.ended, static_cast<unsigned long long>(tally.acknowledged),
                static_cast<unsigned long long>(tally.events));
    EXPECT_GT(tally.interrupted, kKills / 8) << "the kills came at the wrong moments";
    EXPECT_GT(tally.acknowledged, 0u);
}

} // namespace
} // namespace kvatlas::sessions

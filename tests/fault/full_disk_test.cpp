// SPDX-License-Identifier: Apache-2.0
// A disk without room: a file-size limit, and a real full tmpfs. Each case runs in a child process, because limits and
// mounts belong to a process; its exit status is the verdict.
#include "core/base/process_guards.h"
#include "sessions/check.h"
#include "sessions/reader.h"
#include "tests/support/session_files.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (false)

constexpr int kNotPermitted = 77;

template <class Work> int inChild(Work work) {
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(work());
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        std::fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void setFileLimit(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
}

RecorderOptions quickly() {
    RecorderOptions options;
    options.transaction = std::chrono::milliseconds(5);
    options.stall = std::chrono::milliseconds(1500);
    return options;
}

// Delivers until the recording has stopped, as an engine would go on; the whole run must be deliverable.
int recordUntilFull(const std::string& path, const char* expectedWord) {
    const SyntheticOptions synthetic{.seed = 77, .steps = 6000};
    auto recorder = SessionRecorder::create(path, quickly());
    MUST(recorder);
    SyntheticRun run(synthetic);
    // Slower in its second half, so that the run outlasts the recorder's patience under a sanitizer too.
    for (std::uint32_t step = 0; !run.done(); ++step) {
        (*recorder)->onEvents(run.nextStep());
        if (run.done() || !(*recorder)->status().recording)
            break;
        std::this_thread::sleep_for(std::chrono::microseconds(step < synthetic.steps / 2 ? 50 : 1000));
    }
    MUST(!run.done());
    while (!run.done())
        (*recorder)->onEvents(run.nextStep()); // the run goes on
    (*recorder)->onEnd();
    MUST(!(*recorder)->stop());
    const RecorderStatus status = (*recorder)->status();
    std::fprintf(stderr, "%s\n", status.error.c_str());
    MUST(status.error.find(expectedWord) != std::string::npos);
    MUST(status.lostEvents > 0 && status.events > 0);
    recorder->reset();

    const auto reader = SessionReader::open(path);
    MUST(reader);
    MUST((*reader)->info().events >= status.events);
    MUST(!(*reader)->info().endedCleanly);
    MUST((*reader)->stateAt(status.lastStep));
    const auto checked = checkSession(path);
    MUST(checked && checked->ok);
    return 0;
}

TEST(FullDisk, aFileSizeLimitStopsTheRecordingWithASentence) {
    TemporaryFolder folder;
    EXPECT_EQ(inChild([&] {
                  guardFileSignals();
                  setFileLimit(600'000);
                  return recordUntilFull(folder.file("run.kvatlas"), "limit");
              }),
              0);
}

TEST(FullDisk, withoutIgnoringItsSignalTheProgramWouldDie) {
    TemporaryFolder folder;
    EXPECT_EQ(inChild([&] {
                  std::signal(SIGXFSZ, SIG_DFL);
                  setFileLimit(1000);
                  const int file = ::open(folder.file("x").c_str(), O_CREAT | O_WRONLY, 0600);
                  const std::string bytes(4096, 'x');
                  return ::write(file, bytes.data(), bytes.size()) + ::write(file, bytes.data(), bytes.size()) > 0 ? 0
                                                                                                                   : 1;
              }),
              128 + SIGXFSZ);
}

TEST(FullDisk, recordingGoesOnWhenRoomReturnsInTime) {
    TemporaryFolder folder;
    EXPECT_EQ(inChild([&] {
                  guardFileSignals();
                  RecorderOptions options = quickly();
                  options.stall = std::chrono::seconds(10);
                  auto recorder = SessionRecorder::create(folder.file("run.kvatlas"), options);
                  MUST(recorder);
                  const SyntheticOptions synthetic{.seed = 78, .steps = 500};
                  SyntheticRun run(synthetic);
                  setFileLimit(200'000);
                  std::thread roomReturns([] {
                      std::this_thread::sleep_for(std::chrono::milliseconds(400));
                      setFileLimit(RLIM_INFINITY);
                  });
                  while (!run.done())
                      (*recorder)->onEvents(run.nextStep());
                  (*recorder)->onEnd();
                  const auto stopped = (*recorder)->stop();
                  roomReturns.join();
                  MUST(stopped);
                  const auto checked = checkSession(folder.file("run.kvatlas"));
                  MUST(checked && checked->ok && checked->endedCleanly && checked->steps == 500);
                  return 0;
              }),
              0);
}

// A tmpfs of its own, seen by this process only.
bool mountTmpfs(const std::string& folder, const char* options) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    return ::mount("kvatlas-test", folder.c_str(), "tmpfs", 0, options) == 0;
}

void fillUp(const std::string& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string bytes(512, 'x');
    while (::write(file, bytes.data(), bytes.size()) > 0) {
    }
    ::close(file);
}

TEST(FullDisk, aFullTmpfsStopsTheRecordingWithASentence) {
    for (const char* size : {"size=1m", "size=2m"}) {
        TemporaryFolder folder;
        const int verdict = inChild([&] {
            guardFileSignals();
            if (!mountTmpfs(folder.path(), size))
                return kNotPermitted;
            if (const int failed = recordUntilFull(folder.file("run.kvatlas"), "full"))
                return failed;
            // Not even room for the index that SQLite wants beside a -wal: read from a copy in the temporary folder.
            std::filesystem::remove(folder.file("run.kvatlas-shm"));
            fillUp(folder.file("junk"));
            const auto reader = SessionReader::open(folder.file("run.kvatlas"));
            if (!reader)
                std::fprintf(stderr, "%s\n", reader.error().message.c_str());
            MUST(reader && (*reader)->info().events > 0);
            return 0;
        });
        if (verdict == kNotPermitted)
            GTEST_SKIP()
                << "NOT TESTED: mounting a tmpfs is not permitted here, so only the file-size limit stands in for a "
                   "full disk. Run this test as root (or with user namespaces) to test the real thing.";
        EXPECT_EQ(verdict, 0) << size;
    }
}

TEST(FullDisk, aDiskWithoutAnyRoomRefusesToBegin) {
    TemporaryFolder folder;
    const int verdict = inChild([&] {
        guardFileSignals();
        if (!mountTmpfs(folder.path(), "size=64k"))
            return kNotPermitted;
        const auto recorder = SessionRecorder::create(folder.file("run.kvatlas"));
        MUST(!recorder);
        std::fprintf(stderr, "%s\n", recorder.error().message.c_str());
        MUST(recorder.error().message.find("full") != std::string::npos);
        MUST(recorder.error().message.find("run.kvatlas'") != std::string::npos);
        MUST(std::filesystem::is_empty(folder.path()));
        return 0;
    });
    if (verdict == kNotPermitted)
        GTEST_SKIP() << "NOT TESTED: mounting a tmpfs is not permitted here.";
    EXPECT_EQ(verdict, 0);
}

} // namespace
} // namespace kvatlas::sessions

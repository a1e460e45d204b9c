// SPDX-License-Identifier: Apache-2.0
// Every single write, sync and truncation of a recording fails once, in turn, and (in samples) for ever.
#include "sessions/check.h"
#include "sessions/reader.h"
#include "tests/fault/failing_vfs.h"
#include "tests/support/session_files.h"

#include <chrono>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;

class FailingDisk : public ::testing::Test {
protected:
    struct Outcome {
        bool created = false;
        std::uint64_t acknowledged = 0;
        std::string error;
    };

    // Records the run in three parts, each committed by itself.
    Outcome recordInParts(const std::string& path) {
        RecorderOptions options;
        options.transaction = std::chrono::milliseconds(1000); // flush alone commits
        options.stall = std::chrono::milliseconds(100);
        Outcome outcome;
        auto recorder = SessionRecorder::create(path, options);
        if (!recorder) {
            outcome.error = recorder.error().message;
            return outcome;
        }
        outcome.created = true;
        SyntheticRun run(m_options);
        for (int part = 0; part < 3; ++part) {
            for (int step = 0; step < 10; ++step)
                (*recorder)->onEvents(run.nextStep());
            (void)(*recorder)->flush();
        }
        (*recorder)->onEnd();
        (void)(*recorder)->stop();
        outcome.acknowledged = (*recorder)->status().events;
        outcome.error = (*recorder)->status().error;
        return outcome;
    }

    void verify(const std::string& folder, const Outcome& outcome) {
        const std::string path = folder + "/run.kvatlas";
        if (!outcome.created) {
            EXPECT_FALSE(outcome.error.empty());
            EXPECT_TRUE(std::filesystem::is_empty(folder)) << "something of a recording that never began is left";
            return;
        }
        auto reader = SessionReader::open(path);
        ASSERT_TRUE(reader) << reader.error().message;
        EXPECT_GE((*reader)->info().events, outcome.acknowledged);
        std::size_t at = 0;
        for (std::size_t i = 0; i < (*reader)->chunks().size(); ++i) {
            const auto events = (*reader)->chunkEvents(i);
            ASSERT_TRUE(events);
            for (const trace::Event& event : **events)
                ASSERT_EQ(event, m_events.at(at++));
        }
        const bool complete = (*reader)->info().endedCleanly && at == m_events.size();
        EXPECT_TRUE(complete || !outcome.error.empty()) << "events are missing and nobody was told";
        reader->reset();
        const auto checked = checkSession(path);
        ASSERT_TRUE(checked);
        EXPECT_TRUE(checked->ok) << checked->damaged.at(0);
    }

    const SyntheticOptions m_options{.seed = 15, .steps = 30, .poolBlocks = 32, .maxSequences = 3};
    const std::vector<trace::Event> m_events = SyntheticRun::all(m_options);
};

TEST_F(FailingDisk, neverCostsAnAcknowledgedEvent) {
    FailingVfs disk;
    int operations = 0;
    {
        TemporaryFolder folder;
        disk.failAt(0, FailingVfs::How::Full, false);
        const Outcome outcome = recordInParts(folder.file("run.kvatlas"));
        operations = disk.operations();
        ASSERT_TRUE(outcome.created && outcome.error.empty()) << outcome.error;
    }
    ASSERT_GT(operations, 50);
    int stopped = 0, survived = 0;
    for (const auto how : {FailingVfs::How::Full, FailingVfs::How::ShortWrite, FailingVfs::How::InputOutput})
        for (int n = 1; n <= operations; n += how == FailingVfs::How::Full ? 1 : 2) {
            const bool forEver = n % 8 == static_cast<int>(how);
            SCOPED_TRACE("operation " + std::to_string(n) + " of " + std::to_string(operations));
            TemporaryFolder folder;
            disk.failAt(n, how, forEver);
            const Outcome outcome = recordInParts(folder.file("run.kvatlas"));
            disk.failAt(0, how, false);
            verify(folder.path(), outcome);
            ++(outcome.error.empty() ? survived : stopped);
        }
    std::printf("%d operations, failing in 3 ways: %d recordings went on, %d stopped with a sentence\n", operations,
                survived, stopped);
    EXPECT_GT(stopped, operations / 4);
    EXPECT_GT(survived, operations / 4);
}

} // namespace
} // namespace kvatlas::sessions

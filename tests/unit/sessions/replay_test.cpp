// SPDX-License-Identifier: Apache-2.0
#include "sessions/replay_source.h"

#include "core/state/state_store.h"
#include "sessions/reader.h"
#include "sessions/recording_source.h"
#include "tests/support/session_files.h"
#include "tests/support/synthetic_source.h"

#include <condition_variable>
#include <future>
#include <mutex>

namespace kvatlas::sessions {
namespace {

using namespace kvatlas::test;
using namespace std::chrono_literals;

// Folds what is delivered and remembers the hash after each step; waits for things to happen.
class Watcher final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> events) override {
        const std::lock_guard lock(m_mutex);
        for (const trace::Event& event : events) {
            if (const auto fits = m_state.apply(event); !fits && m_problem.empty())
                m_problem = fits.error().message;
            if (std::holds_alternative<trace::StepEnded>(event.body)) {
                m_hashes[event.step] = m_state.stateHash();
                m_lastStep = event.step;
            }
            ++m_events;
        }
        m_changed.notify_all();
    }
    void onKeyframe(Step, std::span<const std::byte> keyframe) override {
        const std::lock_guard lock(m_mutex);
        if (keyframe.empty())
            m_state = state::CacheState();
        else if (auto state = state::CacheState::decode(keyframe))
            m_state = std::move(*state);
        else
            m_problem = state.error().message;
        m_lastStep = m_state.step();
        ++m_keyframes;
        m_changed.notify_all();
    }
    void onEnd() override {
        const std::lock_guard lock(m_mutex);
        ++m_ends;
        m_changed.notify_all();
    }

    bool waitForStep(Step step) {
        return wait([&] { return m_lastStep == step && m_state.stepEnded(); });
    }
    bool waitForHash(std::uint64_t hash) {
        return wait([&] { return m_state.stateHash() == hash; });
    }
    bool waitForSteps(Step after) { // and the end of one of them
        return wait([&] { return m_state.step() > after && m_state.stepEnded(); });
    }
    bool waitForEnds(int ends) {
        return wait([&] { return m_ends >= ends; });
    }
    std::map<Step, std::uint64_t> hashes() { return locked(m_hashes); }
    std::uint64_t hash() {
        const std::lock_guard lock(m_mutex);
        return m_state.stateHash();
    }
    Step step() {
        const std::lock_guard lock(m_mutex);
        return m_state.step();
    }
    std::uint64_t events() { return locked(m_events); }
    int keyframes() { return locked(m_keyframes); }
    int ends() { return locked(m_ends); }
    std::string problem() { return locked(m_problem); }

private:
    template <class T> T locked(const T& value) {
        const std::lock_guard lock(m_mutex);
        return value;
    }
    template <class Done> bool wait(Done done) {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, 20s, done);
    }
    std::mutex m_mutex;
    std::condition_variable m_changed;
    state::CacheState m_state;
    std::map<Step, std::uint64_t> m_hashes;
    std::optional<Step> m_lastStep;
    std::uint64_t m_events = 0;
    int m_keyframes = 0, m_ends = 0;
    std::string m_problem;
};

class Replay : public ::testing::Test {
protected:
    std::unique_ptr<ReplaySource> open(bool paused) {
        auto source = ReplaySource::open(m_path, {.paused = paused});
        EXPECT_TRUE(source) << (source ? "" : source.error().message);
        return std::move(*source);
    }
    TemporaryFolder m_folder;
    const std::string m_path = m_folder.file("run.kvatlas");
};

TEST_F(Replay, playsEveryEventWithTheLiveHashes) {
    const SyntheticOptions options{.seed = 8, .steps = 500};
    record(m_path, options);
    const auto expected = SyntheticRun::all(options);
    const auto source = open(true);
    Watcher watcher;
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForStep(0));
    source->send(source::SetSpeed{0});
    source->send(source::Resume{});
    ASSERT_TRUE(watcher.waitForEnds(1));
    source->stop();
    EXPECT_EQ(watcher.hashes(), hashesOf(expected));
    EXPECT_EQ(watcher.events(), expected.size());
    EXPECT_EQ(watcher.keyframes(), 0);
    EXPECT_EQ(watcher.problem(), "");
}

TEST_F(Replay, keepsTheRecordedPaceUnlessToldOtherwise) {
    constexpr int kSteps = 40;
    record(m_path, {.seed = 8, .steps = kSteps});
    const auto events = SyntheticRun::all({.seed = 8, .steps = kSteps});
    const std::chrono::nanoseconds recorded(events.back().ns - events.front().ns);
    const auto source = open(true);
    Watcher watcher;
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForStep(0));
    source->send(source::SetSpeed{0});
    source->send(source::SetSpeed{}); // its own pace again
    const auto began = std::chrono::steady_clock::now();
    source->send(source::Resume{});
    ASSERT_TRUE(watcher.waitForEnds(1));
    EXPECT_GE(std::chrono::steady_clock::now() - began, recorded * 8 / 10); // slower is the machine's business
}

TEST_F(Replay, beginsPausedAtTheFirstStepAndStepsOneByOne) {
    record(m_path, {.steps = 30});
    const auto source = open(true);
    Watcher watcher;
    ASSERT_TRUE(source->start(watcher));
    EXPECT_FALSE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForStep(0));
    source->send(source::StepForward{1});
    ASSERT_TRUE(watcher.waitForStep(1));
    source->send(source::StepForward{5});
    ASSERT_TRUE(watcher.waitForStep(6));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(watcher.hashes().size(), 7u);
}

TEST_F(Replay, seeksToTheStateThatPlayingReaches) {
    const SyntheticOptions options{.seed = 13, .steps = 700};
    record(m_path, options);
    const auto hashes = hashesOf(SyntheticRun::all(options));
    const auto source = open(true);
    Watcher watcher;
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForStep(0));
    for (const Step step : {500u, 3u, 255u, 256u, 257u, 511u, 699u, 0u, 400u}) {
        source->send(source::Seek{step});
        ASSERT_TRUE(watcher.waitForStep(step)) << step;
        EXPECT_EQ(watcher.hash(), hashes.at(step)) << step;
        if (step == 699)
            continue;
        source->send(source::StepForward{1});
        ASSERT_TRUE(watcher.waitForStep(step + 1));
        EXPECT_EQ(watcher.hash(), hashes.at(step + 1)) << step;
    }
    EXPECT_EQ(watcher.problem(), "");
}

TEST_F(Replay, goesOnFromTheEndAfterASeekBack) {
    record(m_path, {.steps = 40});
    const auto source = open(false);
    Watcher watcher;
    source->send(source::SetSpeed{0});
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForEnds(1));
    source->send(source::Seek{10});
    ASSERT_TRUE(watcher.waitForStep(10));
    source->send(source::Resume{});
    ASSERT_TRUE(watcher.waitForEnds(2));
    EXPECT_TRUE(watcher.waitForStep(39));
    source->send(source::Resume{}); // at the end: again from the beginning
    ASSERT_TRUE(watcher.waitForEnds(3));
    EXPECT_EQ(watcher.keyframes(), 2);
    EXPECT_EQ(watcher.problem(), "");
}

TEST_F(Replay, playsAtTheRecordedPaceUnlessToldOtherwise) {
    record(m_path, {.steps = 400, .stepNs = 2'000'000});
    const auto source = open(false);
    Watcher watcher;
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForStep(50));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 95ms); // 50 steps of 2 ms, never earlier
    source->send(source::Pause{});
    source->send(source::SetSpeed{0});
    source->send(source::Resume{});
    EXPECT_TRUE(watcher.waitForEnds(1));
}

TEST_F(Replay, stopsWhilePlayingWithoutAnEnd) {
    record(m_path, {.steps = 400});
    Watcher watcher;
    {
        const auto source = open(false);
        ASSERT_TRUE(source->start(watcher));
        ASSERT_TRUE(watcher.waitForStep(3));
        source->stop();
        const auto seen = watcher.events();
        source->send(source::Resume{});
        std::this_thread::sleep_for(20ms);
        EXPECT_EQ(watcher.events(), seen);
        source->stop();
    }
    EXPECT_EQ(watcher.ends(), 0);
}

TEST_F(Replay, answersQuestionsFromTheFile) {
    const SyntheticOptions options{.seed = 6, .steps = 300};
    record(m_path, options);
    const auto source = open(true);
    EXPECT_EQ(source->info().title, "synthetic");
    EXPECT_EQ(source->info().location, std::filesystem::canonical(m_path));
    EXPECT_TRUE(source->info().capabilities.seek && source->info().capabilities.control);
    EXPECT_FALSE(source->info().capabilities.live || source->info().capabilities.submit);
    EXPECT_EQ(source->piece(7), SyntheticRun::piece(7));
    const auto ask = [&](source::Question question) {
        auto promise = std::make_shared<std::promise<source::Answer>>();
        source->ask(42, std::move(question),
                    [promise](source::Answer answer) { promise->set_value(std::move(answer)); });
        return promise->get_future().get();
    };
    const auto state = ask(source::StateAt{150});
    EXPECT_EQ(state.tag, 42u);
    EXPECT_EQ(std::get<source::StateAtAnswer>(state.body).step, 150u);
    EXPECT_EQ(std::get<source::HistoryAnswer>(ask(source::History{}).body).steps.size(), 300u);
    EXPECT_FALSE(std::get<source::RequestTextAnswer>(ask(source::RequestText{RequestId(1)}).body).promptTokens.empty());
}

TEST_F(Replay, leapsOverADamagedChunkWithTheNextKeyframe) {
    const SyntheticOptions options{.seed = 31, .steps = 2000, .poolBlocks = 64};
    record(m_path, options);
    const auto before = SessionReader::open(m_path);
    ASSERT_TRUE(before);
    ASSERT_GE((*before)->chunks().size(), 4u);
    const ChunkEntry broken = (*before)->chunks()[1];
    sql(m_path, "UPDATE chunks SET data = substr(data, 1, 100) || x'00' || substr(data, 102) WHERE id = " +
                    std::to_string(broken.id));
    sql(m_path, "UPDATE chunks SET data = CAST(data AS BLOB)");
    const auto hashes = hashesOf(SyntheticRun::all(options));
    const auto source = open(false);
    Watcher watcher;
    source->send(source::SetSpeed{0});
    ASSERT_TRUE(source->start(watcher));
    ASSERT_TRUE(watcher.waitForEnds(1));
    EXPECT_EQ(watcher.problem(), "");
    EXPECT_EQ(watcher.keyframes(), 1);
    const auto seen = watcher.hashes();
    EXPECT_GT(seen.size(), 1000u);
    EXPECT_LT(seen.size(), 2000u);
    for (const auto& [step, hash] : seen)
        EXPECT_EQ(hash, hashes.at(step)) << step;
    EXPECT_NE(source->info().recording.find("chunk 2"), std::string::npos) << source->info().recording;
}

// A step that cannot be read shows nothing, and never the state of another one; the next that can is whole again.
TEST_F(Replay, showsNothingAtAStepThatCannotBeRead) {
    const SyntheticOptions options{.seed = 31, .steps = 2000, .poolBlocks = 64};
    record(m_path, options);
    {
        const auto before = SessionReader::open(m_path);
        ASSERT_TRUE(before);
        sql(m_path, "UPDATE chunks SET data = CAST(substr(data, 1, 100) || x'00' || substr(data, 102) AS BLOB) "
                    "WHERE id = " +
                        std::to_string((*before)->chunks()[1].id));
    }
    const auto hashes = hashesOf(SyntheticRun::all(options));
    const auto reader = SessionReader::open(m_path);
    ASSERT_TRUE(reader);
    const Step good = (*reader)->chunks()[0].firstStep + 5;
    Step bad = (*reader)->chunks()[1].lastStep; // or one before, where a keyframe holds this one
    while (bad > good && (*reader)->stateAt(bad))
        --bad;
    ASSERT_GT(bad, good);
    const auto source = open(true);
    const std::string atOpening = source->info().recording;
    Watcher watcher;
    ASSERT_TRUE(source->start(watcher));
    source->send(source::Seek{good});
    ASSERT_TRUE(watcher.waitForStep(good));
    source->send(source::Seek{bad});
    ASSERT_TRUE(watcher.waitForHash(0));
    EXPECT_NE(source->info().recording, atOpening);
    source->send(source::Seek{good});
    ASSERT_TRUE(watcher.waitForStep(good));
    EXPECT_EQ(watcher.hash(), hashes.at(good));
    EXPECT_EQ(source->info().recording, atOpening);
    source->send(source::Seek{bad});
    ASSERT_TRUE(watcher.waitForHash(0));
    source->send(source::StepForward{1}); // onto firm ground
    ASSERT_TRUE(watcher.waitForSteps(bad));
    EXPECT_EQ(watcher.hash(), hashes.at(watcher.step()));
    const Step firm = watcher.step(); // read before the steps that change it
    source->send(source::StepForward{3});
    ASSERT_TRUE(watcher.waitForStep(firm + 3));
    EXPECT_EQ(watcher.hash(), hashes.at(watcher.step()));
    EXPECT_EQ(watcher.problem(), "");
}

// ---- a live run that is recorded

source::Answer askAndWait(source::EventSource& source, source::Question question) {
    auto promise = std::make_shared<std::promise<source::Answer>>();
    source.ask(1, std::move(question), [promise](source::Answer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future().get();
}

TEST(RecordedRun, deliversRecordsAndAnswersWhileItRuns) {
    TemporaryFolder folder;
    const SyntheticOptions options{.seed = 17, .steps = 300};
    const auto hashes = hashesOf(SyntheticRun::all(options));
    auto source =
        RecordingSource::create(std::make_shared<SyntheticSource>(options, true), {.path = folder.file("run.kvatlas")});
    ASSERT_TRUE(source) << source.error().message;
    Watcher watcher;
    ASSERT_TRUE((*source)->start(watcher));
    (*source)->send(source::StepForward{100});
    ASSERT_TRUE(watcher.waitForStep(99));
    for (const Step step : {0u, 50u, 99u}) { // the newest one too, at once
        const auto answer = askAndWait(**source, source::StateAt{step});
        ASSERT_TRUE(std::holds_alternative<source::StateAtAnswer>(answer.body));
        const auto& body = std::get<source::StateAtAnswer>(answer.body);
        ASSERT_EQ(body.step, step);
        state::CacheState state;
        for (const trace::Event& event : body.events)
            ASSERT_TRUE(state.apply(event));
        EXPECT_EQ(state.stateHash(), hashes.at(step));
    }
    EXPECT_EQ(std::get<source::HistoryAnswer>(askAndWait(**source, source::History{}).body).steps.size(), 100u);
    EXPECT_EQ((*source)->info().location, std::filesystem::canonical(folder.file("run.kvatlas")));
    EXPECT_EQ((*source)->info().recording, "");
    (*source)->send(source::Resume{});
    ASSERT_TRUE(watcher.waitForEnds(1));
    EXPECT_EQ(std::get<source::HistoryAnswer>(askAndWait(**source, source::History{}).body).steps.size(), 300u);
    (*source)->stop();
    EXPECT_EQ(watcher.hashes(), hashes);
    const auto reader = SessionReader::open(folder.file("run.kvatlas"));
    ASSERT_TRUE(reader);
    EXPECT_TRUE((*reader)->info().endedCleanly);
    EXPECT_EQ((*reader)->info().endReason, "run ended");
    EXPECT_FALSE(std::filesystem::exists(folder.file("run.kvatlas-wal")));
}

TEST(RecordedRun, tellsARunThatEndedFromOneThatWasStopped) {
    TemporaryFolder folder;
    auto source = RecordingSource::create(std::make_shared<SyntheticSource>(SyntheticOptions{.steps = 50}, true),
                                          {.path = folder.file("run.kvatlas")});
    ASSERT_TRUE(source);
    Watcher watcher;
    ASSERT_TRUE((*source)->start(watcher));
    (*source)->send(source::StepForward{10});
    ASSERT_TRUE(watcher.waitForStep(9));
    (*source)->stop();
    const auto reader = SessionReader::open(folder.file("run.kvatlas"));
    ASSERT_TRUE(reader);
    EXPECT_TRUE((*reader)->info().endedCleanly);
    EXPECT_EQ((*reader)->info().endReason, "recording stopped");
}

TEST(RecordedRun, keepsAnUnrecordedRunInATemporaryFileOnly) {
    TemporaryFolder folder;
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    {
        auto source = RecordingSource::create(std::make_shared<SyntheticSource>(SyntheticOptions{.steps = 50}), {});
        ASSERT_TRUE(source);
        Watcher watcher;
        ASSERT_TRUE((*source)->start(watcher));
        ASSERT_TRUE(watcher.waitForEnds(1));
        EXPECT_EQ((*source)->info().location, "");
        EXPECT_EQ(std::get<source::HistoryAnswer>(askAndWait(**source, source::History{}).body).steps.size(), 50u);
        EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
        (*source)->stop();
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    ::unsetenv("TMPDIR");
}

TEST(RecordedRun, goesOnWhenItsFileIsDeleted) {
    TemporaryFolder folder;
    const SyntheticOptions options{.steps = 200};
    auto source =
        RecordingSource::create(std::make_shared<SyntheticSource>(options, true), {.path = folder.file("run.kvatlas")});
    ASSERT_TRUE(source);
    Watcher watcher;
    ASSERT_TRUE((*source)->start(watcher));
    (*source)->send(source::StepForward{50});
    ASSERT_TRUE(watcher.waitForStep(49));
    ASSERT_TRUE(std::holds_alternative<source::HistoryAnswer>(askAndWait(**source, source::History{}).body));
    std::filesystem::remove(folder.file("run.kvatlas"));
    (*source)->send(source::Resume{});
    ASSERT_TRUE(watcher.waitForEnds(1));
    const auto lost = askAndWait(**source, source::StateAt{150});
    EXPECT_TRUE(std::holds_alternative<Error>(lost.body));
    EXPECT_NE((*source)->info().recording.find("deleted"), std::string::npos) << (*source)->info().recording;
    EXPECT_EQ(watcher.hashes(), hashesOf(SyntheticRun::all(options)));
}

TEST(RecordedRun, saysWhyItCannotRecord) {
    TemporaryFolder folder;
    record(folder.file("run.kvatlas"), {.steps = 3});
    EXPECT_FALSE(RecordingSource::create(std::make_shared<SyntheticSource>(SyntheticOptions{}),
                                         {.path = folder.file("run.kvatlas")}));
}

} // namespace
} // namespace kvatlas::sessions

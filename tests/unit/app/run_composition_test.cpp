// SPDX-License-Identifier: Apache-2.0
#include "app/run_composition.h"

#include "core/state/state_store.h"
#include "tests/support/tiny_llama.h"

#include <condition_variable>
#include <cstdlib>
#include <gtest/gtest.h>
#include <mutex>

namespace kvatlas::app {
namespace {

namespace fs = std::filesystem;

class Composition : public ::testing::Test {
protected:
    void SetUp() override {
        const auto resources = fs::path(KVATLAS_SOURCE_DIR) / "resources";
        ASSERT_EQ(setenv("KVATLAS_RESOURCES", resources.c_str(), 1), 0);
        std::string pattern = (fs::temp_directory_path() / "kvatlas-app-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        m_folder = pattern;
    }
    void TearDown() override { fs::remove_all(m_folder); }

    fs::path write(const std::string& name, std::string_view text) const {
        std::ofstream(m_folder / name, std::ios::binary) << text;
        return m_folder / name;
    }
    fs::path tinyModel() const {
        const auto bytes = testing::tinyLlama(3);
        return write("tiny.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }

    fs::path m_folder;
};

// Folds the stream and waits for so many requests to finish, or for its end.
class Watcher final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> events) override {
        store.onEvents(events);
        const std::lock_guard lock(m_mutex);
        for (const auto& event : events) {
            if (std::holds_alternative<trace::RequestFinished>(event.body)) {
                ++m_finished;
                m_stepEnded = false;
            } else if (std::holds_alternative<trace::StepEnded>(event.body)) {
                m_stepEnded = true;
            }
        }
        m_changed.notify_all();
    }
    void onKeyframe(Step step, std::span<const std::byte> keyframe) override { store.onKeyframe(step, keyframe); }
    void onEnd() override {
        store.onEnd();
        const std::lock_guard lock(m_mutex);
        m_ended = true;
        m_changed.notify_all();
    }
    // After the step in which the last of them finished.
    bool waitForFinished(int requests) {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, std::chrono::seconds(60),
                                  [&] { return m_finished >= requests && m_stepEnded; });
    }
    bool waitForEnd() {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, std::chrono::seconds(60), [&] { return m_ended; });
    }

    state::StateStore store;

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    int m_finished = 0;
    bool m_stepEnded = false, m_ended = false;
};

TEST_F(Composition, aLiveRunIsRecordedAndReplaysToTheSameState) {
    const auto backend = backendNamed("auto");
    ASSERT_TRUE(backend) << backend.error().message;
    const auto weights = loadWeights(tinyModel(), **backend);
    ASSERT_TRUE(weights) << weights.error().message;
    LiveRunOptions options;
    options.scenario =
        *workload::parseScenario(R"({"name": "Two", "requests": [{"prompt": "hello", "raw": true, "max_tokens": 7,
        "ignore_eos": true}, {"at": 3, "prompt": "the world", "raw": true, "max_tokens": 5, "ignore_eos": true}]})");
    options.threads = 1;
    options.record = m_folder / "a folder that is not there yet" / "run.kvatlas";
    options.paused = true;

    Watcher live;
    const auto source = openLiveRun(*weights, options);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_TRUE((*source)->info().capabilities.control);
    EXPECT_NE((*source)->info().location.find("run.kvatlas"), std::string::npos);
    ASSERT_TRUE((*source)->start(live));
    (*source)->send(source::Resume{});
    EXPECT_TRUE(live.waitForFinished(2));
    (*source)->stop();
    const auto liveState = live.store.snapshot();
    EXPECT_EQ(live.store.error(), "");
    EXPECT_EQ(liveState->decodeTokens + liveState->prefillTokens, 14u); // 1 + 3 prompt tokens, 6 + 4 fed back

    Watcher replayed;
    const auto replay = openReplay(options.record, false);
    ASSERT_TRUE(replay) << replay.error().message;
    EXPECT_TRUE((*replay)->info().capabilities.seek);
    ASSERT_TRUE((*replay)->start(replayed));
    (*replay)->send(source::SetSpeed{0});
    EXPECT_TRUE(replayed.waitForEnd());
    (*replay)->stop();
    EXPECT_EQ(replayed.store.error(), "");
    EXPECT_EQ(replayed.store.snapshot()->stateHash, liveState->stateHash);
    EXPECT_EQ(replayed.store.snapshot()->step, liveState->step);
    ASSERT_NE(replayed.store.snapshot()->run, nullptr);
    EXPECT_EQ(replayed.store.snapshot()->run->model.name, "tiny");
}

TEST_F(Composition, aFileThatIsThereIsNotRecordedOver) {
    const auto weights = loadWeights(tinyModel(), **backendNamed("auto"));
    ASSERT_TRUE(weights);
    LiveRunOptions options;
    options.record = write("taken.kvatlas", "something");
    const auto refused = openLiveRun(*weights, options);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("taken.kvatlas"), std::string::npos);
    EXPECT_EQ(fs::file_size(options.record), 9u);
}

TEST_F(Composition, aFileIsKnownByItsFirstBytes) {
    EXPECT_EQ(kindOfFile(tinyModel()), FileKind::Model);
    EXPECT_EQ(kindOfFile(write("renamed.bin", "GGUF....")), FileKind::Model);
    EXPECT_EQ(kindOfFile(write("x.bin", std::string_view("SQLite format 3\0....", 20))), FileKind::Session);
    EXPECT_EQ(kindOfFile(write("cut.kvatlas", "")), FileKind::Session);
    EXPECT_EQ(kindOfFile(write("s.json", R"({"requests": []})")), FileKind::Scenario);
    EXPECT_EQ(kindOfFile(write("t.json", R"({"layout": "paged"})")), FileKind::Strategy);
    EXPECT_EQ(kindOfFile(write("u.json", "no JSON")), FileKind::Unknown);
    EXPECT_EQ(kindOfFile(m_folder), FileKind::Unknown);
    EXPECT_EQ(kindOfFile(m_folder / "missing.gguf"), FileKind::Unknown);
}

TEST_F(Composition, aNewSessionFileHasAPlainNameThatIsNotTaken) {
    ASSERT_EQ(setenv("XDG_DATA_HOME", m_folder.c_str(), 1), 0);
    const auto first = newSessionFile("Four chats, one/system ../prompt");
    EXPECT_EQ(first.parent_path(), m_folder / "kvatlas" / "sessions");
    EXPECT_TRUE(first.filename().string().ends_with("Four-chats-one-system-..-prompt.kvatlas")) << first;
    EXPECT_TRUE(newSessionFile("日本").filename().string().ends_with(" run.kvatlas"));
    ASSERT_EQ(setenv("XDG_DATA_HOME", "relative/is/unset", 1), 0);
    EXPECT_TRUE(newSessionFile("a").is_absolute());
    unsetenv("XDG_DATA_HOME");
}

TEST_F(Composition, aScenarioBringsItsStrategy) {
    workload::Scenario scenario;
    EXPECT_EQ(*strategyOf(scenario), strategy::Strategy{});
    scenario.strategyPreset = "paged-f32";
    EXPECT_EQ(strategyOf(scenario)->kFormat, kernels::StorageFormat::F32);
    scenario.strategyJson = R"({"block_tokens": 3})";
    EXPECT_EQ(strategyOf(scenario)->blockTokens, 3u);
    scenario.strategyJson = R"({"block_tokens": 0})";
    EXPECT_FALSE(strategyOf(scenario));
}

} // namespace
} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// The main job without a display: the window runs a scenario, is closed in the middle, and its recording is sound.
#include "sessions/check.h"
#include "tests/e2e/cli/program.h"
#include "tests/support/default_model.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

namespace kvatlas::testing {

TEST(WindowRun, recordsTheScenarioAndFinishesTheFileWhenClosed) {
    ASSERT_TRUE(defaultModelExists()) << kDefaultModelMissing;
    const Folder folder;
    const auto call = [&](Words words) {
        return Call{.arguments = std::move(words),
                    .input = {},
                    .environment = {{"QT_QPA_PLATFORM", "offscreen"}, {"XDG_DATA_HOME", folder / "data"}},
                    .output = {}};
    };
    std::filesystem::path session;
    {
        Running window(call({"--model", defaultModelPath().string(), "--scenario", "four-chats", "--run"}));
        const std::filesystem::path sessions = folder / "data/kvatlas/sessions";
        for (int tries = 0; tries < 600 && session.empty(); ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            std::error_code error;
            for (const auto& entry : std::filesystem::directory_iterator(sessions, error))
                if (entry.path().extension() == ".kvatlas")
                    session = entry.path();
        }
        std::this_thread::sleep_for(std::chrono::seconds(2));
        window.signal(SIGTERM);
        EXPECT_EQ(window.wait().status, 128 + SIGTERM);
    }
    ASSERT_FALSE(session.empty());
    const auto report = sessions::checkSession(session.string());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->ok);
    EXPECT_TRUE(report->endedCleanly);
    EXPECT_GT(report->steps, 0u);
    // And it is replayed without the model.
    const std::string picture = folder / "map.png";
    EXPECT_EQ(runCli(call({"--export", "memory-map", "--step", "0", "--out", picture, session.string()})).status, 0);
    EXPECT_TRUE(std::filesystem::exists(picture));
}

} // namespace kvatlas::testing

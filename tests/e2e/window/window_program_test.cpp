// SPDX-License-Identifier: Apache-2.0
// The window's program as a user starts it, without a display and without a model.
#include "tests/e2e/cli/program.h"
#include "tests/support/session_files.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <thread>

namespace kvatlas::testing {

namespace {

const std::string kSample = KVATLAS_SOURCE_DIR "/sessions/samples/synthetic.kvatlas";

// Nothing of the machine's: no display, no model, no files of the user.
Call without(const Folder& folder, Words arguments) {
    return Call{.arguments = std::move(arguments),
                .input = {},
                .environment = {{"DISPLAY", ""},
                                {"WAYLAND_DISPLAY", ""},
                                {"HOME", folder / ""},
                                {"XDG_CACHE_HOME", folder / "cache"},
                                {"XDG_DATA_HOME", folder / "data"}},
                .output = {}};
}

std::string contentOf(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST(WindowProgram, paintsEveryViewOfASessionWithoutADisplay) {
    const Folder folder;
    for (const char* view : {"memory-map", "block-tables", "memory-over-time", "requests", "window"}) {
        const std::string png = folder / (std::string(view) + ".png");
        const Outcome outcome = runCli(without(folder, {"--export", view, "--step", "30", "--out", png, kSample}));
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(contentOf(png).substr(1, 3), "PNG");
    }
    const std::string svg = folder / "map.svg";
    ASSERT_EQ(runCli(without(folder, {"--export", "memory-map", "--step", "30", "--theme", "dark", "--size", "900x600",
                                      "--out", svg, kSample}))
                  .status,
              0);
    const std::string text = contentOf(svg);
    EXPECT_NE(text.find("step 30"), std::string::npos);
    EXPECT_NE(text.find("of these part filled"), std::string::npos);
    EXPECT_NE(text.find("width=\"238.125mm\""), std::string::npos); // 900 pixels at 96 dpi
}

TEST(WindowProgram, saysWhatIsWrongWithItsWords) {
    const Folder folder;
    const auto status = [&](Words words) {
        const Outcome outcome = runCli(without(folder, std::move(words)));
        const std::size_t own = outcome.err.find("kvatlas: "); // Qt may say something of its own before
        EXPECT_NE(own, std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.err.find("kvatlas: ", own + 1), std::string::npos) << outcome.err;
        return outcome.status;
    };
    EXPECT_EQ(status({"--bogus"}), 2);
    EXPECT_EQ(status({"--theme", "pink"}), 2);
    EXPECT_EQ(status({"--size", "9"}), 2);
    EXPECT_EQ(status({"--export", "sunrise", "--out", folder / "a.png", kSample}), 2);
    EXPECT_EQ(status({"--export", "requests", kSample}), 2);
    EXPECT_EQ(status({"--export", "requests", "--out", folder / "a.gif", kSample}), 2);
    EXPECT_EQ(status({"--export", "requests", "--step", "99999999", "--out", folder / "a.png", kSample}), 2);
    EXPECT_EQ(status({"--export", "requests", "--out", folder / "no/such/folder/a.png", kSample}), 1);
    EXPECT_EQ(status({"--export", "requests", "--out", folder / "a.png", folder.write("a.kvatlas", "not a session")}),
              3);
    EXPECT_EQ(status({"--export", "requests", "--scenario", "four-chats", "--out", folder / "a.png", kSample}), 2);
    EXPECT_EQ(status({"--export", "requests", "--step", "4294967296", "--out", folder / "a.png", kSample}), 2);
    EXPECT_EQ(status({"--scenario", folder.write("s.json", R"({"requests": 3})")}), 3);
    EXPECT_EQ(status({"--strategy", folder.write("t.json", R"({"layuot": "paged"})")}), 3);
    EXPECT_NE(runCli(Words{"--help"}).out.find("Usage: kvatlas "), std::string::npos);
    EXPECT_NE(runCli(Words{"--version"}).out.find("kvatlas "), std::string::npos);
}

TEST(WindowProgram, withoutADisplayThereIsASentence) {
    const Folder folder;
    Call call = without(folder, {kSample});
    call.environment["QT_QPA_PLATFORM"] = "xcb";
    const Outcome outcome = runCli(call);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("kvatlas: The window finds no display"), std::string::npos) << outcome.err;
}

// A session that ended before its first step, and one whose events are damaged: said at once, not after a minute.
TEST(WindowProgram, saysWhichPictureCannotBeHad) {
    const Folder folder;
    const auto events = test::SyntheticRun::all({.seed = 3, .steps = 200});
    const std::string none = folder / "none.kvatlas", half = folder / "half.kvatlas";
    {
        auto recorder = sessions::SessionRecorder::create(none);
        ASSERT_TRUE(recorder);
        (*recorder)->onEvents(std::span(events).first(1));
    }
    {
        auto recorder = sessions::SessionRecorder::create(half);
        ASSERT_TRUE(recorder);
        (*recorder)->onEvents(events);
    }
    test::sql(half, "UPDATE chunks SET data = zeroblob(length(data)); "
                    "DELETE FROM keyframes WHERE step > 100");
    const auto paint = [&](const std::string& file, Words more) {
        Words words{"--export", "memory-map", "--out", folder / "p.png", file};
        words.insert(words.end(), more.begin(), more.end());
        return runCli(without(folder, words));
    };
    const auto begin = std::chrono::steady_clock::now();
    const Outcome empty = paint(none, {});
    EXPECT_EQ(empty.status, 3) << empty.err;
    EXPECT_NE(empty.err.find("holds no step"), std::string::npos) << empty.err;
    const Outcome damaged = paint(half, {"--step", "199"});
    EXPECT_EQ(damaged.status, 3) << damaged.err;
    EXPECT_NE(damaged.err.find("step 199 cannot be painted"), std::string::npos) << damaged.err;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40)); // its patience is a minute
}

TEST(WindowProgram, leavesOnASignalWithItsStatus) {
    const Folder folder;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        Call call = without(folder, {kSample});
        call.environment["QT_QPA_PLATFORM"] = "offscreen";
        Running window(call);
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        const auto begin = std::chrono::steady_clock::now();
        window.signal(signal);
        const Outcome outcome = window.wait();
        EXPECT_EQ(outcome.status, 128 + signal) << outcome.err;
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)); // not by being killed
    }
}

} // namespace kvatlas::testing

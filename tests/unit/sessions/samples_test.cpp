// SPDX-License-Identifier: Apache-2.0
// The sessions that ship must open and replay to the same states for ever, whatever later versions of KVAtlas do.
#include "core/state/cache_state.h"
#include "sessions/check.h"
#include "tests/support/golden.h"
#include "tests/support/session_files.h"

#include <fstream>
#include <gtest/gtest.h>

namespace kvatlas::sessions {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> samples() {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(KVATLAS_SOURCE_DIR "/sessions/samples"))
        if (entry.path().extension() == ".kvatlas")
            found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

json goldenBeside(std::filesystem::path sample) {
    sample.replace_extension(".golden.json");
    std::ifstream in(sample);
    EXPECT_TRUE(in) << sample << " is missing: make it once with make_golden";
    return json::parse(in, nullptr, false);
}

TEST(Samples, areThere) {
    EXPECT_FALSE(samples().empty());
}

TEST(Samples, replayToTheirGoldenStatesForEver) {
    for (const auto& sample : samples()) {
        SCOPED_TRACE(sample);
        const std::string before = test::bytesOf(sample);
        const auto folded = test::goldenOf(sample);
        ASSERT_TRUE(folded) << folded.error().message;
        EXPECT_EQ(json(*folded), goldenBeside(sample));
        EXPECT_EQ(test::bytesOf(sample), before);
    }
}

TEST(Samples, seekToTheirGoldenStates) {
    for (const auto& sample : samples()) {
        SCOPED_TRACE(sample);
        const json golden = goldenBeside(sample);
        auto reader = SessionReader::open(sample);
        ASSERT_TRUE(reader) << reader.error().message;
        auto moments = golden["keyframes"];
        moments.push_back({{"step", golden["last_step"]}, {"state_hash", golden["state_hash"]}});
        for (const json& moment : moments) {
            const auto answer = (*reader)->stateAt(moment["step"]);
            ASSERT_TRUE(answer) << answer.error().message;
            auto state = answer->keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                                  : state::CacheState::decode(answer->keyframe);
            ASSERT_TRUE(state);
            for (const trace::Event& event : answer->events)
                ASSERT_TRUE(state->apply(event));
            EXPECT_EQ(fmt::format("{:016x}", state->stateHash()), moment["state_hash"]);
        }
    }
}

TEST(Samples, areSoundAndFinished) {
    for (const auto& sample : samples()) {
        const auto checked = checkSession(sample);
        ASSERT_TRUE(checked) << checked.error().message;
        EXPECT_TRUE(checked->ok) << sample << ": " << checked->damaged.at(0);
        EXPECT_TRUE(checked->endedCleanly) << sample;
        EXPECT_LT(std::filesystem::file_size(sample), 2u << 20) << sample << " is too large for the repository";
    }
}

} // namespace
} // namespace kvatlas::sessions

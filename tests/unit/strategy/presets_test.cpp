// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/presets.h"

#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace kvatlas::strategy {
namespace {

class Presets : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "kvatlas-presets-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        m_folder = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }
    void write(const std::string& name, const std::string& text) { std::ofstream(m_folder / name) << text; }

    std::filesystem::path m_folder;
};

TEST_F(Presets, areSortedByIdAndNothingElseIsRead) {
    write("b.json", R"({"block_tokens": 4})");
    write("a.json", "{}");
    write("notes.txt", "not JSON");
    const auto presets = loadPresets(m_folder);
    ASSERT_TRUE(presets) << presets.error().message;
    ASSERT_EQ(presets->size(), 2u);
    EXPECT_EQ((*presets)[0].id, "a");
    EXPECT_EQ((*presets)[1].strategy.blockTokens, 4u);
}

TEST_F(Presets, aBadFileIsNamed) {
    write("bad.json", R"({"layout": 3})");
    const auto presets = loadPresets(m_folder);
    ASSERT_FALSE(presets);
    EXPECT_NE(presets.error().message.find("bad.json"), std::string::npos);
}

TEST_F(Presets, aNameOrAPathIsFound) {
    write("small.json", R"({"pool_blocks": 3})");
    EXPECT_EQ(loadStrategy("small", m_folder)->poolBlocks, 3u);
    EXPECT_EQ(loadStrategy((m_folder / "small.json").string(), "no/such/folder")->poolBlocks, 3u);
}

TEST_F(Presets, anUnknownNameBringsTheNearest) {
    write("small-pool.json", "{}");
    const auto missing = loadStrategy("smal-pool", m_folder);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::Usage);
    EXPECT_NE(missing.error().message.find("did you mean \"small-pool\"?"), std::string::npos);
    const auto noFile = loadStrategy("no/such/file.json", m_folder);
    ASSERT_FALSE(noFile);
    EXPECT_EQ(noFile.error().kind, ErrorKind::Refused);
    EXPECT_FALSE(loadPresets(m_folder / "none"));
}

// The presets that ship.
TEST(ShippedPresets, allParseAndTheFirstChoiceIsThePlainOne) {
    const auto presets = loadPresets(std::filesystem::path(KVATLAS_SOURCE_DIR) / "resources" / "strategies");
    ASSERT_TRUE(presets) << presets.error().message;
    EXPECT_GE(presets->size(), 5u);
    for (const auto& preset : *presets)
        EXPECT_FALSE(preset.strategy.name.empty()) << preset.id;
    auto plain = *loadStrategy("paged-f16", std::filesystem::path(KVATLAS_SOURCE_DIR) / "resources" / "strategies");
    plain.name.clear();
    EXPECT_EQ(plain, Strategy{});
}

} // namespace
} // namespace kvatlas::strategy

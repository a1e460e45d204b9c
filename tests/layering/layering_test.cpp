// SPDX-License-Identifier: Apache-2.0
#include "tests/layering/layering.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace kvatlas::layering {
namespace {

namespace fs = std::filesystem;

// Everything in the repository except what is built and what git keeps.
const Tree& repository() {
    static const Tree tree = [] {
        Tree files;
        const fs::path root = KVATLAS_SOURCE_DIR;
        for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator();
             ++entry) {
            const auto relative = entry->path().lexically_relative(root).generic_string();
            if (relative == "build" || relative == ".git") {
                entry.disable_recursion_pending();
                continue;
            }
            if (!entry->is_regular_file())
                continue;
            std::ifstream stream(entry->path(), std::ios::binary);
            files[relative] = std::string(std::istreambuf_iterator<char>(stream), {});
        }
        return files;
    }();
    return tree;
}

TEST(Layering, readsTheWholeTree) {
    EXPECT_TRUE(repository().contains("core/base/ids.h"));
    EXPECT_TRUE(repository().contains("kernels/kernels.h"));
    EXPECT_TRUE(repository().contains("tests/layering/layering_test.cpp"));
}

TEST(Layering, everyIncludeFollowsTheTable) {
    const auto found = checkIncludes(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

TEST(Layering, everyNameSaysWhatItHolds) {
    const auto found = checkNames(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

TEST(Layering, everyHeaderGuardsItself) {
    const auto found = checkGuards(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

TEST(Layering, everySourceStatesItsLicence) {
    const auto found = checkLicences(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

TEST(Layering, noFileNamesOneMachine) {
    const auto found = checkMachinePaths(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

TEST(Layering, everyFolderSaysWhatItIsFor) {
    const auto found = checkReadmes(repository());
    EXPECT_TRUE(found.empty()) << describe(found);
}

// The rules themselves, on small trees.

const std::string kSpdx = "// SPDX-License-Identifier: Apache-2.0\n";

TEST(LayeringRules, forbiddenEdgeIsReportedWithFileLineAndRule) {
    const Tree tree = {{"core/trace/event.h", kSpdx},
                       {"core/base/ids.h", kSpdx + "\n#include \"core/trace/event.h\"\n"}};
    const auto found = checkIncludes(tree);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].file, "core/base/ids.h");
    EXPECT_EQ(found[0].line, 3);
    EXPECT_NE(found[0].rule.find("core/base must not include core/trace"), std::string::npos) << found[0].rule;
}

TEST(LayeringRules, allowedEdgePasses) {
    const Tree tree = {{"core/base/ids.h", kSpdx},
                       {"core/trace/event.h", kSpdx + "#include \"core/base/ids.h\"\n#include <vector>\n"},
                       {"app/cli/main.cpp", kSpdx + "#include \"core/trace/event.h\"\n"}};
    EXPECT_EQ(describe(checkIncludes(tree)), "");
}

TEST(LayeringRules, modelSeesShapesAndNothingElseOfKernels) {
    Tree tree = {{"kernels/shapes.h", kSpdx},
                 {"kernels/kernels.h", kSpdx},
                 {"core/model/weights.h", kSpdx + "#include \"kernels/shapes.h\"\n"}};
    EXPECT_EQ(describe(checkIncludes(tree)), "");
    tree["core/model/weights.h"] += "#include \"kernels/kernels.h\"\n";
    const auto found = checkIncludes(tree);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].line, 3);
}

TEST(LayeringRules, qtStaysInTheWindow) {
    const Tree tree = {{"core/state/a.h", kSpdx + "#include <QString>\n"},
                       {"sessions/a.h", kSpdx + "#include <QtCore/qglobal.h>\n"},
                       {"app/cli/main.cpp", kSpdx + "#include <QtWidgets/QWidget>\n"},
                       {"ui/a.h", kSpdx + "#include <QWidget>\n"},
                       {"app/window/main.cpp", kSpdx + "#include <QApplication>\n"}};
    const auto found = checkIncludes(tree);
    ASSERT_EQ(found.size(), 3u) << describe(found);
    EXPECT_EQ(found[0].file, "app/cli/main.cpp");
    EXPECT_EQ(found[1].file, "core/state/a.h");
    EXPECT_EQ(found[2].file, "sessions/a.h");
}

TEST(LayeringRules, libraryIsIncludedByItsOwnerOnly) {
    const Tree tree = {{"sessions/a.cpp", kSpdx + "#include <sqlite3.h>\n"},
                       {"ui/a.cpp", kSpdx + "#include <sqlite3.h>\n"},
                       {"core/engine/a.cpp", kSpdx + "#include <hwy/highway.h>\n"}};
    const auto found = checkIncludes(tree);
    ASSERT_EQ(found.size(), 2u) << describe(found);
    EXPECT_EQ(found[0].file, "core/engine/a.cpp");
    EXPECT_EQ(found[1].file, "ui/a.cpp");
}

TEST(LayeringRules, includeIsWrittenFromTheRoot) {
    const Tree tree = {{"core/base/ids.h", kSpdx},
                       {"core/base/hash.h", kSpdx + "#include \"ids.h\"\n"},
                       {"tests/support/a.h", kSpdx},
                       {"core/base/clock.h", kSpdx + "#include \"tests/support/a.h\"\n"},
                       {"core/odd/a.h", kSpdx}};
    EXPECT_EQ(checkIncludes(tree).size(), 3u) << describe(checkIncludes(tree));
}

TEST(LayeringRules, vagueNameAndOtherCaseAreReported) {
    const Tree tree = {{"core/utils/a.h", kSpdx},
                       {"core/cache/block_manager.h", kSpdx},
                       {"ui/MemoryMap.cpp", kSpdx},
                       {"ui/memory_map.cpp", kSpdx},
                       {".github/workflows/ci.yml", ""}};
    EXPECT_EQ(checkNames(tree).size(), 4u) << describe(checkNames(tree));
}

TEST(LayeringRules, headerWithoutGuardIsReported) {
    const Tree tree = {{"core/base/a.h", kSpdx + "#pragma once\n"},
                       {"core/base/b.h", kSpdx + "#include <vector>\n"},
                       {"kernels/cpu/c-inl.h", kSpdx + "namespace HWY_NAMESPACE {}\n"}};
    const auto found = checkGuards(tree);
    ASSERT_EQ(found.size(), 1u) << describe(found);
    EXPECT_EQ(found[0].file, "core/base/b.h");
}

TEST(LayeringRules, missingLicenceLineIsReported) {
    const Tree tree = {{"core/base/a.h", "#pragma once\n"},
                       {"core/base/b.h", kSpdx},
                       {"scripts/x", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"},
                       {"scripts/y", "#!/bin/sh\necho\n"},
                       {"core/CMakeLists.txt", "add_subdirectory(base)\n"},
                       {"README.md", "# KVAtlas\n"}};
    EXPECT_EQ(checkLicences(tree).size(), 3u) << describe(checkLicences(tree));
}

TEST(LayeringRules, pathOfOneMachineIsReportedWithItsLine) {
    const Tree tree = {{"README.md", std::string("a\nb /wo") + "rk/main\n"}, {"LICENSE", "a\n"}};
    const auto found = checkMachinePaths(tree);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].line, 2);
}

TEST(LayeringRules, folderWithoutReadmeOrWithALongOneIsReported) {
    std::string longText;
    for (int line = 0; line < 41; ++line)
        longText += "line\n";
    const Tree tree = {{"core/base/a.h", kSpdx},
                       {"core/trace/a.h", kSpdx},
                       {"core/trace/README.md", longText},
                       {"ui/a.h", kSpdx},
                       {"ui/README.md", "# ui\n"}};
    const auto found = checkReadmes(tree);
    ASSERT_EQ(found.size(), 2u) << describe(found);
    EXPECT_EQ(found[0].file, "core/base");
    EXPECT_EQ(found[1].file, "core/trace/README.md");
}

} // namespace
} // namespace kvatlas::layering

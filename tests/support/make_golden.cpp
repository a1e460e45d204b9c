// SPDX-License-Identifier: Apache-2.0
// make_golden SESSION.kvatlas: writes SESSION.golden.json beside it, once, when a sample is added.
// make_golden --synthetic SESSION.kvatlas: records a small synthetic run there first.
#include "sessions/recorder.h"
#include "tests/support/golden.h"
#include "tests/support/synthetic_run.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

bool recordSynthetic(const std::string& path) {
    using namespace kvatlas;
    sessions::RecorderOptions options;
    options.piece = test::SyntheticRun::piece;
    auto recorder = sessions::SessionRecorder::create(path, options);
    if (!recorder) {
        std::fprintf(stderr, "%s\n", recorder.error().message.c_str());
        return false;
    }
    test::SyntheticRun run({.seed = 20,
                            .steps = 300,
                            .poolBlocks = 64,
                            .maxSequences = 4,
                            .maxPromptTokens = 40,
                            .arrivalsPerStep = 0.1,
                            .samples = false});
    while (!run.done())
        (*recorder)->onEvents(run.nextStep());
    (*recorder)->onEnd();
    return (*recorder)->stop().has_value();
}

} // namespace

int main(int argc, char** argv) {
    const bool synthetic = argc == 3 && std::string_view(argv[1]) == "--synthetic";
    if (argc != 2 && !synthetic) {
        std::fprintf(stderr, "usage: make_golden [--synthetic] SESSION.kvatlas\n");
        return 2;
    }
    const std::filesystem::path session = argv[argc - 1];
    if (synthetic && !recordSynthetic(session.string()))
        return 1;
    const auto golden = kvatlas::test::goldenOf(session.string());
    if (!golden) {
        std::fprintf(stderr, "%s\n", golden.error().message.c_str());
        return 1;
    }
    auto target = session;
    target.replace_extension(".golden.json");
    if (std::filesystem::exists(target)) {
        std::fprintf(stderr, "'%s' exists: a golden record is never made anew.\n", target.c_str());
        return 1;
    }
    std::ofstream(target) << golden->dump(2) << "\n";
    return 0;
}

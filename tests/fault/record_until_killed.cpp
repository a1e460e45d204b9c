// SPDX-License-Identifier: Apache-2.0
// Records one synthetic session after the other into a folder until it is killed, and says through shared memory what
// has been acknowledged. kill_test runs it.
#include "core/base/process_guards.h"
#include "sessions/recorder.h"
#include "tests/fault/acknowledged.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

int main(int argc, char** argv) {
    using namespace kvatlas;
    if (argc != 3)
        return 2;
    const std::string folder = argv[1];
    const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
    guardFileSignals();
    const int file = ::open((folder + "/acknowledged").c_str(), O_RDWR);
    auto* shared = static_cast<test::Acknowledged*>(
        ::mmap(nullptr, sizeof(test::Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (file < 0 || shared == MAP_FAILED)
        return 3;
    for (std::size_t run = 0; run < test::Acknowledged::kRuns; ++run) {
        test::SyntheticRun events(test::killedRun(seed, run));
        sessions::RecorderOptions options;
        options.piece = test::SyntheticRun::piece;
        options.transaction = std::chrono::milliseconds(1 + run % 3 * 4);
        auto recorder = sessions::SessionRecorder::create(test::killedFile(folder, run), options);
        if (!recorder) {
            std::fprintf(stderr, "%s\n", recorder.error().message.c_str());
            return 4;
        }
        while (!events.done()) {
            (*recorder)->onEvents(events.nextStep());
            shared->runs[run].events = (*recorder)->status().events;
            std::this_thread::sleep_for(std::chrono::microseconds(100)); // long enough to be killed under way
        }
        (*recorder)->onEnd();
        if (!(*recorder)->stop())
            return 5;
        shared->runs[run].events = (*recorder)->status().events;
        shared->runs[run].ended = 1;
    }
    ::pause();
}

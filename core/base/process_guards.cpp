// SPDX-License-Identifier: Apache-2.0
#include "core/base/process_guards.h"

#include <csignal>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace kvatlas {

namespace {

void onBusError(int signal, siginfo_t* info, void*) {
    if (info->si_code != BUS_ADRERR) { // no file: a fault of the program or the machine
        std::signal(signal, SIG_DFL);
        std::raise(signal);
        return;
    }
    constexpr std::string_view sentence =
        "kvatlas: a file was cut short while it was being read (a model that is being replaced, or a disk that went "
        "away); what was recorded is kept. Run again with the whole file.\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
    ::_exit(kExitFileCutShort);
}

} // namespace

void guardFileSignals() {
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    struct sigaction action {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
}

void guardStandardFiles() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(descriptor, F_GETFD) < 0) // the lowest free one is taken, and those below are open
            [[maybe_unused]]
            const int held = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

} // namespace kvatlas

// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interruption.h"

#include "app/cli/output.h"

namespace kvatlas::app {

namespace {
volatile std::sig_atomic_t notedSignal = 0;
void note(int signal) {
    notedSignal = signal;
}
} // namespace

Interruption::Interruption() {
    notedSignal = 0;
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESETHAND); // the second one is not ours
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i)
        sigaction(kSignals[i], &action, &m_before[i]);
}

Interruption::~Interruption() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
        sigaction(kSignals[i], &m_before[i], nullptr);
}

bool Interruption::wanted() const {
    return notedSignal != 0;
}

int Interruption::exitStatus() const {
    switch (notedSignal) {
    case SIGHUP:
        return kExitHungUp;
    case SIGINT:
        return kExitInterrupted;
    case SIGTERM:
        return kExitTerminated;
    default:
        return kExitOk;
    }
}

} // namespace kvatlas::app

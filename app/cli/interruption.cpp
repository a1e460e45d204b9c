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
    sigaction(SIGINT, &action, &m_beforeInt);
    sigaction(SIGTERM, &action, &m_beforeTerm);
}

Interruption::~Interruption() {
    sigaction(SIGINT, &m_beforeInt, nullptr);
    sigaction(SIGTERM, &m_beforeTerm, nullptr);
}

bool Interruption::wanted() const {
    return notedSignal != 0;
}

int Interruption::exitStatus() const {
    return notedSignal == SIGINT ? kExitInterrupted : notedSignal == SIGTERM ? kExitTerminated : kExitOk;
}

} // namespace kvatlas::app

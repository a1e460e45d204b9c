// SPDX-License-Identifier: Apache-2.0
// The machine that this program runs on, as the operating system and a container's limits describe it. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace kvatlas::app {

struct Machine {
    std::string cpu;    // "AMD EPYC 7B13", or the architecture where the system does not name it
    std::string system; // "Linux 6.1.0 x86_64"
    unsigned cores = 1; // that this process may use: affinity and the container's quota
    std::uint64_t memoryBytes = 0;
    std::uint64_t freeMemoryBytes = 0; // without swapping, within the container's limit; 0 when not known
};

Machine readMachine();

// One line for a session file: cpu, cores, memory, system.
std::string describe(const Machine& machine);

// Threads for a run unless told otherwise: all cores, or all but one when a window needs its own.
unsigned defaultThreads(const Machine& machine, bool withWindow);

} // namespace kvatlas::app

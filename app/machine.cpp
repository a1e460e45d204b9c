// SPDX-License-Identifier: Apache-2.0
#include "app/machine.h"

#include "core/base/counted.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sched.h>
#include <string_view>
#include <sys/utsname.h>

namespace kvatlas::app {

namespace {

std::optional<std::uint64_t> numberIn(std::string_view text) {
    const auto begin = text.find_first_of("0123456789");
    if (begin == std::string_view::npos)
        return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::string firstLine(const char* file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

// "Name: value" lines of /proc: the value of the first line that begins with the name.
std::string procValue(const char* file, std::string_view name) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        if (!std::string_view(line).starts_with(name))
            continue;
        const auto colon = line.find(':');
        if (colon == std::string::npos)
            continue;
        const auto value = line.find_first_not_of(" \t", colon + 1);
        return value == std::string::npos ? "" : line.substr(value);
    }
    return "";
}

unsigned affinityCores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

// cgroup v2: "200000 100000" is two cores, "max 100000" is no limit.
unsigned quotaCores(unsigned cores) {
    const std::string line = firstLine("/sys/fs/cgroup/cpu.max");
    const auto space = line.find(' ');
    if (line.empty() || line.starts_with("max") || space == std::string::npos)
        return cores;
    const auto quota = numberIn(line.substr(0, space)), period = numberIn(line.substr(space));
    if (!quota || !period || *period == 0)
        return cores;
    return static_cast<unsigned>(std::clamp<std::uint64_t>((*quota + *period - 1) / *period, 1, cores));
}

} // namespace

Machine readMachine() {
    Machine machine;
    utsname name{};
    if (uname(&name) == 0)
        machine.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
    machine.cpu = procValue("/proc/cpuinfo", "model name");
    if (machine.cpu.empty())
        machine.cpu = name.machine;
    machine.cores = quotaCores(affinityCores());
    constexpr std::uint64_t kKiB = 1024;
    machine.memoryBytes = numberIn(procValue("/proc/meminfo", "MemTotal")).value_or(0) * kKiB;
    machine.freeMemoryBytes = numberIn(procValue("/proc/meminfo", "MemAvailable")).value_or(0) * kKiB;
    if (const auto limit = numberIn(firstLine("/sys/fs/cgroup/memory.max"))) {
        const auto used = numberIn(firstLine("/sys/fs/cgroup/memory.current")).value_or(0);
        machine.memoryBytes = std::min(machine.memoryBytes, *limit);
        machine.freeMemoryBytes = std::min(machine.freeMemoryBytes, *limit > used ? *limit - used : 0);
    }
    return machine;
}

std::string describe(const Machine& machine) {
    return fmt::format("{}, {}, {:.1f} GiB, {}", machine.cpu, counted(machine.cores, "core"),
                       static_cast<double>(machine.memoryBytes) / (1u << 30), machine.system);
}

unsigned defaultThreads(const Machine& machine, bool withWindow) {
    return withWindow && machine.cores > 1 ? machine.cores - 1 : machine.cores;
}

} // namespace kvatlas::app

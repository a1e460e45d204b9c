// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/machine.h"
#include "core/base/counted.h"
#include "kernels/cpu/cpu.h"

#include <CLI/CLI.hpp>

namespace kvatlas::app {

namespace {

Json cpuJson(const Machine& machine) {
    Json targets = Json::array();
    for (const auto target : kernels::cpuTargets())
        targets.push_back(target);
    const char* refusal = kernels::cpuRefusal();
    return {{"backend", "cpu"},
            {"name", machine.cpu},
            {"usable", refusal == nullptr},
            {"reason", refusal == nullptr ? Json(nullptr) : Json(refusal)},
            {"targets", targets},
            {"cores", machine.cores},
            {"default_threads", defaultThreads(machine, false)},
            {"memory_bytes", machine.memoryBytes},
            {"free_memory_bytes", machine.freeMemoryBytes}};
}

int listDevices(bool json) {
    const Machine machine = readMachine();
    if (json) {
        writeJson(
            {{"devices",
              {cpuJson(machine), {{"backend", "reference"}, {"name", machine.cpu}, {"usable", true}, {"cores", 1}}}},
             {"auto", kernels::cpuRefusal() == nullptr ? "cpu" : "reference"},
             {"cuda", false},
             {"system", machine.system}});
        return kExitOk;
    }
    std::string targets;
    for (const auto target : kernels::cpuTargets())
        targets += (targets.empty() ? "" : ", ") + std::string(target);
    const char* refusal = kernels::cpuRefusal();
    writeData(
        listText({{"cpu", machine.cpu},
                  {"", refusal != nullptr ? refusal : fmt::format("instruction sets: {} (the first is used)", targets)},
                  {"", fmt::format("{}, {} of memory, {} free", counted(machine.cores, "core"),
                                   bytesText(static_cast<double>(machine.memoryBytes)),
                                   bytesText(static_cast<double>(machine.freeMemoryBytes)))},
                  {"reference", "the same processor, slowly and in double precision, to check the others"},
                  {"cuda", "this version is built without CUDA"}}));
    return kExitOk;
}

} // namespace

void addDevices(CLI::App& app, int& status) {
    auto json = std::make_shared<bool>(false);
    auto* verb = app.add_subcommand("devices", "What can compute here");
    verb->add_flag("--json", *json, "one JSON object on stdout");
    verb->footer("Example: kvatlas-cli devices");
    verb->callback([json, &status] { status = listDevices(*json); });
}

} // namespace kvatlas::app

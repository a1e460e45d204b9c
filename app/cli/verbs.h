// SPDX-License-Identifier: Apache-2.0
// The verbs of kvatlas-cli, one file each (verb_NAME.cpp). Each adds its subcommand; when it was chosen, its callback
// writes data to stdout, talk to stderr, and puts the exit status into `status`. Main thread.
#pragma once

namespace CLI { // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace kvatlas::app {

void addInfo(CLI::App& app, int& status);
void addDevices(CLI::App& app, int& status);
void addTokenize(CLI::App& app, int& status);
void addLogits(CLI::App& app, int& status);
void addRun(CLI::App& app, int& status);
void addSession(CLI::App& app, int& status);
void addStrategies(CLI::App& app, int& status);
void addBench(CLI::App& app, int& status);

} // namespace kvatlas::app

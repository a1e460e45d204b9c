// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/version.h"
#include "core/base/process_guards.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <new>

namespace kvatlas::app {

namespace {

constexpr const char* kFooter = R"(Exit status:
  0    ok
  1    failed: the machine or the work
  2    usage: the words of the call are off
  3    an input was refused: model, session, strategy, scenario; a session is damaged
  4    out of memory or blocks; also when one request of several was refused
  129  hung up (SIGHUP); a recording is finished properly first
  130  interrupted (SIGINT); likewise
  143  terminated (SIGTERM); likewise

Data goes to stdout, talk to stderr.
Example: kvatlas-cli run --model model.gguf --scenario four-chats --record run.kvatlas)";

std::string unknownVerbHint(const CLI::App& app, int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-')
        return "";
    std::vector<std::string> names;
    for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(verb->get_name());
    const std::string_view word = argv[1];
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (std::find(views.begin(), views.end(), word) != views.end())
        return "";
    const std::string hint = didYouMean(word, views);
    return fmt::format("There is no verb \"{}\": {}", word,
                       hint.empty() ? fmt::format("there are {}.", fmt::join(names, ", ")) : hint);
}

int runVerb(int argc, char** argv) {
    CLI::App app{"kvatlas-cli: runs a language model with a paged KV-cache and says what the cache did", "kvatlas-cli"};
    app.set_version_flag("--version", versionLine("kvatlas-cli"));
    app.footer(kFooter);
    app.require_subcommand(1);
    int status = kExitOk;
    for (const auto add : {addInfo, addDevices, addTokenize, addLogits, addRun, addSession, addStrategies, addBench})
        add(app, status);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        writeData(app.help()); // of the chosen verb
        return finish(kExitOk);
    } catch (const CLI::Success& asked) { // --version, --help-all
        app.exit(asked);
        return finish(kExitOk);
    } catch (const CLI::ParseError& error) {
        const std::string hint = unknownVerbHint(app, argc, argv);
        say(hint.empty() ? std::string(error.what()) : hint);
        say("see kvatlas-cli --help, or kvatlas-cli VERB --help.");
        return finish(kExitUsage);
    } catch (const std::bad_alloc&) {
        say("There is not enough memory for this: take a smaller model, pool or context.");
        return finish(kExitOutOfMemory);
    }
    return finish(status);
}

} // namespace

} // namespace kvatlas::app

int main(int argc, char** argv) {
    kvatlas::guardFileSignals();
    kvatlas::guardStandardFiles();
    return kvatlas::app::runVerb(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
// A RunLauncher whose models, runs and sessions are all synthetic. Any thread, one at a time.
#pragma once

#include "tests/support/scripted_source.h"
#include "ui/run_launcher.h"

namespace kvatlas::test {

class ScriptedLauncher final : public ui::RunLauncher {
public:
    ScriptedOptions options;
    bool hasModel = true;
    std::string refusal; // what launch and openSession fail with
    std::vector<ui::RunOrder> orders;
    ScriptedSource* newest = nullptr; // owned by the window

    ui::Choices choices() override {
        ui::Choices choices;
        if (hasModel)
            choices.models.push_back({"Synthetic 135M", "/nowhere/synthetic.gguf", 98'362'432});
        choices.strategies.push_back({"paged-f16", "Paged f16", "", "{}"});
        choices.strategies.push_back(
            {"contiguous", "Contiguous", "", R"({"name": "Contiguous", "layout": "contiguous"})"});
        choices.scenarios.push_back({"chats", "Synthetic chats", "Requests that arrive at random.",
                                     R"({"version": 1, "name": "Synthetic chats", "requests": []})"});
        choices.samples.push_back({"sample", "A sample", "", "/nowhere/sample.kvatlas"});
        choices.modelHelp = "No model was found.";
        choices.defaultThreads = 1;
        choices.processors = 2;
        return choices;
    }
    Result<ui::OpenedRun> launch(const ui::RunOrder& order) override {
        orders.push_back(order);
        return make(true);
    }
    Result<ui::OpenedRun> openSession(const std::filesystem::path&) override { return make(false); }
    Result<void> checkModel(const std::filesystem::path&) override {
        if (!refusal.empty())
            return makeError(ErrorKind::Refused, "{}", refusal);
        return {};
    }

private:
    Result<ui::OpenedRun> make(bool live) {
        if (!refusal.empty())
            return makeError(ErrorKind::Refused, "{}", refusal);
        ScriptedOptions own = options;
        own.live = live;
        own.paused = live ? options.paused : true;
        ui::OpenedRun run;
        auto source = std::make_unique<ScriptedSource>(own);
        newest = source.get();
        run.source = std::move(source);
        run.modelName = "Synthetic 135M";
        run.paused = own.paused;
        return run;
    }
};

} // namespace kvatlas::test

// SPDX-License-Identifier: Apache-2.0
// What the window asks of the program: finds models, presets, scenarios and samples; makes live runs and replays.
// Keeps the weights of the newest model, so that a second run begins at once. One thread at a time (the window's
// worker). Errors: one sentence each.
#pragma once

#include "core/engine/weights.h"
#include "ui/run_launcher.h"

namespace kvatlas::app {

class ProgramLauncher final : public ui::RunLauncher {
public:
    // A file beside the shipped ones, chosen by the path as it was given. Before the window is made.
    Result<void> addScenario(const std::string& file);
    Result<void> addStrategy(const std::string& file);

    ui::Choices choices() override;
    Result<ui::OpenedRun> launch(const ui::RunOrder& order) override;
    Result<ui::OpenedRun> openSession(const std::filesystem::path& file) override;
    Result<void> checkModel(const std::filesystem::path& file) override;

private:
    std::vector<ui::FileChoice> m_ownScenarios, m_ownStrategies;
    std::filesystem::path m_model; // of m_weights
    std::shared_ptr<const engine::Weights> m_weights;
};

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// What the window asks of the program around it: which models, strategies and scenarios there are, and to make sources.
// app/window implements it; ui/ sees neither engine nor sessions. Every function may touch the disk and take seconds:
// the window calls them on a worker thread, one at a time. Errors come back as one sentence.
#pragma once

#include "core/base/result.h"
#include "core/source/event_source.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace kvatlas::ui {

struct ModelChoice {
    std::string name; // for the picker: "SmolLM2-135M-Instruct Q4_1"
    std::filesystem::path file;
    std::uint64_t fileBytes = 0;
};

struct FileChoice {
    std::string id;          // the file's stem
    std::string name;        // as the file calls itself
    std::string description; // one line
    std::string json;        // complete
};

struct Choices {
    std::vector<ModelChoice> models; // the default one first
    std::vector<FileChoice> strategies, scenarios;
    std::vector<FileChoice> samples; // recorded sessions that ship with the program; json holds the path
    std::string modelHelp;           // when there is no model: what to do about it
    std::uint32_t defaultThreads = 1, processors = 1;
};

struct RunOrder {
    std::filesystem::path model;
    std::string strategyJson;
    std::string scenarioJson; // empty: starts with no request and waits for prompts
    std::uint32_t threads = 1;
    std::string arithmetic = "fast";
    bool record = true;              // false: a temporary file, gone when the run is closed
    std::filesystem::path recording; // empty: the program chooses a name
    bool paused = false;
};

struct OpenedRun {
    std::unique_ptr<source::EventSource> source;
    std::string modelName;  // shown until the stream says it
    std::string reportText; // what a reader should know at once (a salvaged file, for example); empty otherwise
    bool paused = false;    // begins paused
};

class RunLauncher {
public:
    virtual ~RunLauncher() = default;
    virtual Choices choices() = 0;
    virtual Result<OpenedRun> launch(const RunOrder& order) = 0;
    virtual Result<OpenedRun> openSession(const std::filesystem::path& file) = 0;
    virtual Result<void> checkModel(const std::filesystem::path& file) = 0; // whether `launch` could load it
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Puts a run together: model, engine, recorder, or a recorded session, behind one EventSource. What a window needs and
// a command line may use; no Qt.
//
// Threads: any one; loading a model takes as long as reading its file. The sources keep alive what they are made of.
// Errors: one sentence each, as of the parts.
#pragma once

#include "app/backend.h"
#include "core/source/event_source.h"
#include "core/strategy/strategy.h"
#include "core/workload/scenario.h"

#include <filesystem>
#include <memory>
#include <string>

namespace kvatlas::app {

struct LiveRunOptions {
    strategy::Strategy strategy;
    workload::Scenario scenario; // may have no requests: the run then waits for Submit
    kernels::Arithmetic arithmetic = kernels::Arithmetic::Fast;
    unsigned threads = 0;         // 0: all cores but one for the window
    std::filesystem::path record; // the session file, which must not exist; empty: a temporary one, deleted at the end
    bool paused = false;
    std::string program = "kvatlas"; // for the session's "program" row
};

// A live run on weights that may serve other runs too (loadWeights in app/backend.h), recorded as it happens: the past
// is answered from the session file. Folders of `record` are made when they are missing.
Result<std::unique_ptr<source::EventSource>> openLiveRun(std::shared_ptr<const engine::Weights> weights,
                                                         LiveRunOptions options);

// A recorded session; needs no model.
Result<std::unique_ptr<source::EventSource>> openReplay(const std::filesystem::path& session, bool paused);

// What the scenario brings as its strategy: an object, a preset, or the plain paged cache.
Result<strategy::Strategy> strategyOf(const workload::Scenario& scenario);

// $XDG_DATA_HOME/kvatlas/sessions/DATE TIME TITLE.kvatlas, a name that is not taken. The folder is not made here.
std::filesystem::path newSessionFile(const std::string& title);

// What a dropped or named file is: by its first bytes, else by its suffix. Opening it says whether it is sound.
enum class FileKind { Session, Model, Scenario, Strategy, Unknown };
FileKind kindOfFile(const std::filesystem::path& file);

} // namespace kvatlas::app

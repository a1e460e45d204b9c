// SPDX-License-Identifier: Apache-2.0
// Runs a scenario to its end on the caller's thread: submits each request when it arrives, steps the engine, collects
// the results. What `kvatlas-cli run` does; a window uses the live source instead. One thread. The clock and the sink
// outlive it. Errors of create: as Engine::create, and those of a scenario's only request that cannot be prepared; one
// of several that cannot is refused and the others run.
#pragma once

#include "core/base/clock.h"
#include "core/engine/arrivals.h"
#include "core/engine/engine.h"
#include "core/workload/scenario.h"

#include <functional>
#include <memory>
#include <vector>

namespace kvatlas::app {

class ScenarioRun {
public:
    // `options.seed` and `options.scenarioJson` are taken from the scenario.
    static Result<std::unique_ptr<ScenarioRun>> create(std::shared_ptr<const engine::Weights> weights,
                                                       const workload::Scenario& scenario,
                                                       engine::EngineOptions options, const Clock& clock,
                                                       trace::EventSink& sink);

    // Until every request has finished, or stopped() says true between two steps; then what is unfinished is cancelled.
    // Requests that had not arrived by then are no results.
    void run(const std::function<bool()>& stopped);

    // By id.
    const std::vector<engine::RequestResult>& results() const { return m_results; }
    engine::Engine& engine() { return *m_engine; }

private:
    ScenarioRun(std::unique_ptr<engine::Engine> engine, engine::Arrivals arrivals, std::size_t requests)
        : m_engine(std::move(engine))
        , m_arrivals(std::move(arrivals))
        , m_scenarioRequests(requests) {}
    void waitForNextArrival(const std::function<bool()>& stopped);
    void collect();

    std::unique_ptr<engine::Engine> m_engine;
    engine::Arrivals m_arrivals;
    std::size_t m_scenarioRequests;
    std::vector<engine::RequestResult> m_results;
};

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_run.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace kvatlas::app {

Result<std::unique_ptr<ScenarioRun>> ScenarioRun::create(std::shared_ptr<const engine::Weights> weights,
                                                         const workload::Scenario& scenario,
                                                         engine::EngineOptions options, const Clock& clock,
                                                         trace::EventSink& sink) {
    options.seed = scenario.seed;
    options.scenarioJson = workload::toJson(scenario);
    engine::Arrivals arrivals(scenario, weights->model());
    if (scenario.requests.size() == 1) {
        const auto prepared = engine::prepare(scenario.requests.front(), weights->model(), scenario.seed);
        if (!prepared)
            return tl::unexpected(prepared.error());
    }
    auto engine = engine::Engine::create(std::move(weights), options, clock, sink);
    if (!engine)
        return tl::unexpected(engine.error());
    return std::unique_ptr<ScenarioRun>(
        new ScenarioRun(std::move(*engine), std::move(arrivals), scenario.requests.size()));
}

void ScenarioRun::waitForNextArrival(const std::function<bool()>& stopped) {
    if (m_arrivals.bySteps()) {
        m_engine->skipTo(std::max(m_engine->nextStep(), m_arrivals.nextStep()));
        return;
    }
    constexpr std::int64_t kLongestNapNs = 20'000'000; // so that an interruption is noticed
    for (std::int64_t ns = 1; ns > 0 && !stopped();) {
        ns = m_arrivals.nextNs() - m_engine->nowNs();
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::clamp<std::int64_t>(ns, 0, kLongestNapNs)));
    }
}

void ScenarioRun::collect() {
    for (auto& result : m_engine->takeFinished())
        m_results.push_back(std::move(result));
}

void ScenarioRun::run(const std::function<bool()>& stopped) {
    while (!stopped()) {
        m_arrivals.submitDue(*m_engine);
        const bool worked = m_engine->step();
        collect();
        if (worked)
            continue;
        if (m_arrivals.done())
            break;
        waitForNextArrival(stopped);
    }
    for (std::uint64_t id = 1; id <= m_scenarioRequests; ++id) // one that has finished or not arrived is no request
        m_engine->cancel(RequestId(id));
    m_engine->flush();
    collect();
    std::sort(m_results.begin(), m_results.end(), [](const auto& a, const auto& b) { return a.request < b.request; });
}

} // namespace kvatlas::app

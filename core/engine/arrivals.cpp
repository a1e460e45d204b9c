// SPDX-License-Identifier: Apache-2.0
#include "core/engine/arrivals.h"

#include <algorithm>

namespace kvatlas::engine {

Arrivals::Arrivals(const workload::Scenario& scenario, const model::Model& model)
    : m_bySteps(scenario.arrival == workload::Arrival::Steps) {
    for (const workload::Request& request : scenario.requests)
        m_coming.push_back({request.arrivalStep, static_cast<std::int64_t>(request.arrivalSeconds * 1e9),
                            titleOf(request), prepare(request, model, scenario.seed)});
    std::ranges::stable_sort(
        m_coming, [this](const Coming& a, const Coming& b) { return m_bySteps ? a.step < b.step : a.ns < b.ns; });
}

void Arrivals::submitDue(Engine& engine) {
    for (; !done(); ++m_next) {
        Coming& coming = m_coming[m_next];
        if (m_bySteps ? coming.step > engine.nextStep() : coming.ns > engine.nowNs())
            return;
        if (coming.request)
            engine.submit(std::move(*coming.request));
        else
            engine.refuse(coming.title, coming.request.error().message);
    }
}

} // namespace kvatlas::engine

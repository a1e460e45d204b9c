// SPDX-License-Identifier: Apache-2.0
// The requests of a scenario, handed to the engine when they arrive. One thread (the engine's).
// A request that cannot be prepared arrives all the same and is refused with the sentence.
#pragma once

#include "core/engine/engine.h"
#include "core/workload/scenario.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::engine {

class Arrivals {
public:
    Arrivals(const workload::Scenario& scenario, const model::Model& model);

    // Submits what is due at the engine's next step, or by now.
    void submitDue(Engine& engine);

    bool done() const { return m_next == m_coming.size(); }
    bool bySteps() const { return m_bySteps; }
    // Of the next one. REQUIRES: not done.
    Step nextStep() const { return m_coming[m_next].step; }
    std::int64_t nextNs() const { return m_coming[m_next].ns; } // since the run started

private:
    struct Coming {
        Step step = 0;
        std::int64_t ns = 0;
        std::string title;
        Result<Request> request;
    };
    std::vector<Coming> m_coming; // in order of arrival
    std::size_t m_next = 0;
    bool m_bySteps;
};

} // namespace kvatlas::engine

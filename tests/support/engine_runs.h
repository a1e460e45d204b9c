// SPDX-License-Identifier: Apache-2.0
// Engines for tests: every event folded through CacheState as it comes, hashes compared after each step.
#pragma once

#include "core/engine/engine.h"
#include "core/state/cache_state.h"
#include "tests/support/event_log.h"

#include <gtest/gtest.h>
#include <map>

namespace kvatlas::testing {

// Keeps events and folds them; the first one that does not fit fails the test.
class FoldingSink final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> more) override {
        for (const trace::Event& event : more) {
            const auto applied = state.apply(event);
            if (!applied && error.empty())
                error = applied.error().message;
        }
        log.onEvents(more);
    }
    void onKeyframe(Step, std::span<const std::byte>) override {}

    EventLog log;
    state::CacheState state;
    std::string error;
};

// An engine with all that it needs, on a clock that stands still.
struct EngineRun {
    explicit EngineRun(std::shared_ptr<const engine::Weights> weights, const engine::EngineOptions& options) {
        auto created = engine::Engine::create(std::move(weights), options, clock, sink);
        if (created)
            engine = std::move(*created);
        else
            refusal = created.error().message;
    }

    // Submits these and steps to the end.
    EngineRun(std::shared_ptr<const engine::Weights> weights, const engine::EngineOptions& options,
              const std::vector<engine::Request>& requests)
        : EngineRun(std::move(weights), options) {
        EXPECT_EQ(refusal, "");
        for (const engine::Request& request : requests)
            engine->submit(request);
        toTheEnd();
    }

    // Steps to the end, comparing the engine's hash with the fold's after each step.
    void toTheEnd() {
        while (step()) {
        }
    }
    bool step() {
        const bool worked = engine->step();
        EXPECT_EQ(sink.error, "");
        EXPECT_EQ(sink.state.stateHash(), engine->stateHash());
        for (engine::RequestResult& result : engine->takeFinished())
            results[result.request] = std::move(result);
        return worked;
    }
    const engine::RequestResult& result(std::uint64_t request) const { return results.at(RequestId(request)); }

    ManualClock clock;
    FoldingSink sink;
    std::unique_ptr<engine::Engine> engine;
    std::string refusal;
    std::map<RequestId, engine::RequestResult> results;
};

inline engine::Request requestOf(std::vector<TokenId> prompt, std::uint32_t maxTokens) {
    engine::Request request;
    request.title = "test";
    request.promptTokens = std::move(prompt);
    request.maxTokens = maxTokens;
    request.ignoreEndToken = true;
    return request;
}

} // namespace kvatlas::testing

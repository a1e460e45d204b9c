// SPDX-License-Identifier: Apache-2.0
// The default model against the reference values of tests/oracle, for any backend. Tolerances: tests/oracle/README.md.
#pragma once

#include "core/engine/logits.h"
#include "tests/support/default_model.h"
#include "tests/support/engine_runs.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kvatlas::testing {

// AddressSanitizer looks at every access and takes ten times as long: there a quarter of the tokens, down the same
// paths.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::uint32_t kLessWorkBy = 4;
#else
inline constexpr std::uint32_t kLessWorkBy = 1;
#endif

inline nlohmann::json oracle(const std::string& name) {
    std::ifstream in(std::string(KVATLAS_SOURCE_DIR "/tests/oracle/") + name);
    return nlohmann::json::parse(in);
}

inline std::shared_ptr<const engine::Weights> defaultModelOn(const kernels::Kernels& backend) {
    auto model = model::Model::open(defaultModelPath());
    EXPECT_TRUE(model) << model.error().message;
    auto weights = engine::Weights::load(*model, backend);
    EXPECT_TRUE(weights) << weights.error().message;
    return *weights;
}

// Every position named there: 20 logits, logsumexp, argmax, within 1e-3.
inline void checkLogits(const std::shared_ptr<const engine::Weights>& weights, const engine::ForwardOptions& options) {
    double worst = 0;
    int checked = 0;
    const auto cases = oracle("logits_cases.json")["cases"];
    for (const auto& oneCase : cases) {
        const auto ids = oneCase["ids"].get<std::vector<TokenId>>();
        EXPECT_EQ(weights->model().tokenizer().encode(oneCase["text"].get<std::string>(), oneCase["parse_special"]),
                  ids);
        std::map<Position, nlohmann::json> wanted;
        for (const auto& position : oneCase["positions"])
            wanted[position["position"]] = position;
        std::vector<Position> positions;
        for (const auto& [at, expected] : wanted)
            positions.push_back(at);
        const auto done =
            engine::forwardTokens(weights, ids, positions, options, [&](Position at, std::span<const float> logits) {
                const auto& expected = wanted.at(at);
                for (const auto& pair : expected["top20"])
                    worst = std::max(worst, std::fabs(pair[1].get<double>() -
                                                      static_cast<double>(logits[pair[0].get<std::size_t>()])));
                worst = std::max(worst, std::fabs(expected["logsumexp"].get<double>() - engine::logSumExp(logits)));
                EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), expected["argmax"].get<std::ptrdiff_t>());
                ++checked;
            });
        ASSERT_TRUE(done) << done.error().message;
    }
    EXPECT_EQ(checked, 24);
    EXPECT_LT(worst, 1e-3);
    std::printf("           logits: %d positions, largest difference %.2e\n", checked, worst);
}

// The four chats at the same time, `tokens` greedy tokens of each.
inline void checkGreedy(const std::shared_ptr<const engine::Weights>& weights, kernels::StorageFormat storage,
                        std::uint32_t tokens) {
    engine::EngineOptions options;
    options.arithmetic = kernels::Arithmetic::Exact;
    options.strategy.kFormat = options.strategy.vFormat = storage;
    options.strategy.maxModelLenTokens = 256;
    options.strategy.poolBlocks = 64;
    const auto cases = oracle("greedy_cases.json")["cases"];
    std::vector<engine::Request> requests;
    for (const auto& oneCase : cases)
        requests.push_back(requestOf(oneCase["prompt_ids"].get<std::vector<TokenId>>(), tokens));
    const EngineRun run(weights, options, requests);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        auto expected = cases[i]["greedy_ids"].get<std::vector<TokenId>>();
        expected.resize(tokens);
        EXPECT_EQ(run.result(i + 1).outputTokens, expected) << "case " << i;
    }
}

inline std::vector<TokenId> essayTokens(const engine::Weights& weights, std::size_t count) {
    std::ifstream in(KVATLAS_SOURCE_DIR "/tests/oracle/essay.txt");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    auto tokens = weights.model().tokenizer().encode(text, false);
    EXPECT_EQ(tokens.size(), 6897u);
    tokens.resize(count);
    return tokens;
}

} // namespace kvatlas::testing

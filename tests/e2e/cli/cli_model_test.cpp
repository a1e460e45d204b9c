// SPDX-License-Identifier: Apache-2.0
// kvatlas-cli on the default model, against the reference values in tests/oracle.
#include "tests/e2e/cli/program.h"
#include "tests/support/default_model.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace kvatlas::testing {
namespace {

nlohmann::json oracle(const std::string& name) {
    std::ifstream file(std::filesystem::path(KVATLAS_SOURCE_DIR) / "tests" / "oracle" / name);
    return nlohmann::json::parse(file);
}

std::string model() {
    return defaultModelPath().string();
}

TEST(CliModel, infoSaysWhatTheReferenceSays) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const auto info = runCli({"info", "--json", model()}).json();
    const auto expected = oracle("model.json");
    EXPECT_EQ(info["sha256"], expected["sha256"]);
    EXPECT_EQ(info["file_bytes"], expected["bytes"]);
    EXPECT_EQ(info["parameters"], expected["tensors"]["parameters"]);
    EXPECT_EQ(info["layers"], 30);
    EXPECT_EQ(info["kv_bytes_per_token"]["f16"], 23040);
}

TEST(CliModel, tokenizesEveryCaseOfTheReference) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const auto cases = oracle("tokenizer_cases.json")["cases"];
    std::string input;
    for (const auto& one : cases)
        input += nlohmann::json{{"text", one["text"]}, {"parse_special", one["parse_special"]}}.dump() + "\n";
    const auto outcome = runCli(Call{
        .arguments = {"tokenize", "--model", model(), "--jsonl"}, .input = input, .environment = {}, .output = {}});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::size_t at = 0;
    for (std::string line; std::getline(lines, line); ++at) {
        ASSERT_LT(at, cases.size());
        const auto answer = nlohmann::json::parse(line);
        EXPECT_EQ(answer["ids"], cases[at]["ids"]) << cases[at]["text"];
        EXPECT_EQ(answer["pieces"].size(), answer["ids"].size());
    }
    EXPECT_EQ(at, cases.size());
}

TEST(CliModel, exactLogitsAreThoseOfTheReference) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    constexpr double kTolerance = 1e-3; // tests/oracle/README.md
    const auto expected = oracle("logits_cases.json")["cases"][0];
    std::string ids, positions;
    for (const auto& id : expected["ids"])
        ids += (ids.empty() ? "" : ",") + std::to_string(id.get<int>());
    for (const auto& position : expected["positions"])
        positions += (positions.empty() ? "" : ",") + std::to_string(position["position"].get<int>());
    const auto got = runCli({"logits", "--model", model(), "--ids", ids, "--positions", positions, "--json"}).json();
    ASSERT_EQ(got["positions"].size(), expected["positions"].size());
    for (std::size_t p = 0; p < expected["positions"].size(); ++p) {
        const auto& want = expected["positions"][p];
        EXPECT_NEAR(got["positions"][p]["logsumexp"].get<double>(), want["logsumexp"].get<double>(), kTolerance);
        EXPECT_EQ(got["positions"][p]["top"][0][0], want["argmax"]);
    }
}

TEST(CliModel, chatPromptsTogetherGiveTheGreedyTokensOfTheReference) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    constexpr std::size_t kTokens = 24;
    const auto cases = oracle("greedy_cases.json")["cases"];
    Words words{"run",       "--model",      model(),        "--arithmetic",          "exact", "--strategy",
                "paged-f32", "--ignore-eos", "--max-tokens", std::to_string(kTokens), "--json"};
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (cases[i]["messages"].size() == 1) { // --prompt is one user message
            words.insert(words.end(), {"--prompt", cases[i]["messages"][0]["content"]});
            chosen.push_back(i);
        }
    ASSERT_GE(chosen.size(), 2u);
    const auto outcome = runCli(words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto report = outcome.json();
    for (std::size_t r = 0; r < chosen.size(); ++r) {
        const auto& expected = cases[chosen[r]];
        EXPECT_EQ(report["requests"][r]["prompt_tokens"], expected["prompt_ids"].size());
        const std::vector<int> ids = report["requests"][r]["token_ids"];
        const std::vector<int> want = expected["greedy_ids"];
        ASSERT_EQ(ids.size(), kTokens);
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), want.begin())) << expected["messages"].dump();
    }
}

TEST(CliModel, theLongDocumentIsAsLongAsItsDescriptionSays) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    const auto report =
        runCli({"run", "--model", model(), "--scenario", "one-long-document", "--max-tokens", "1", "--json"});
    ASSERT_EQ(report.status, 0) << report.err;
    const int tokens = report.json()["requests"][0]["prompt_tokens"];
    EXPECT_GE(tokens, 1200);
    EXPECT_LE(tokens, 1800);
}

} // namespace
} // namespace kvatlas::testing

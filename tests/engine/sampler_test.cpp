// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>

namespace kvatlas::engine {
namespace {

constexpr RequestId kRequest(1);

TokenId sampleOne(const std::vector<float>& logits, const Sampling& sampling, Position position = 0) {
    Sampler sampler;
    return sampler.sample(logits, sampling, kRequest, position).token;
}

// Draws at many positions; how often each token came.
std::map<TokenId, int> drawMany(const std::vector<float>& logits, const Sampling& sampling, int draws) {
    Sampler sampler;
    std::map<TokenId, int> counts;
    for (int i = 0; i < draws; ++i)
        ++counts[sampler.sample(logits, sampling, kRequest, static_cast<Position>(i)).token];
    return counts;
}

std::vector<float> logsOf(std::vector<double> probabilities) {
    std::vector<float> logits;
    for (double p : probabilities)
        logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

// The known answers published with the Random123 library (kat_vectors).
TEST(philoxTest, givesThePublishedAnswers) {
    using Words = std::array<std::uint32_t, 4>;
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    const std::uint32_t f = 0xffffffff;
    EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(samplerTest, greedyTakesTheLowestIdAmongEquals) {
    EXPECT_EQ(sampleOne({1, 3, 2, 3}, {}), 1);
    EXPECT_EQ(sampleOne({-0.0F, 0.0F}, {}), 0);
    EXPECT_EQ(sampleOne({7}, {}), 0);
}

TEST(samplerTest, aLogitThatIsNoNumberIsTheSmallest) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(sampleOne({nan, -1e30F, nan}, {}), 1);
    EXPECT_EQ(sampleOne({nan, -5, nan}, {.temperature = 1}), 1);
    EXPECT_EQ(sampleOne({nan, nan}, {.temperature = 1, .topP = 0.5}), 0);
    EXPECT_EQ(sampleOne({1, 2}, {.temperature = 1e-300}), 1);
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(sampleOne({1, inf, 2}, {.temperature = 1}), 1);
    EXPECT_EQ(sampleOne({-inf, -inf}, {.temperature = 1}), 0);
}

TEST(samplerTest, reportsTheEightMostProbableOfTheWholeVocabulary) {
    std::mt19937 random(7);
    std::vector<float> logits(1000);
    for (float& logit : logits)
        logit = static_cast<float>(random() % 2000) / 100.0F; // many ties
    for (const double temperature : {0.0, 1.0, 0.5, 2.0}) {
        const double t = temperature > 0 ? temperature : 1;
        std::vector<std::pair<double, TokenId>> order;
        double sum = 0;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            order.emplace_back(-logits[i], static_cast<TokenId>(i));
            sum += std::exp(static_cast<double>(logits[i]) / t);
        }
        std::sort(order.begin(), order.end());
        Sampler sampler;
        const Sampled sampled = sampler.sample(logits, {.temperature = temperature, .topK = 3}, kRequest, 0);
        for (std::size_t i = 0; i < 8; ++i) {
            EXPECT_EQ(sampled.top[i].token, order[i].second);
            const double expected = std::exp(-order[i].first / t) / sum;
            EXPECT_NEAR(sampled.top[i].probability, expected, 1e-5 * expected);
        }
    }
}

// Chi-square over 40 seeds of 4 classes each: 120 degrees of freedom, 173.6 is exceeded once in a thousand. The draws
// are fixed by the seeds.
TEST(samplerTest, drawsInProportionToTheProbabilities) {
    const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
    constexpr int kDraws = 5'000;
    double chiSquare = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto counts = drawMany(logsOf(p), {.temperature = 1, .seed = seed}, kDraws);
        for (std::size_t i = 0; i < p.size(); ++i) {
            const double expected = p[i] * kDraws, got = counts.at(static_cast<TokenId>(i));
            chiSquare += (got - expected) * (got - expected) / expected;
        }
    }
    EXPECT_LT(chiSquare, 173.6);
    EXPECT_GT(chiSquare, 77.8); // as improbable: too even
}

TEST(samplerTest, temperatureSharpensAndFlattens) {
    // p^(1/T): at T = 0.5 the weights 1:2 become 1:4.
    const auto counts = drawMany(logsOf({1.0 / 3, 2.0 / 3}), {.temperature = 0.5, .seed = 1}, 20'000);
    EXPECT_NEAR(counts.at(0) / 20'000.0, 0.2, 0.01);
}

TEST(samplerTest, topKKeepsTheKLargest) {
    const auto counts = drawMany(logsOf({0.1, 0.4, 0.3, 0.2}), {.temperature = 1, .topK = 2}, 2000);
    EXPECT_EQ(counts.size(), 2u);
    EXPECT_TRUE(counts.contains(1) && counts.contains(2));
}

TEST(samplerTest, topPKeepsTheSmallestSetThatReachesP) {
    const auto logits = logsOf({0.5, 0.3, 0.15, 0.05});
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topP = 0.49}, 500).size(), 1u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topP = 0.6}, 500).size(), 2u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topP = 0.9}, 500).size(), 3u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topP = 0.0}, 500).size(), 1u);
}

TEST(samplerTest, minPIsAShareOfTheLargest) {
    const auto logits = logsOf({0.5, 0.3, 0.15, 0.05});
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .minP = 0.2}, 2000).size(), 3u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .minP = 0.5}, 2000).size(), 2u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .minP = 1.0}, 500).size(), 1u);
}

// llama.cpp's order: top_p is taken of what top_k left, renormalised, and before the temperature. Of 0.4 0.3 0.2 0.1,
// top_k 3 leaves 4/9 3/9 2/9; top_p 0.7 then keeps two (7/9). Without top_k it keeps two as well (0.7), but top_p 0.75
// keeps two after top_k 3 (7/9 >= 0.75) and three without it.
TEST(samplerTest, truncatesInLlamaCppsOrder) {
    const auto logits = logsOf({0.4, 0.3, 0.2, 0.1});
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topK = 3, .topP = 0.75}, 1000).size(), 2u);
    EXPECT_EQ(drawMany(logits, {.temperature = 1, .topP = 0.75}, 1000).size(), 3u);
    // A high temperature does not widen what top_p keeps.
    EXPECT_EQ(drawMany(logits, {.temperature = 50, .topK = 3, .topP = 0.75}, 1000).size(), 2u);
}

TEST(samplerTest, aFixedSeedGivesTheSameTokensForEver) {
    std::vector<float> logits(300);
    for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>((i * 37) % 101) / 25.0F;
    std::vector<TokenId> tokens;
    for (Position position = 0; position < 8; ++position)
        tokens.push_back(
            sampleOne(logits, {.temperature = 0.8, .topK = 40, .topP = 0.95, .minP = 0.05, .seed = 42}, position));
    std::vector<TokenId> again;
    Sampler sampler;
    for (Position position = 0; position < 8; ++position)
        again.push_back(sampler
                            .sample(logits, {.temperature = 0.8, .topK = 40, .topP = 0.95, .minP = 0.05, .seed = 42},
                                    kRequest, position)
                            .token);
    EXPECT_EQ(tokens, again);
    EXPECT_NE(tokens, std::vector<TokenId>(8, tokens[0]));
}

TEST(samplerTest, sortsAWholeVocabularyByLogitThenId) {
    // top_p just below 1 needs the whole order; the reference walks a std::sort.
    std::mt19937 random(11);
    std::vector<float> logits(5000);
    for (float& logit : logits)
        logit = static_cast<float>(static_cast<int>(random() % 800) - 400) / 50.0F;
    const Sampling sampling{.temperature = 1.3, .topP = 0.97, .seed = 9};
    std::vector<std::pair<float, TokenId>> order;
    for (std::size_t i = 0; i < logits.size(); ++i)
        order.emplace_back(-logits[i], static_cast<TokenId>(i));
    std::sort(order.begin(), order.end());
    for (Position position = 0; position < 200; ++position) {
        double total = 0;
        for (const auto& [negative, token] : order)
            total += std::exp(static_cast<double>(-negative));
        std::size_t kept = 0;
        double reached = 0;
        while (reached < 0.97 * total)
            reached += std::exp(static_cast<double>(-order[kept++].first));
        double weights = 0;
        for (std::size_t i = 0; i < kept; ++i)
            weights += std::exp(static_cast<double>(-order[i].first) / 1.3);
        const double wanted = uniform(9, kRequest, position) * weights;
        double walked = 0;
        std::size_t i = 0;
        while (i + 1 < kept && (walked += std::exp(static_cast<double>(-order[i].first) / 1.3)) <= wanted)
            ++i;
        EXPECT_EQ(sampleOne(logits, sampling, position), order[i].second) << position;
    }
}

} // namespace
} // namespace kvatlas::engine

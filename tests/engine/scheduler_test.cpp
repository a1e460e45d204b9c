// SPDX-License-Identifier: Apache-2.0
// The scheduler without a model: tokens are only counted.
#include "core/engine/scheduler.h"

#include "core/cache/invariants.h"
#include "tests/support/event_log.h"

#include <gtest/gtest.h>
#include <random>

namespace kvatlas::engine {
namespace {

using strategy::Batching;
using strategy::Layout;
using strategy::Reserve;

class SchedulerTest : public ::testing::Test {
protected:
    void make(std::uint32_t blocks, std::uint32_t blockTokens, ScheduleRules rules) {
        m_rules = rules;
        pool.emplace(PoolId(0), blocks, blockTokens, events, hash);
        scheduler.emplace(rules, *pool, events, hash);
    }
    void submit(std::uint64_t request, std::uint32_t prompt, std::uint32_t maxTokens) {
        ASSERT_EQ(scheduler->refusal(prompt, maxTokens), std::nullopt);
        scheduler->submit(RequestId(request), prompt, maxTokens);
        left[RequestId(request)] = maxTokens;
    }
    // Plans, "computes" and "samples"; requests end after their max_tokens.
    std::vector<ScheduledRows> step() {
        auto plan = scheduler->plan();
        for (const ScheduledRows& rows : plan)
            scheduler->noteComputed(rows);
        for (const ScheduledRows& rows : plan)
            if (rows.samples) {
                scheduler->noteSampled(rows.request);
                if (--left[rows.request] == 0) {
                    finished.push_back(rows.request.value);
                    scheduler->finish(rows.request, trace::FinishReason::MaxTokens);
                }
            }
        const auto broken = cache::brokenInvariant(*pool, scheduler->openTables());
        EXPECT_EQ(broken, std::nullopt);
        return plan;
    }
    static std::string text(const std::vector<ScheduledRows>& plan) {
        std::string out;
        for (const ScheduledRows& rows : plan)
            out += fmt::format("{}{}@{}+{} ", rows.prefill ? "P" : "D", rows.request.value, rows.first, rows.tokens);
        return out;
    }

    ScheduleRules m_rules;
    testing::EventLog log;
    ManualClock clock;
    trace::EventEmitter events{log, clock};
    trace::StateHash hash;
    std::optional<cache::BlockPool> pool;
    std::optional<Scheduler> scheduler;
    std::map<RequestId, std::uint32_t> left;
    std::vector<std::uint64_t> finished;
};

TEST_F(SchedulerTest, decodesFirstAndGivesTheChunkToPrompts) {
    make(64, 4, {.maxModelLenTokens = 64, .maxSequences = 4, .chunkTokens = 8});
    submit(1, 5, 10);
    submit(2, 10, 10);
    EXPECT_EQ(text(step()), "P1@0+5 P2@0+3 ");
    EXPECT_EQ(text(step()), "D1@5+1 P2@3+7 ");
    EXPECT_EQ(text(step()), "D1@6+1 D2@10+1 ");
}

TEST_F(SchedulerTest, staticBatchingAdmitsNobodyUntilTheBatchIsDone) {
    make(64, 4, {.batching = Batching::Static, .maxModelLenTokens = 64, .maxSequences = 2, .chunkTokens = 8});
    submit(1, 6, 1);
    submit(2, 6, 3);
    submit(3, 2, 1);
    EXPECT_EQ(text(step()), "P1@0+6 P2@0+2 "); // 1 ends here
    EXPECT_EQ(text(step()), "P2@2+4 ");
    EXPECT_EQ(text(step()), "D2@6+1 ");
    EXPECT_EQ(scheduler->waitingFor().reason, Waiting::Reason::Batch);
    EXPECT_EQ(text(step()), "D2@7+1 ");
    EXPECT_EQ(text(step()), "P3@0+2 ");
    EXPECT_EQ(finished, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(SchedulerTest, staticBatchingDecodesOnlyWhenAllPromptsAreComputed) {
    make(64, 4, {.batching = Batching::Static, .maxModelLenTokens = 64, .maxSequences = 2, .chunkTokens = 4});
    submit(1, 4, 2);
    submit(2, 8, 2);
    EXPECT_EQ(text(step()), "P1@0+4 ");
    EXPECT_EQ(text(step()), "P2@0+4 ");
    EXPECT_EQ(text(step()), "P2@4+4 ");
    EXPECT_EQ(text(step()), "D1@4+1 D2@8+1 ");
}

TEST_F(SchedulerTest, admitsOnlyWhenEverybodyFindsBlocksUntilTheNextToken) {
    make(4, 2, {.maxModelLenTokens = 8, .maxSequences = 4, .chunkTokens = 8});
    submit(1, 4, 5); // 2 blocks, and a third with its next token
    submit(2, 3, 3); // 2 blocks
    EXPECT_EQ(text(step()), "P1@0+4 ");
    EXPECT_EQ(scheduler->waitingFor().reason, Waiting::Reason::Blocks);
    EXPECT_EQ(scheduler->waitingFor().neededBlocks, 3u);
    EXPECT_EQ(scheduler->waitingFor().freeBlocks, 2u);
    while (!scheduler->idle())
        step();
    EXPECT_EQ(finished, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(SchedulerTest, preemptsTheLatestAdmittedAndResumesItBeforeThoseWhoWait) {
    make(5, 2, {.maxModelLenTokens = 10, .maxSequences = 2, .chunkTokens = 16});
    submit(1, 1, 9); // up to 9 slots: 5 blocks
    submit(2, 1, 9);
    submit(3, 1, 1);
    while (!scheduler->idle()) {
        const auto plan = step();
        events.flush();
        const auto preempted = log.all<trace::RequestPreempted>();
        if (preempted.size() == 1 && log.all<trace::RequestResumed>().empty() &&
            !scheduler->runningRequests().empty()) {
            EXPECT_EQ(preempted[0].request, RequestId(2));
            ASSERT_EQ(plan.size(), 1u);
            EXPECT_EQ(plan[0].request, RequestId(1));
            EXPECT_EQ(scheduler->runningRequests(), std::vector{RequestId(1)}); // nobody was admitted
        }
    }
    std::vector<std::string> order;
    for (const trace::Event& event : log.events) {
        if (const auto* admitted = std::get_if<trace::RequestAdmitted>(&event.body))
            order.push_back(fmt::format("admitted {}", admitted->request.value));
        if (const auto* preempted = std::get_if<trace::RequestPreempted>(&event.body))
            order.push_back(fmt::format("preempted {} losing {}", preempted->request.value, preempted->tokensLost));
        if (const auto* resumed = std::get_if<trace::RequestResumed>(&event.body))
            order.push_back(fmt::format("resumed {}", resumed->request.value));
    }
    // Both have 2 blocks and 4 slots when 1 takes the fifth block.
    EXPECT_EQ(order, (std::vector<std::string>{"admitted 1", "admitted 2", "preempted 2 losing 4", "resumed 2",
                                               "admitted 3"}));
    EXPECT_EQ(finished, (std::vector<std::uint64_t>{1, 3, 2}));
}

TEST_F(SchedulerTest, contiguousWaitsForARunAndSaysSo) {
    make(6, 2,
         {.layout = Layout::Contiguous,
          .reserve = Reserve::MaxTokens,
          .maxModelLenTokens = 12,
          .maxSequences = 8,
          .chunkTokens = 64});
    submit(1, 2, 3); // 4 slots, 2 blocks: 0 1
    submit(2, 2, 9); // 10 slots... 5 blocks do not fit beside it
    step();
    EXPECT_EQ(scheduler->waitingFor().reason, Waiting::Reason::Blocks);
    EXPECT_EQ(scheduler->waitingFor().neededBlocks, 5u);
    EXPECT_EQ(scheduler->waitingFor().freeBlocks, 4u);
    while (!scheduler->idle())
        step();
    EXPECT_EQ(finished, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(SchedulerTest, fragmentationMakesARequestWaitThoughEnoughBlocksAreFree) {
    make(6, 2,
         {.layout = Layout::Contiguous,
          .reserve = Reserve::MaxTokens,
          .maxModelLenTokens = 12,
          .maxSequences = 8,
          .chunkTokens = 64});
    submit(1, 2, 1); // blocks 0 (2 slots)
    submit(2, 2, 5); // 6 slots: blocks 1 2 3
    submit(3, 2, 1); // block 4
    step();          // 1 and 3 end: free 0, 4, 5
    submit(4, 2, 5); // 3 blocks
    step();
    EXPECT_EQ(scheduler->waitingFor().reason, Waiting::Reason::Run);
    EXPECT_EQ(scheduler->waitingFor().freeBlocks, 3u);
    EXPECT_EQ(scheduler->waitingFor().longestRunBlocks, 2u);
}

TEST_F(SchedulerTest, refusesWhatCanNeverFitWithTheNumbers) {
    make(4, 4, {.maxModelLenTokens = 64, .maxSequences = 4, .chunkTokens = 16});
    const auto sentence = [&](std::size_t prompt, std::uint32_t maxTokens) {
        return scheduler->refusal(prompt, maxTokens).value_or("");
    };
    EXPECT_EQ(sentence(0, 5).find("nothing to run"), 0u);
    EXPECT_NE(sentence(2105, 5).find("2105 tokens > 64"), std::string::npos);
    EXPECT_EQ(sentence(16, 1), "");
    EXPECT_NE(sentence(16, 2).find("needs 5 blocks"), std::string::npos);
    EXPECT_NE(sentence(16, 2).find("the pool has 4"), std::string::npos);
    EXPECT_NE(sentence(4, 0xFFFF'FFFFu).find("needs 16 blocks"), std::string::npos); // cut at max_model_len
}

TEST_F(SchedulerTest, preemptingEverybodyAtEveryStepStillMakesProgress) {
    make(8, 2, {.maxModelLenTokens = 16, .maxSequences = 4, .chunkTokens = 32});
    for (std::uint64_t r = 1; r <= 4; ++r)
        submit(r, 2, 4);
    int steps = 0;
    while (!scheduler->idle() && ++steps < 100) {
        const auto running = scheduler->runningRequests();
        for (auto it = running.rbegin(); it != running.rend(); ++it)
            EXPECT_TRUE(scheduler->preempt(*it));
        step();
    }
    EXPECT_LT(steps, 100);
    EXPECT_EQ(finished.size(), 4u);
}

// A saturated pool (16 requests, 8 blocks) with random lengths, cancellations and preemptions by command: everybody
// ends, nothing leaks, and each resume yields at least one token.
TEST_F(SchedulerTest, aSaturatedPoolServesEverybody) {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        std::mt19937 random(seed);
        const std::uint32_t blockTokens = 1u << random() % 4;
        log.events.clear();
        finished.clear();
        left.clear();
        const auto batching = random() % 3 == 0 ? Batching::Static : Batching::Continuous;
        const auto layout = random() % 3 == 0 ? Layout::Contiguous : Layout::Paged;
        make(8, blockTokens,
             {.layout = layout,
              .reserve = random() % 2 ? Reserve::MaxTokens : Reserve::MaxModelLen,
              .batching = batching,
              .maxModelLenTokens = 8 * blockTokens,
              .maxSequences = 1 + static_cast<std::uint32_t>(random() % 16),
              .chunkTokens = 1 + static_cast<std::uint32_t>(random() % 40)});
        std::size_t submitted = 0, cancelled = 0;
        int steps = 0;
        std::map<RequestId, std::uint32_t> leftAtResume;
        while ((submitted < 16 || !scheduler->idle()) && ++steps < 5000) {
            if (submitted < 16 && random() % 2) {
                const std::uint32_t prompt = 1 + static_cast<std::uint32_t>(random() % (4 * blockTokens));
                const std::uint32_t output = 1 + static_cast<std::uint32_t>(random() % (4 * blockTokens));
                submit(++submitted, prompt, output);
            }
            if (random() % 40 == 0 && submitted > 0) {
                const RequestId victim(1 + random() % submitted);
                if (scheduler->knows(victim)) {
                    scheduler->finish(victim, trace::FinishReason::Cancelled);
                    ++cancelled;
                }
            }
            if (!scheduler->idle()) {
                EXPECT_FALSE(step().empty());
            }
            events.flush();
            for (const auto& event : log.events) {
                if (const auto* resumed = std::get_if<trace::RequestResumed>(&event.body))
                    leftAtResume[resumed->request] = left[resumed->request];
                if (const auto* preempted = std::get_if<trace::RequestPreempted>(&event.body)) {
                    const auto at = leftAtResume.find(preempted->request);
                    if (at != leftAtResume.end()) {
                        EXPECT_LT(left[preempted->request], at->second) << "seed " << seed;
                    }
                }
            }
            log.events.clear();
        }
        ASSERT_LT(steps, 5000) << "seed " << seed;
        EXPECT_EQ(finished.size() + cancelled, 16u);
        EXPECT_EQ(pool->counts().free, 8u);
        EXPECT_EQ(hash.value(), 0u);
    }
}

} // namespace
} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
// A live engine behind the EventSource interface: commands, pausing, a slow sink, stopping at any moment. Also run
// under ThreadSanitizer.
#include "core/engine/live_source.h"

#include "core/state/cache_state.h"
#include "kernels/reference/reference.h"
#include "tests/support/event_log.h"
#include "tests/support/tiny_llama.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace kvatlas::engine {
namespace {

std::shared_ptr<const Weights> tinyWeights() {
    static const auto weights = [] {
        auto model = model::Model::fromBytes(testing::tinyLlama(5), "tiny.gguf");
        EXPECT_TRUE(model) << model.error().message;
        return *Weights::load(*model, kernels::referenceKernels());
    }();
    return weights;
}

// Folds what it is given and lets the test wait for it.
class WaitingSink final : public trace::EventSink {
public:
    explicit WaitingSink(std::chrono::microseconds delay = {})
        : m_delay(delay) {}

    void onEvents(std::span<const trace::Event> events) override {
        std::this_thread::sleep_for(m_delay);
        {
            const std::lock_guard lock(m_mutex);
            for (const trace::Event& event : events) {
                const auto applied = m_state.apply(event);
                if (!applied && m_error.empty())
                    m_error = applied.error().message;
            }
            m_log.onEvents(events);
        }
        m_changed.notify_all();
    }
    void onKeyframe(Step, std::span<const std::byte>) override {}
    void onEnd() override { ++m_ends; }

    template <class Body> bool waitFor(std::size_t count) {
        std::unique_lock lock(m_mutex);
        return m_changed.wait_for(lock, std::chrono::seconds(120), [&] {
            return m_log.all<Body>().size() >= count || !m_error.empty();
        }) && m_error.empty();
    }
    testing::EventLog log() {
        const std::lock_guard lock(m_mutex);
        return m_log;
    }
    std::string error() {
        const std::lock_guard lock(m_mutex);
        return m_error;
    }
    int ends() const { return m_ends; }

private:
    std::chrono::microseconds m_delay;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    state::CacheState m_state;
    testing::EventLog m_log;
    std::string m_error;
    std::atomic<int> m_ends{0};
};

workload::Request textRequest(const std::string& text, std::uint32_t maxTokens, Step at = 0) {
    workload::Request request;
    request.prompt = text;
    request.raw = true;
    request.maxTokens = maxTokens;
    request.ignoreEndToken = true;
    request.arrivalStep = at;
    return request;
}

LiveOptions liveOptions(std::vector<workload::Request> requests, bool paused = false) {
    LiveOptions options;
    options.engine.arithmetic = kernels::Arithmetic::Exact;
    options.engine.strategy.poolBlocks = 12;
    options.engine.strategy.blockTokens = 4;
    options.scenario.name = "test";
    options.scenario.requests = std::move(requests);
    options.paused = paused;
    return options;
}

std::unique_ptr<LiveSource> makeSource(LiveOptions options) {
    auto source = LiveSource::create(tinyWeights(), std::move(options));
    EXPECT_TRUE(source) << source.error().message;
    return std::move(*source);
}

const std::string kSubmit = workload::toJson(textRequest("hello world", 3));

TEST(liveSourceTest, runsAScenarioAndStaysForMore) {
    WaitingSink sink;
    auto source = makeSource(liveOptions({textRequest("one and two", 4), textRequest("the other", 3, 40)}));
    EXPECT_EQ(source->info().title, "test");
    EXPECT_TRUE(source->info().capabilities.submit);
    EXPECT_FALSE(source->info().capabilities.seek);
    ASSERT_TRUE(source->start(sink));
    EXPECT_FALSE(source->start(sink));
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(2));
    source->send(source::Submit{kSubmit});
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(3));
    source->stop();
    source->stop();
    EXPECT_EQ(sink.ends(), 1);
    const auto log = sink.log();
    EXPECT_EQ(log.all<trace::TokenSampled>().size(), 10u);
    EXPECT_EQ(log.events.back().kind(), trace::EventKind::StepEnded);
}

TEST(liveSourceTest, givesTheEventsOfTheEngineAlone) {
    const auto options = liveOptions({textRequest("one and two and more", 9), textRequest("the other", 12, 3)});
    WaitingSink sink;
    auto source = makeSource(options);
    ASSERT_TRUE(source->start(sink));
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(2));
    source->stop();

    testing::EventLog alone;
    ManualClock clock;
    auto engineOptions = options.engine;
    engineOptions.scenarioJson = workload::toJson(options.scenario);
    auto engine = Engine::create(tinyWeights(), engineOptions, clock, alone);
    ASSERT_TRUE(engine);
    Arrivals arrivals(options.scenario, tinyWeights()->model());
    do
        arrivals.submitDue(**engine);
    while ((*engine)->step());

    const auto stateEvents = [](const testing::EventLog& log) {
        std::vector<trace::Event> events;
        for (trace::Event event : log.events) {
            event.ns = 0;
            if (auto* ended = std::get_if<trace::StepEnded>(&event.body))
                ended->computeNs = ended->waitNs = 0;
            if (trace::classOf(event.kind()) == trace::EventClass::State)
                events.push_back(event);
        }
        return events;
    };
    EXPECT_EQ(stateEvents(sink.log()), stateEvents(alone));
}

TEST(liveSourceTest, beginsPausedWithItsRequestsWaitingAndStepsAsTold) {
    WaitingSink sink;
    auto source = makeSource(liveOptions({textRequest("one and two", 20)}, true));
    ASSERT_TRUE(source->start(sink));
    EXPECT_TRUE(sink.waitFor<trace::RequestArrived>(1));
    source->send(source::StepForward{2});
    EXPECT_TRUE(sink.waitFor<trace::StepEnded>(2));
    source->send(source::StepForward{1});
    EXPECT_TRUE(sink.waitFor<trace::StepEnded>(3));
    source->send(source::SetSpeed{0});
    EXPECT_EQ(sink.log().all<trace::StepEnded>().size(), 3u);
    EXPECT_EQ(sink.log().all<trace::CommandApplied>().size(), 2u); // the speed comes with the next step
    source->send(source::Resume{});
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(1));
    EXPECT_EQ(sink.log().all<trace::CommandApplied>().size(), 4u);
    source->send(source::Pause{}); // no step is begun for it
    source->send(source::Submit{kSubmit});
    EXPECT_TRUE(sink.waitFor<trace::RequestArrived>(2));
    source->stop();
    EXPECT_EQ(sink.log().all<trace::StepEnded>().size(), 20u);
    EXPECT_EQ(sink.log().all<trace::CommandApplied>().size(), 4u);
    EXPECT_EQ(sink.error(), "");
}

TEST(liveSourceTest, whatAPauseOrASlowSpeedTakesIsInNoNumber) {
    constexpr auto kPause = std::chrono::milliseconds(300);
    WaitingSink sink;
    auto source = makeSource(liveOptions({textRequest("one and two", 5)}, true));
    ASSERT_TRUE(source->start(sink));
    for (std::size_t step = 1; step <= 3; ++step) {
        std::this_thread::sleep_for(kPause);
        source->send(source::StepForward{1});
        EXPECT_TRUE(sink.waitFor<trace::StepEnded>(step));
    }
    source->send(source::SetSpeed{1.0 / 0.3}); // 0.3 s a step
    source->send(source::Resume{});
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(1));
    std::this_thread::sleep_for(kPause); // idle
    source->send(source::Submit{kSubmit});
    EXPECT_TRUE(sink.waitFor<trace::RequestArrived>(2));
    source->stop();
    // Together 1.2 s and more were waited; five steps of the tiny model take milliseconds.
    EXPECT_LT(sink.log().events.back().ns, std::chrono::nanoseconds(4 * kPause).count() / 2);
    std::int64_t before = 0;
    for (const trace::Event& event : sink.log().events)
        EXPECT_LE(std::exchange(before, event.ns), event.ns);
}

TEST(liveSourceTest, cancelsAndPreemptsBetweenSteps) {
    WaitingSink sink;
    auto source = makeSource(liveOptions({textRequest("one and two", 20), textRequest("the other", 20)}, true));
    ASSERT_TRUE(source->start(sink));
    source->send(source::StepForward{2});
    EXPECT_TRUE(sink.waitFor<trace::StepEnded>(2));
    source->send(source::Preempt{RequestId(2)});
    EXPECT_TRUE(sink.waitFor<trace::RequestPreempted>(1));
    source->send(source::Cancel{RequestId(1)});
    source->send(source::Cancel{RequestId(77)}); // nobody: nothing happens
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(1));
    source->send(source::SetSpeed{1e5});
    source->send(source::Resume{});
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(2));
    source->stop();
    const auto finished = sink.log().all<trace::RequestFinished>();
    EXPECT_EQ(finished[0].reason, trace::FinishReason::Cancelled);
    EXPECT_EQ(finished[1].outputTokens, 20u);
    EXPECT_EQ(sink.log().all<trace::RequestResumed>().size(), 1u);
}

TEST(liveSourceTest, aSubmitThatIsNoRequestIsRefusedWithItsSentence) {
    WaitingSink sink;
    auto source = makeSource(liveOptions({}));
    ASSERT_TRUE(source->start(sink));
    source->send(source::Submit{"{\"promt\": \"x\"}"});
    source->send(source::Submit{"{\"tokens\": [1000000]}"});
    source->send(source::Seek{3});
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(2));
    source->stop();
    for (const auto& finished : sink.log().all<trace::RequestFinished>()) {
        EXPECT_EQ(finished.reason, trace::FinishReason::Refused);
        EXPECT_NE(finished.detail, "");
    }
}

TEST(liveSourceTest, questionsAreAnsweredThatNothingIsRecorded) {
    WaitingSink sink;
    auto source = makeSource(liveOptions({}));
    ASSERT_TRUE(source->start(sink));
    std::atomic<std::uint64_t> answered{0};
    source->ask(9, source::StateAt{4}, [&](source::Answer answer) {
        EXPECT_TRUE(std::holds_alternative<Error>(answer.body));
        answered = answer.tag;
    });
    while (answered == 0)
        std::this_thread::yield();
    EXPECT_EQ(answered, 9u);
    source->stop();
    source->ask(10, source::StateAt{4}, [&](source::Answer) { ADD_FAILURE() << "answered after stop"; });
}

TEST(liveSourceTest, aSlowSinkDelaysTheEngineAndLosesNoState) {
    WaitingSink sink(std::chrono::microseconds(300));
    auto options = liveOptions({textRequest("one and two", 30), textRequest("the other", 30)});
    options.ringEvents = 8;
    auto source = makeSource(std::move(options));
    ASSERT_TRUE(source->start(sink));
    EXPECT_TRUE(sink.waitFor<trace::RequestFinished>(2));
    source->stop();
    EXPECT_EQ(sink.error(), "");
    std::uint64_t lost = 0,
                  spans = sink.log().all<trace::KernelSpan>().size() + sink.log().all<trace::MemoryCounter>().size();
    for (const auto& event : sink.log().all<trace::EventsLost>())
        lost += event.count;
    EXPECT_GT(lost, 0u);
    // 10 kinds of kernel a step; step 0 has 7 kinds in each of 2 layers and the memory counter beside.
    const auto steps = sink.log().all<trace::StepEnded>().size();
    EXPECT_EQ(lost + spans, steps * 10 + 2 * 7 + 1);
}

TEST(liveSourceTest, stopsPromptlyAtAnyMoment) {
    for (int i = 0; i < 20; ++i) {
        WaitingSink sink;
        auto source =
            makeSource(liveOptions({textRequest("one and two", 40), textRequest("the other", 40)}, i % 4 == 0));
        ASSERT_TRUE(source->start(sink));
        source->send(source::Submit{kSubmit});
        std::this_thread::sleep_for(std::chrono::microseconds(i * 137));
        if (i % 2)
            source->stop();
        source.reset();
        EXPECT_EQ(sink.ends(), 1);
        EXPECT_EQ(sink.error(), "");
    }
    makeSource(liveOptions({})); // never started
}

} // namespace
} // namespace kvatlas::engine

// SPDX-License-Identifier: Apache-2.0
// The inference engine: requests in, events out. step() schedules, computes one forward pass, samples and finishes.
//
// Promise. The same model, strategy, seed and submissions at the same steps give the same events, times apart. The
// state hash in StepEnded is that of the state the events fold to. A command (submit, cancel, preempt) takes effect
// between steps; its events belong to the step about to start. Thread: one at a time. Clock, sink and backend outlive
// it. Events reach the sink at the end of a step, or at flush(). Errors of create: Refused, OutOfMemory or Failed, one
// sentence. A request that cannot run, or whose logits are not numbers, is no error of the engine: it finishes as
// Refused, with the sentence as its detail.
#pragma once

#include "core/base/hash.h"
#include "core/cache/block_pool.h"
#include "core/engine/kernel_times.h"
#include "core/engine/kv_store.h"
#include "core/engine/output_text.h"
#include "core/engine/request.h"
#include "core/engine/runner.h"
#include "core/engine/sampler.h"
#include "core/engine/scheduler.h"
#include "core/strategy/strategy.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::engine {

struct EngineOptions {
    strategy::Strategy strategy;
    kernels::Arithmetic arithmetic = kernels::Arithmetic::Fast;
    unsigned threads = 1;
    std::uint64_t seed = 0;
    std::uint64_t freeDeviceBytes = 0; // what a share of kv_memory is a share of
    // For RunStarted, as they are.
    std::string scenarioJson, programVersion, machine;
};

// What a run did as a whole. Bytes are of the KV arena.
struct RunTotals {
    std::uint32_t steps = 0;
    std::uint64_t prefillTokens = 0, decodeTokens = 0; // computed, recomputed ones included
    std::uint64_t capacityBytes = 0, peakBytes = 0;    // peak of active and reserved blocks
    double wasteFraction = 0; // 1 - used / allocated slots at the end of a step, mean over the steps with any allocated
    // Over the requests that sampled anything: of one, its own; of several, XXH3-64 over theirs (u64 little-endian) by
    // id. (Over the logits themselves it would have to keep those of a request until all before it have finished.)
    std::uint64_t logitsHash = 0;
};

class Engine {
public:
    static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Weights> weights, const EngineOptions& options,
                                                  const Clock& clock, trace::EventSink& sink);
    ~Engine();

    // Ids count up from 1. Never fails: see above.
    RequestId submit(Request request);
    // A request that could not even be prepared (no template, an unknown token): arrives and is refused.
    RequestId refuse(std::string title, std::string sentence);

    // False when there is no such unfinished request (preempt: no such running one); then nothing happens.
    bool cancel(RequestId request);
    bool preempt(RequestId request);
    // Notes a command that changes nothing here (pause, resume, ...). Its event comes with the next step, which may
    // never be: no step is begun for it.
    void note(std::string command);

    // One step. False when there is nothing to do; then there is no step and no event.
    bool step();
    bool idle() const { return m_scheduler.idle(); }

    Step nextStep() const { return m_events.step(); }
    // The steps before `step` are left out. REQUIRES: idle, step >= nextStep().
    void skipTo(Step step);
    std::int64_t nowNs() const { return m_events.nowNs(); } // since RunStarted

    void flush() { m_events.flush(); }
    std::uint64_t stateHash() const { return m_hash.value(); }
    std::vector<RequestId> runningRequests() const { return m_scheduler.runningRequests(); }
    const Waiting& waitingFor() const { return m_scheduler.waitingFor(); }
    const cache::BlockCounts& blockCounts() const { return m_pool.counts(); }
    const kernels::KvLayout& layout() const { return m_store.arena().layout; }
    unsigned threads() const { return m_runner->threads(); }
    std::uint32_t maxModelLenTokens() const { return m_maxModelLenTokens; }

    // Of the requests finished since the last call, in the order in which they finished.
    std::vector<RequestResult> takeFinished();
    RunTotals totals() const;

private:
    struct Live;
    Engine(std::unique_ptr<Runner> runner, KvStore store, const EngineOptions& options, std::uint32_t poolBlocks,
           std::uint32_t maxModelLenTokens, const Clock& clock, trace::EventSink& sink);

    void announce(const EngineOptions& options, std::string modelSha256);
    void startStep(const std::vector<ScheduledRows>& plan);
    std::span<const float> forward(const std::vector<ScheduledRows>& plan);
    void sample(const std::vector<ScheduledRows>& plan, std::span<const float> logits);
    void acceptToken(Live& live, const ScheduledRows& rows, std::span<const float> logits);
    void finish(RequestId request, trace::FinishReason reason);
    void hashInOrder(RequestId request, std::optional<std::uint64_t> hash);
    void endStep();
    void checkInvariants() const;

    const Clock& m_clock;
    std::uint32_t m_maxModelLenTokens;
    trace::EventEmitter m_events;
    trace::StateHash m_hash;
    std::unique_ptr<Runner> m_runner;
    KvStore m_store;
    cache::BlockPool m_pool;
    Scheduler m_scheduler;
    Sampler m_sampler;
    KernelTimes m_times;
    std::int64_t m_computeNs = 0; // of the running step

    RequestId m_lastRequest;
    std::map<RequestId, std::unique_ptr<Live>> m_live; // unfinished
    std::vector<RequestResult> m_finished;
    std::vector<std::string> m_notes; // commands of the step about to start

    RunTotals m_totals;
    double m_wasteSum = 0;
    std::uint32_t m_wasteSteps = 0;
    // The requests up to m_hashedUpTo are hashed; those after it wait until all before them have finished.
    StreamingHash m_requestHashes;
    std::uint64_t m_hashedRequests = 0, m_firstHash = 0;
    std::map<RequestId, std::optional<std::uint64_t>> m_hashesAhead;
    RequestId m_hashedUpTo;
};

} // namespace kvatlas::engine

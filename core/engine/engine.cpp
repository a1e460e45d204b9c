// SPDX-License-Identifier: Apache-2.0
#include "core/engine/engine.h"

#include "core/cache/invariants.h"
#include "core/engine/logits.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace kvatlas::engine {

namespace {

// Kernel spans per layer and the memory counter come every so many steps.
constexpr Step kFullSpansEverySteps = 64;

std::uint64_t residentBytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

struct Engine::Live {
    explicit Live(Request&& what)
        : request(std::move(what))
        , tokens(request.promptTokens)
        , text(request.stop) {}

    Request request;
    std::vector<TokenId> tokens; // prompt, then output
    OutputText text;
    StreamingHash logitsHash;
    RequestResult result;
    std::int64_t lastTokenNs = 0;
};

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Weights> weights, const EngineOptions& options,
                                               const Clock& clock, trace::EventSink& sink) {
    const model::ModelConfig& config = weights->config();
    const auto maxModelLen = strategy::maxModelLenFor(options.strategy, config.contextTokens);
    if (!maxModelLen)
        return tl::unexpected(maxModelLen.error());
    const auto layout = strategy::layoutFor(options.strategy, config.layers, config.kvHeads, config.headDim);
    const auto blocks = strategy::poolBlocksFor(options.strategy, layout, *maxModelLen, options.freeDeviceBytes);
    if (!blocks)
        return tl::unexpected(blocks.error());
    auto sha256 = weights->model().sha256();
    if (!sha256)
        return tl::unexpected(sha256.error());
    auto runner = Runner::create(std::move(weights), options.arithmetic, options.threads, *maxModelLen, clock);
    if (!runner)
        return tl::unexpected(runner.error());
    auto store = KvStore::allocate(layout, *blocks);
    if (!store)
        return tl::unexpected(store.error());
    std::unique_ptr<Engine> engine(
        new Engine(std::move(*runner), std::move(*store), options, *blocks, *maxModelLen, clock, sink));
    engine->announce(options, std::move(*sha256));
    return engine;
}

Engine::Engine(std::unique_ptr<Runner> runner, KvStore store, const EngineOptions& options, std::uint32_t poolBlocks,
               std::uint32_t maxModelLenTokens, const Clock& clock, trace::EventSink& sink)
    : m_clock(clock)
    , m_maxModelLenTokens(maxModelLenTokens)
    , m_events(sink, clock)
    , m_runner(std::move(runner))
    , m_store(std::move(store))
    , m_pool(PoolId(0), poolBlocks, options.strategy.blockTokens, m_events, m_hash)
    , m_scheduler({options.strategy.layout, options.strategy.reserve, options.strategy.batching, maxModelLenTokens,
                   options.strategy.maxSequences, options.strategy.chunkTokens},
                  m_pool, m_events, m_hash) {
    m_totals.capacityBytes = m_store.bytes();
}

Engine::~Engine() = default;

void Engine::announce(const EngineOptions& options, std::string modelSha256) {
    const model::Model& model = m_runner->weights().model();
    const model::ModelConfig& config = model.config();
    const kernels::Kernels& backend = m_runner->weights().kernels();
    const std::string name = backend.name, target = backend.target ? backend.target : "";
    trace::RunStarted started;
    started.model = {config.name,       std::move(modelSha256), config.architecture, config.layers,
                     config.queryHeads, config.kvHeads,         config.headDim,      config.contextTokens,
                     config.vocabulary, model.parameters()};
    started.pools.push_back({PoolId(0), trace::Tier::Device, std::string(kernels::nameOf(layout().kFormat)),
                             std::string(kernels::nameOf(layout().vFormat)), m_pool.blocks(), m_pool.blockTokens(),
                             layout().blockBytes()});
    started.backend = target.empty() || target == name ? name : name + ", " + target;
    started.arithmetic = kernels::nameOf(options.arithmetic);
    started.threads = m_runner->threads();
    started.strategyJson = strategy::toJson(options.strategy);
    started.scenarioJson = options.scenarioJson;
    started.seed = options.seed;
    started.programVersion = options.programVersion;
    started.machine = options.machine;
    m_events.emit(std::move(started));
}

RequestId Engine::submit(Request request) {
    const RequestId id(++m_lastRequest.value);
    const auto promptTokens = static_cast<std::uint32_t>(request.promptTokens.size());
    const auto refusal = m_scheduler.refusal(request.promptTokens.size(), request.maxTokens);
    m_events.emit(trace::RequestArrived{id, request.promptTokens, request.maxTokens, request.title});

    const std::uint32_t maxTokens = request.maxTokens;
    auto live = std::make_unique<Live>(std::move(request));
    live->result.request = id;
    live->result.title = live->request.title;
    live->result.promptTokens = promptTokens;
    live->result.detail = refusal.value_or("");
    live->result.arrivedNs = m_events.nowNs();
    m_live.emplace(id, std::move(live));
    if (refusal)
        finish(id, trace::FinishReason::Refused);
    else
        m_scheduler.submit(id, promptTokens, maxTokens);
    return id;
}

RequestId Engine::refuse(std::string title, std::string sentence) {
    const RequestId id(++m_lastRequest.value);
    m_events.emit(trace::RequestArrived{id, {}, 0, title});
    auto live = std::make_unique<Live>(Request{});
    live->result.request = id;
    live->result.title = std::move(title);
    live->result.detail = std::move(sentence);
    live->result.arrivedNs = m_events.nowNs();
    m_live.emplace(id, std::move(live));
    finish(id, trace::FinishReason::Refused);
    return id;
}

bool Engine::cancel(RequestId request) {
    if (!m_scheduler.knows(request))
        return false;
    m_events.emit(trace::CommandApplied{"cancel", request});
    finish(request, trace::FinishReason::Cancelled);
    return true;
}

bool Engine::preempt(RequestId request) {
    const auto running = m_scheduler.runningRequests();
    if (std::ranges::find(running, request) == running.end())
        return false;
    m_events.emit(trace::CommandApplied{"preempt", request});
    return m_scheduler.preempt(request);
}

void Engine::note(std::string command) {
    m_notes.push_back(std::move(command));
}

void Engine::skipTo(Step step) {
    assert(idle() && step >= m_events.step());
    m_events.setStep(step);
}

bool Engine::step() {
    if (m_scheduler.idle()) {
        m_events.flush();
        return false;
    }
    for (std::string& command : std::exchange(m_notes, {}))
        m_events.emit(trace::CommandApplied{std::move(command), RequestId()});
    const std::vector<ScheduledRows> plan = m_scheduler.plan();
    assert(!plan.empty());
    startStep(plan);
    sample(plan, forward(plan));
    endStep();
    return true;
}

void Engine::startStep(const std::vector<ScheduledRows>& plan) {
    trace::StepStarted started;
    started.waitingRequests = m_scheduler.waiting();
    for (const ScheduledRows& rows : plan) {
        started.batch.push_back({rows.sequence, rows.first, rows.tokens, rows.prefill});
        (rows.prefill ? m_totals.prefillTokens : m_totals.decodeTokens) += rows.tokens;
    }
    m_events.emit(std::move(started));
    m_times.begin(m_events.step() % kFullSpansEverySteps == 0);
    const cache::BlockCounts& counts = m_pool.counts();
    m_totals.peakBytes =
        std::max<std::uint64_t>(m_totals.peakBytes, (counts.active + counts.reserved) * layout().blockBytes());
}

std::span<const float> Engine::forward(const std::vector<ScheduledRows>& plan) {
    std::vector<std::vector<std::uint32_t>> tables;
    std::vector<SequenceRows> sequences;
    std::vector<std::uint32_t> wanted;
    std::uint32_t rowsSoFar = 0;
    tables.reserve(plan.size());
    for (const ScheduledRows& rows : plan) {
        std::vector<std::uint32_t>& table = tables.emplace_back();
        for (const BlockId block : m_scheduler.table(rows.request).blocks())
            table.push_back(block.index());
        const std::vector<TokenId>& tokens = m_live.at(rows.request)->tokens;
        sequences.push_back({std::span(tokens).subspan(rows.first, rows.tokens), rows.first, table});
        rowsSoFar += rows.tokens;
        if (rows.samples)
            wanted.push_back(rowsSoFar - 1);
    }
    const std::int64_t beforeNs = m_clock.nowNs();
    const auto logits = m_runner->forward(sequences, wanted, m_store.arena(), m_times);
    m_computeNs = m_clock.nowNs() - beforeNs;
    for (const ScheduledRows& rows : plan)
        m_scheduler.noteComputed(rows);
    return logits;
}

void Engine::sample(const std::vector<ScheduledRows>& plan, std::span<const float> logits) {
    const std::size_t vocabulary = m_runner->weights().config().vocabulary;
    for (const ScheduledRows& rows : plan) {
        if (!rows.samples)
            continue;
        acceptToken(*m_live.at(rows.request), rows, logits.first(vocabulary));
        logits = logits.subspan(vocabulary);
    }
}

void Engine::acceptToken(Live& live, const ScheduledRows& rows, std::span<const float> logits) {
    const model::Tokenizer& tokenizer = m_runner->weights().model().tokenizer();
    const auto position = static_cast<Position>(live.tokens.size());
    if (auto fault = logitsFault(logits)) {
        live.result.detail = std::move(*fault);
        live.result.refusal = ErrorKind::Refused;
        return finish(rows.request, trace::FinishReason::Refused);
    }
    const std::int64_t beforeNs = m_clock.nowNs();
    live.logitsHash.update(std::as_bytes(logits));
    const Sampled sampled = m_sampler.sample(logits, live.request.sampling, rows.request, position);
    m_times.add(trace::KernelKind::Sample, trace::KernelSpan::kAllLayers, m_clock.nowNs() - beforeNs,
                logits.size_bytes(), 0);

    live.tokens.push_back(sampled.token);
    live.result.outputTokens.push_back(sampled.token);
    m_scheduler.noteSampled(rows.request);
    m_events.emit(trace::TokenSampled{rows.request, rows.sequence, position, sampled.token, sampled.top});
    const std::int64_t nowNs = m_events.nowNs();
    if (live.result.firstTokenNs)
        live.result.interTokenNs.push_back(nowNs - live.lastTokenNs);
    else
        live.result.firstTokenNs = nowNs;
    live.lastTokenNs = nowNs;

    const bool isEnd = tokenizer.isEndToken(sampled.token);
    const bool isText = !isEnd && tokenizer.kindOf(sampled.token) != model::TokenKind::Control;
    if (isEnd && !live.request.ignoreEndToken)
        finish(rows.request, trace::FinishReason::EndToken);
    else if (isText && live.text.push(tokenizer.piece(sampled.token)))
        finish(rows.request, trace::FinishReason::StopText);
    else if (live.result.outputTokens.size() >= live.request.maxTokens)
        finish(rows.request, trace::FinishReason::MaxTokens);
    else if (position >= m_maxModelLenTokens) // the new token has no slot
        finish(rows.request, trace::FinishReason::Context);
}

void Engine::finish(RequestId request, trace::FinishReason reason) {
    const std::unique_ptr<Live> live = std::move(m_live.extract(request).mapped());
    RequestResult& result = live->result;
    result.finishReason = reason;
    result.text = live->text.valid();
    result.logitsHash = live->logitsHash.digest();
    if (m_scheduler.knows(request)) {
        result.preemptions = m_scheduler.preemptions(request);
        m_scheduler.finish(request, reason, result.detail);
    } else {
        m_events.emit(trace::RequestFinished{request, reason, 0, result.detail});
    }
    hashInOrder(request, result.outputTokens.empty() ? std::nullopt : std::optional(result.logitsHash));
    m_finished.push_back(std::move(result));
}

void Engine::hashInOrder(RequestId request, std::optional<std::uint64_t> hash) {
    m_hashesAhead.emplace(request, hash);
    for (auto next = m_hashesAhead.begin(); next != m_hashesAhead.end() && next->first.value == m_hashedUpTo.value + 1;
         next = m_hashesAhead.erase(next)) {
        m_hashedUpTo = next->first;
        if (const auto ownHash = next->second) {
            if (m_hashedRequests++ == 0)
                m_firstHash = *ownHash;
            m_requestHashes.update(std::as_bytes(std::span(&*ownHash, 1)));
        }
    }
}

void Engine::endStep() {
    m_times.emit(m_events);
    if (m_events.step() % kFullSpansEverySteps == 0)
        m_events.emit(trace::MemoryCounter{m_store.bytes(), residentBytes()});
    const cache::BlockCounts& counts = m_pool.counts();
    const std::uint64_t allocatedSlots = std::uint64_t{counts.active + counts.reserved} * m_pool.blockTokens();
    if (allocatedSlots > 0) {
        m_wasteSum += 1.0 - static_cast<double>(m_pool.usedSlots()) / static_cast<double>(allocatedSlots);
        ++m_wasteSteps;
    }
    ++m_totals.steps;
    m_events.emit(trace::StepEnded{m_computeNs, m_events.takeWaitedNs(), m_hash.value()});
    checkInvariants();
    m_events.flush();
    m_events.setStep(m_events.step() + 1);
}

void Engine::checkInvariants() const {
#ifdef KVATLAS_CHECKED
    if (const auto broken = cache::brokenInvariant(m_pool, m_scheduler.openTables())) {
        fmt::print(stderr, "kvatlas: step {}: {}\n", m_events.step(), *broken);
        std::abort();
    }
#endif
}

std::vector<RequestResult> Engine::takeFinished() {
    return std::exchange(m_finished, {});
}

RunTotals Engine::totals() const {
    RunTotals totals = m_totals;
    totals.wasteFraction = m_wasteSteps > 0 ? m_wasteSum / m_wasteSteps : 0.0;
    totals.logitsHash = m_hashedRequests == 1 ? m_firstHash : m_requestHashes.digest();
    return totals;
}

} // namespace kvatlas::engine

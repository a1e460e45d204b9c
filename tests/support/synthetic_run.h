// SPDX-License-Identifier: Apache-2.0
// A seeded generator of a legal event stream: what an engine with a paged (or contiguous) pool would say, without a
// model. For tests and benches of everything behind the stream, and for a source that needs no engine. The state hash
// in each StepEnded is computed from the generator's own books, from nothing and in the most obvious way, so that a
// fold which disagrees is found. The same options give the same events on every machine. One thread.
#pragma once

#include "core/trace/event.h"
#include "core/trace/state_hash.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace kvatlas::test {

struct SyntheticOptions {
    std::uint64_t seed = 1;
    std::uint32_t steps = 200;
    std::uint32_t poolBlocks = 256;
    std::uint32_t blockTokens = 16;
    std::uint32_t maxSequences = 8;
    std::uint32_t maxPromptTokens = 96;
    std::uint32_t maxOutputTokens = 64;
    std::uint32_t chunkTokens = 32; // of a prompt per step
    double arrivalsPerStep = 0.2;
    bool contiguous = false;         // reserve a run of blocks for a request's whole length when it starts
    bool samples = true;             // kernel spans and memory counters
    std::int64_t stepNs = 5'000'000; // time from one step to the next
};

class SyntheticRun {
public:
    explicit SyntheticRun(SyntheticOptions options)
        : m_options(options)
        , m_random(options.seed) {
        for (std::uint32_t index = 0; index < options.poolBlocks; ++index)
            m_free.push_back(index);
    }

    bool done() const { return m_step >= m_options.steps; }

    // All events of the next step, those before its StepStarted included. REQUIRES: !done().
    std::vector<trace::Event> nextStep() {
        assert(!done());
        m_out.clear();
        m_ns = std::int64_t{m_step} * m_options.stepNs;
        if (m_step == 0)
            emit(runStarted());
        arrive();
        admit();
        plan();
        compute();
        finish();
        if (m_options.samples)
            emit(trace::MemoryCounter{arenaBytes(), arenaBytes() + 150'000'000 + m_step % 7 * 4096});
        m_ns = (std::int64_t{m_step} + 1) * m_options.stepNs - 1;
        m_hash = hashFromNothing();
        emit(trace::StepEnded{m_options.stepNs * 9 / 10, m_step % 50 == 49 ? 1000 : 0, m_hash});
        ++m_step;
        return m_out;
    }

    std::uint64_t stateHash() const { return m_hash; } // after the newest step

    static std::vector<trace::Event> all(const SyntheticOptions& options) {
        SyntheticRun run(options);
        std::vector<trace::Event> events;
        while (!run.done())
            for (trace::Event& event : run.nextStep())
                events.push_back(std::move(event));
        return events;
    }

    // A vocabulary of 1,000 entries; every 50th ends in the middle of a UTF-8 character and its successor completes it.
    static std::string piece(TokenId token) {
        if (token < 0 || token >= kVocabulary)
            return {};
        if (token % 50 == 49)
            return "\xC3";
        if (token % 50 == 0)
            return "\xA9";
        return " w" + std::to_string(token);
    }

    static constexpr TokenId kVocabulary = 1000;

private:
    // SplitMix64: no std:: distribution, whose results differ between libraries.
    struct Random {
        explicit Random(std::uint64_t seed)
            : state(seed) {}
        std::uint64_t next() {
            std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
            return z ^ (z >> 31);
        }
        std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }
        bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
        std::uint64_t state;
    };

    struct Request {
        RequestId id;
        std::vector<TokenId> tokens; // prompt, then output
        std::uint32_t prompt = 0, maxTokens = 0, preemptions = 0;
        trace::RequestStatus status = trace::RequestStatus::Waiting;
        SequenceId sequence;
        std::uint32_t written = 0; // slots
        std::vector<std::uint32_t> table;
        std::uint32_t active = 0; // of the table; the rest is reserved
        std::uint32_t planned = 0;
        bool leaves = false;
        std::uint32_t outputs() const { return static_cast<std::uint32_t>(tokens.size()) - prompt; }
        std::uint32_t known() const { return static_cast<std::uint32_t>(tokens.size()); }
    };

    template <class Body> void emit(Body body) {
        m_out.push_back(trace::Event{m_step, m_ns, std::move(body)});
        m_ns += 1000;
    }

    trace::RunStarted runStarted() const {
        trace::RunStarted run;
        run.model = {
            "synthetic", std::string(64, 'a'), "llama", 30, 9, 3, 64, 8192, static_cast<std::uint32_t>(kVocabulary),
            134'515'008};
        run.pools = {
            {PoolId(0), trace::Tier::Device, "f16", "f16", m_options.poolBlocks, m_options.blockTokens, blockBytes()}};
        run.backend = "synthetic";
        run.arithmetic = "fast";
        run.threads = 1;
        run.strategyJson = R"({"version": 1, "name": "synthetic", "layout": ")" +
                           std::string(m_options.contiguous ? "contiguous" : "paged") + R"("})";
        run.scenarioJson = R"({"version": 1, "name": "synthetic", "requests": []})";
        run.seed = m_options.seed;
        run.programVersion = "0.1.0";
        run.machine = "a test";
        return run;
    }

    std::uint64_t blockBytes() const { return std::uint64_t{m_options.blockTokens} * 23'040; }
    std::uint64_t arenaBytes() const { return blockBytes() * m_options.poolBlocks; }
    std::uint32_t blocksFor(std::uint32_t tokens) const {
        return (tokens + m_options.blockTokens - 1) / m_options.blockTokens;
    }
    std::uint32_t blocksAtStart(const Request& request) const {
        return m_options.contiguous ? blocksFor(request.prompt + request.maxTokens) : blocksFor(request.known() + 1);
    }
    static BlockId block(std::uint32_t index) { return {PoolId(0), index}; }

    void arrive() {
        double expected = m_options.arrivalsPerStep + (m_step == 0 ? 2 : 0);
        for (; expected >= 1 || (expected > 0 && m_random.chance(expected)); expected -= 1) {
            Request request;
            request.id = RequestId(++m_lastRequest);
            request.prompt = 1 + m_random.below(m_options.maxPromptTokens);
            request.maxTokens = 1 + m_random.below(m_options.maxOutputTokens);
            for (std::uint32_t i = 0; i < request.prompt; ++i)
                request.tokens.push_back(static_cast<TokenId>(m_random.below(kVocabulary)));
            emit(trace::RequestArrived{request.id, request.tokens, request.maxTokens,
                                       "request " + std::to_string(m_lastRequest)});
            if (blocksFor(request.prompt + request.maxTokens) > m_options.poolBlocks) {
                emit(trace::RequestFinished{request.id, trace::FinishReason::Refused, 0,
                                            "more blocks than the pool has"});
                continue;
            }
            m_waiting.push_back(std::move(request));
        }
        if (m_random.chance(0.01))
            emit(trace::CommandApplied{"pause", RequestId(0)});
        if (m_random.chance(0.005))
            emit(trace::EventsLost{1 + m_random.below(100)});
    }

    // The first run of `count` neighbours on the free list; nothing when there is none.
    bool takeRun(std::uint32_t count, std::uint32_t& first) {
        std::vector<std::uint32_t> sorted(m_free.begin(), m_free.end());
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t begin = 0; begin + count <= sorted.size(); ++begin)
            if (sorted[begin + count - 1] == sorted[begin] + count - 1) {
                first = sorted[begin];
                const std::uint32_t from = first;
                std::erase_if(m_free, [&](std::uint32_t index) { return index >= from && index < from + count; });
                return true;
            }
        return false;
    }

    void admit() {
        while (!m_waiting.empty() && m_running.size() < m_options.maxSequences) {
            Request& request = m_waiting.front();
            const std::uint32_t need = blocksAtStart(request);
            std::uint32_t first = 0;
            if (m_options.contiguous ? !takeRun(need, first) : need > m_free.size())
                break;
            if (request.status == trace::RequestStatus::Preempted)
                emit(trace::RequestResumed{request.id});
            else
                emit(trace::RequestAdmitted{request.id, 0});
            request.status = trace::RequestStatus::Running;
            request.sequence = SequenceId(++m_lastSequence);
            emit(trace::SequenceStarted{request.sequence, request.id});
            if (m_options.contiguous) {
                for (std::uint32_t i = 0; i < need; ++i)
                    request.table.push_back(first + i);
                emit(trace::BlocksReserved{request.sequence, 0, block(first), need});
            }
            m_running.push_back(std::move(request));
            m_waiting.pop_front();
        }
    }

    void release(Request& request, trace::ReleaseReason reason) {
        trace::BlocksReleased released{request.sequence, reason, {}};
        for (std::uint32_t index : request.table) {
            released.blocks.push_back(block(index));
            m_free.push_back(index);
        }
        if (!released.blocks.empty())
            emit(std::move(released));
        emit(trace::SequenceEnded{request.sequence});
        request.sequence = SequenceId(0);
        request.table.clear();
        request.active = 0;
        request.planned = 0;
    }

    void preemptYoungest() {
        Request request = std::move(m_running.back());
        m_running.pop_back();
        release(request, trace::ReleaseReason::Preempted);
        emit(trace::RequestPreempted{request.id, trace::PreemptionReason::BlocksExhausted, request.written});
        request.written = 0;
        request.status = trace::RequestStatus::Preempted;
        ++request.preemptions;
        m_waiting.push_front(std::move(request));
    }

    void plan() {
        for (std::size_t i = 0; i < m_running.size(); ++i) {
            const std::uint32_t missing = m_running[i].known() - m_running[i].written;
            const std::uint32_t tokens = std::min(missing, m_options.chunkTokens);
            const std::uint32_t need = blocksFor(m_running[i].written + tokens) - m_running[i].active;
            if (!m_options.contiguous)
                while (need > m_free.size() && m_running.size() > i + 1)
                    preemptYoungest();
            Request& request = m_running[i];
            if (!m_options.contiguous && need > m_free.size()) {
                request.planned = 0;
                continue;
            }
            request.planned = tokens;
            if (need == 0)
                continue;
            trace::BlocksAllocated allocated{request.sequence, request.active, {}};
            for (std::uint32_t n = 0; n < need; ++n) {
                if (!m_options.contiguous) {
                    request.table.push_back(m_free.front());
                    m_free.pop_front();
                }
                allocated.blocks.push_back(block(request.table[request.active++]));
            }
            emit(std::move(allocated));
        }
    }

    void compute() {
        trace::StepStarted started;
        for (const Request& request : m_running)
            if (request.planned > 0)
                started.batch.push_back({request.sequence, request.written, request.planned,
                                         request.written + request.planned <= request.prompt || request.planned > 1});
        started.waitingRequests = static_cast<std::uint32_t>(m_waiting.size());
        emit(std::move(started));
        if (m_options.samples)
            for (std::uint8_t kernel = 1; kernel <= 10; ++kernel)
                emit(trace::KernelSpan{static_cast<trace::KernelKind>(kernel), LayerId(trace::KernelSpan::kAllLayers),
                                       30, 100'000 + m_random.below(50'000), 8'000'000 + m_random.below(1000),
                                       24'000'000});
        for (Request& request : m_running) {
            if (request.planned == 0)
                continue;
            emit(trace::SlotsWritten{request.sequence, request.written, request.planned});
            request.written += request.planned;
            request.planned = 0;
            if (request.written == request.known())
                sample(request);
        }
    }

    void sample(Request& request) {
        trace::TokenSampled sampled{
            request.id, request.sequence, request.known(), static_cast<TokenId>(m_random.below(kVocabulary)), {}};
        float probability = 0.5f;
        for (std::size_t i = 0; i < sampled.top.size(); ++i, probability /= 2)
            sampled.top[i] = {static_cast<TokenId>((static_cast<std::uint32_t>(sampled.token) + i * 37) % kVocabulary),
                              probability};
        emit(sampled);
        request.tokens.push_back(sampled.token);
        request.leaves = request.outputs() >= request.maxTokens || m_random.chance(0.02);
    }

    void finish() {
        for (Request& request : m_running) {
            if (!request.leaves)
                continue;
            release(request, trace::ReleaseReason::Finished);
            const bool full = request.outputs() >= request.maxTokens;
            emit(trace::RequestFinished{request.id,
                                        full ? trace::FinishReason::MaxTokens : trace::FinishReason::EndToken,
                                        request.outputs(), ""});
        }
        std::erase_if(m_running, [](const Request& request) { return request.leaves; });
    }

    std::uint64_t hashFromNothing() const {
        trace::StateHash hash;
        const auto addRequest = [&](const Request& request) {
            hash.add(trace::requestElement(request.id, request.status, request.prompt, request.outputs(),
                                           request.preemptions));
        };
        for (const Request& request : m_waiting)
            addRequest(request);
        for (const Request& request : m_running) {
            addRequest(request);
            hash.add(trace::sequenceElement(request.sequence, request.id, request.written));
            for (std::uint32_t logical = 0; logical < request.table.size(); ++logical) {
                const std::uint32_t begin = logical * m_options.blockTokens;
                const std::uint32_t used =
                    request.written > begin ? std::min(request.written - begin, m_options.blockTokens) : 0;
                const bool active = logical < request.active;
                hash.add(trace::blockElement(block(request.table[logical]),
                                             active ? trace::BlockKind::Active : trace::BlockKind::Reserved, 1, used));
                hash.add(trace::tableElement(request.sequence, logical, block(request.table[logical])));
            }
        }
        return hash.value();
    }

    SyntheticOptions m_options;
    Random m_random;
    Step m_step = 0;
    std::int64_t m_ns = 0;
    std::uint64_t m_hash = 0;
    std::uint64_t m_lastRequest = 0;
    std::uint32_t m_lastSequence = 0;
    std::deque<std::uint32_t> m_free;
    std::deque<Request> m_waiting;
    std::vector<Request> m_running;
    std::vector<trace::Event> m_out;
};

} // namespace kvatlas::test

// SPDX-License-Identifier: Apache-2.0
// The small text notation of cache events: "run blocks=8 tokens=4 | arrive r1 5 | ... | expect b0 active refs=1" ->
// events -> fold -> printed state. Bug reports, unit tests and documents use the same lines. One thread.
//
//   run blocks=N tokens=N           one device pool of N blocks of N tokens, 1,000 bytes per token
//   arrive rR N [max=N]             a prompt of the tokens 1..N
//   admit rR | preempt rR | resume rR | finish rR | start sS rR | stop sS
//   alloc sS bB... | reserve sS bB N | free sS [bB...]    free alone: the whole table in reverse
//   step [sS:N[p] ...]              the batch; p = prefill; first positions follow from the slots written
//   write sS N | sample rR T | end [hash=N]
//   expect bB KIND [refs=N] [used=N] [owner=sS]
// Every event takes the step about to start, or the one that runs. Positions and logical indices that the line leaves
// out are those that fit; "at=N" on alloc, reserve, write and sample says another.
#pragma once

#include "core/state/cache_state.h"

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::test {

class StateNotation {
public:
    state::CacheState state;
    std::vector<trace::Event> events;

    // Empty, or what the first event that did not fit (or expectation that did not hold) was refused with.
    std::string run(std::string_view text) {
        while (!text.empty()) {
            const std::size_t bar = text.find('|');
            const std::string_view line = text.substr(0, bar);
            text = bar == std::string_view::npos ? std::string_view() : text.substr(bar + 1);
            if (std::string problem = runLine(line); !problem.empty())
                return problem;
        }
        return {};
    }

    // One line per request, sequence, block in use and pool.
    std::string print() { return print(*state.snapshot()); }

    static std::string print(const state::Snapshot& snapshot) {
        std::string out;
        for (const state::RequestState& request : snapshot.requests)
            out += fmt::format("r{} {} {}+{} preempted={}\n", request.request.value, wordOf(request.status),
                               request.promptTokens, request.outputTokens, request.preemptions);
        for (const state::SequenceState& sequence : snapshot.sequences) {
            out += fmt::format("s{} r{} written={} table:", sequence.sequence.value, sequence.request.value,
                               sequence.slotsWritten);
            for (const BlockId block : *sequence.table)
                out += fmt::format(" b{}", block.index());
            out += '\n';
        }
        for (const state::PoolState& pool : snapshot.pools) {
            for (std::uint32_t i = 0; i < pool.shape.blocks; ++i)
                if (const state::BlockState& block = pool.block(i); block.kind != trace::BlockKind::Free)
                    out += fmt::format("b{} {} refs={} used={} owner=s{}[{}]\n", i, wordOf(block.kind),
                                       block.references, block.usedSlots, block.owner.value, block.logical);
            out += fmt::format("pool free={} active={} cached={} reserved={} used={}\n", pool.counts.free,
                               pool.counts.active, pool.counts.cached, pool.counts.reserved, pool.usedSlots);
        }
        return out;
    }

private:
    struct Line {
        std::string verb;
        std::vector<std::string> words;
        std::map<std::string, std::uint32_t> keys;

        std::uint32_t number(std::size_t word) const { return parse(words.at(word)); }
        std::uint32_t key(const std::string& name, std::uint32_t otherwise) const {
            const auto at = keys.find(name);
            return at == keys.end() ? otherwise : at->second;
        }
        static std::uint32_t parse(std::string_view word) {
            if (!word.empty() && (word[0] == 'r' || word[0] == 's' || word[0] == 'b'))
                word.remove_prefix(1);
            std::uint32_t value = 0;
            std::from_chars(word.data(), word.data() + word.size(), value);
            return value;
        }
    };

    static Line parseLine(std::string_view text) {
        Line line;
        std::size_t at = 0;
        while (at < text.size()) {
            const std::size_t begin = text.find_first_not_of(" \n", at);
            if (begin == std::string_view::npos)
                break;
            const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
            const std::string word(text.substr(begin, end - begin));
            at = end;
            const std::size_t equals = word.find('=');
            if (line.verb.empty())
                line.verb = word;
            else if (equals == std::string::npos)
                line.words.push_back(word);
            else
                line.keys[word.substr(0, equals)] = Line::parse(word.substr(equals + 1));
        }
        return line;
    }

    static BlockId block(std::uint32_t index) { return {PoolId(0), index}; }

    std::uint32_t activeBlocks(const state::Snapshot& now, SequenceId id) const {
        std::uint32_t active = 0;
        for (const state::SequenceState& sequence : now.sequences)
            if (sequence.sequence == id)
                for (const BlockId entry : *sequence.table)
                    active += now.pools[0].block(entry.index()).kind == trace::BlockKind::Active ? 1 : 0;
        return active;
    }
    static const state::SequenceState* find(const state::Snapshot& now, SequenceId id) {
        for (const state::SequenceState& sequence : now.sequences)
            if (sequence.sequence == id)
                return &sequence;
        return nullptr;
    }
    static const state::RequestState* find(const state::Snapshot& now, RequestId id) {
        for (const state::RequestState& request : now.requests)
            if (request.request == id)
                return &request;
        return nullptr;
    }

    std::string runLine(std::string_view text) {
        const Line line = parseLine(text);
        if (line.verb.empty())
            return {};
        const auto now = state.snapshot();
        if (line.verb == "expect")
            return expect(line, *now);
        trace::EventBody body = requestBody(line);
        if (std::holds_alternative<std::monostate>(body))
            body = blockBody(line, *now);
        if (std::holds_alternative<std::monostate>(body))
            return "unknown word " + line.verb;
        const Step step = now->stepEnded ? now->step + 1 : now->step;
        events.push_back({step, std::int64_t(events.size()) * 1000, std::move(body)});
        const auto folded = state.apply(events.back());
        if (folded)
            return {};
        events.pop_back();
        return folded.error().message;
    }

    static trace::EventBody requestBody(const Line& line) {
        if (line.verb == "run") {
            trace::RunStarted run;
            run.model.vocabulary = 1000;
            const std::uint32_t tokens = line.key("tokens", 16);
            run.pools = {{PoolId(0), trace::Tier::Device, "f16", "f16", line.key("blocks", 8), tokens,
                          std::uint64_t{tokens} * 1000}};
            return run;
        }
        if (line.verb == "arrive") {
            trace::RequestArrived arrived{RequestId(line.number(0)), {}, line.key("max", 8), "request"};
            for (std::uint32_t i = 1; i <= line.number(1); ++i)
                arrived.promptTokens.push_back(static_cast<TokenId>(i));
            return arrived;
        }
        if (line.verb == "admit")
            return trace::RequestAdmitted{RequestId(line.number(0)), line.key("cached", 0)};
        if (line.verb == "preempt")
            return trace::RequestPreempted{RequestId(line.number(0)), trace::PreemptionReason::BlocksExhausted, 0};
        if (line.verb == "resume")
            return trace::RequestResumed{RequestId(line.number(0))};
        if (line.verb == "finish")
            return trace::RequestFinished{RequestId(line.number(0)), trace::FinishReason::EndToken,
                                          line.key("output", 0), ""};
        if (line.verb == "start")
            return trace::SequenceStarted{SequenceId(line.number(0)), RequestId(line.number(1))};
        if (line.verb == "stop")
            return trace::SequenceEnded{SequenceId(line.number(0))};
        return std::monostate{};
    }

    trace::EventBody blockBody(const Line& line, const state::Snapshot& now) const {
        if (line.verb == "step") {
            trace::StepStarted started;
            for (const std::string& word : line.words) {
                const SequenceId id(Line::parse(word.substr(0, word.find(':'))));
                const state::SequenceState* sequence = find(now, id);
                started.batch.push_back({id, line.key("at", sequence ? sequence->slotsWritten : 0),
                                         Line::parse(word.substr(word.find(':') + 1)), word.back() == 'p'});
            }
            return started;
        }
        if (line.verb == "end")
            return trace::StepEnded{1, 0, line.key("hash", 0)};
        if (line.verb == "sample") {
            const state::RequestState* request = find(now, RequestId(line.number(0)));
            return trace::TokenSampled{RequestId(line.number(0)),
                                       request ? request->sequence : SequenceId(0),
                                       line.key("at", request ? static_cast<Position>(request->tokens->size()) : 0),
                                       static_cast<TokenId>(line.number(1)),
                                       {}};
        }
        if (line.verb != "alloc" && line.verb != "reserve" && line.verb != "free" && line.verb != "write")
            return std::monostate{};
        const SequenceId id(line.number(0));
        const state::SequenceState* sequence = find(now, id);
        if (line.verb == "write")
            return trace::SlotsWritten{id, line.key("at", sequence ? sequence->slotsWritten : 0), line.number(1)};
        if (line.verb == "reserve")
            return trace::BlocksReserved{
                id, line.key("at", sequence ? static_cast<std::uint32_t>(sequence->table->size()) : 0),
                block(line.number(1)), line.number(2)};
        std::vector<BlockId> blocks;
        for (std::size_t i = 1; i < line.words.size(); ++i)
            blocks.push_back(block(line.number(i)));
        if (line.verb == "alloc")
            return trace::BlocksAllocated{id, line.key("at", activeBlocks(now, id)), blocks};
        if (blocks.empty() && sequence)
            blocks.assign(sequence->table->rbegin(), sequence->table->rend());
        return trace::BlocksReleased{id, trace::ReleaseReason::Finished, blocks};
    }

    static std::string expect(const Line& line, const state::Snapshot& now) {
        const state::BlockState& found = now.pools.at(0).block(line.number(0));
        std::string got = fmt::format("b{} {} refs={} used={} owner=s{}", line.number(0), wordOf(found.kind),
                                      found.references, found.usedSlots, found.owner.value);
        const bool holds = line.words.at(1) == wordOf(found.kind) &&
                           line.key("refs", found.references) == found.references &&
                           line.key("used", found.usedSlots) == found.usedSlots &&
                           line.key("owner", found.owner.value) == found.owner.value;
        return holds ? std::string() : "got " + got;
    }
};

} // namespace kvatlas::test

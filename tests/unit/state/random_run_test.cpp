// SPDX-License-Identifier: Apache-2.0
// Random legal runs against a naive model that keeps plain maps, and the invariants after every event; then the same
// runs with events left out, doubled and swapped, of which none may break the state.
#include "core/state/cache_state.h"
#include "core/state/invariants.h"
#include "tests/support/synthetic_run.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace kvatlas::state {
namespace {

using test::SyntheticOptions;
using test::SyntheticRun;

// The slow, obvious fold: a block's state is looked up in the tables, nothing is kept twice.
struct Naive {
    struct Table {
        RequestId request;
        std::vector<BlockId> blocks;
        std::set<BlockId> reserved;
        std::uint32_t written = 0;
    };
    std::uint32_t blockTokens = 1, poolBlocks = 0;
    std::map<std::uint32_t, Table> tables;
    std::map<std::uint64_t, std::vector<TokenId>> tokens;

    void apply(const trace::Event& event) {
        if (const auto* run = std::get_if<trace::RunStarted>(&event.body)) {
            blockTokens = run->pools[0].blockTokens;
            poolBlocks = run->pools[0].blocks;
        } else if (const auto* arrived = std::get_if<trace::RequestArrived>(&event.body)) {
            tokens[arrived->request.value] = arrived->promptTokens;
        } else if (const auto* sampled = std::get_if<trace::TokenSampled>(&event.body)) {
            tokens[sampled->request.value].push_back(sampled->token);
        } else if (const auto* finished = std::get_if<trace::RequestFinished>(&event.body)) {
            tokens.erase(finished->request.value);
        } else if (const auto* started = std::get_if<trace::SequenceStarted>(&event.body)) {
            tables[started->sequence.value].request = started->request;
        } else if (const auto* ended = std::get_if<trace::SequenceEnded>(&event.body)) {
            tables.erase(ended->sequence.value);
        } else if (const auto* allocated = std::get_if<trace::BlocksAllocated>(&event.body)) {
            Table& table = tables[allocated->sequence.value];
            for (const BlockId block : allocated->blocks)
                if (table.reserved.erase(block) == 0)
                    table.blocks.push_back(block);
        } else if (const auto* reserved = std::get_if<trace::BlocksReserved>(&event.body)) {
            Table& table = tables[reserved->sequence.value];
            for (std::uint32_t i = 0; i < reserved->count; ++i) {
                table.blocks.emplace_back(PoolId(0), reserved->first.index() + i);
                table.reserved.insert(table.blocks.back());
            }
        } else if (const auto* released = std::get_if<trace::BlocksReleased>(&event.body)) {
            Table& table = tables[released->sequence.value];
            table.blocks.clear();
            table.reserved.clear();
            table.written = 0;
        } else if (const auto* written = std::get_if<trace::SlotsWritten>(&event.body)) {
            tables[written->sequence.value].written = written->firstPosition + written->count;
        }
    }

    BlockState block(BlockId id) const {
        BlockState found;
        for (const auto& [sequence, table] : tables)
            for (std::uint32_t logical = 0; logical < table.blocks.size(); ++logical)
                if (table.blocks[logical] == id) {
                    found.kind = table.reserved.contains(id) ? BlockKind::Reserved : BlockKind::Active;
                    ++found.references;
                    found.owner = SequenceId(sequence);
                    found.request = table.request;
                    found.logical = logical;
                    const std::uint32_t begin = logical * blockTokens;
                    found.usedSlots = std::min(blockTokens, table.written > begin ? table.written - begin : 0u);
                }
        return found;
    }
};

void expectLikeNaive(const Naive& naive, const Snapshot& snapshot) {
    for (std::uint32_t i = 0; i < naive.poolBlocks; ++i) {
        BlockState got = snapshot.pools[0].block(i);
        got.changedStep = got.writtenStep = 0; // the naive model keeps no steps
        EXPECT_EQ(got, naive.block(BlockId(PoolId(0), i))) << "block " << i;
    }
    ASSERT_EQ(snapshot.requests.size(), naive.tokens.size());
    for (const RequestState& request : snapshot.requests)
        EXPECT_EQ(*request.tokens, naive.tokens.at(request.request.value));
    ASSERT_EQ(snapshot.sequences.size(), naive.tables.size());
    for (const SequenceState& sequence : snapshot.sequences) {
        EXPECT_EQ(*sequence.table, naive.tables.at(sequence.sequence.value).blocks);
        EXPECT_EQ(sequence.slotsWritten, naive.tables.at(sequence.sequence.value).written);
    }
}

SyntheticOptions saturated(std::uint64_t seed) {
    SyntheticOptions options;
    options.seed = seed;
    options.steps = 120;
    options.blockTokens = 1 + static_cast<std::uint32_t>(seed % 5);
    options.poolBlocks = 30 + static_cast<std::uint32_t>(seed % 3) * 20;
    options.maxPromptTokens = 30;
    options.maxOutputTokens = 20;
    options.chunkTokens = 7;
    options.arrivalsPerStep = 0.8;
    options.contiguous = seed % 2 == 1;
    return options;
}

class RandomRun : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomRun, foldsLikeTheNaiveModelAndKeepsTheInvariants) {
    CacheState state;
    Naive naive;
    for (const trace::Event& event : SyntheticRun::all(saturated(GetParam()))) {
        const auto folded = state.apply(event);
        ASSERT_TRUE(folded) << folded.error().message;
        naive.apply(event);
        const auto snapshot = state.snapshot();
        const auto sound = checkInvariants(*snapshot);
        ASSERT_TRUE(sound) << sound.error().message << " after " << trace::nameOf(event.kind());
        if (std::holds_alternative<trace::StepEnded>(event.body))
            expectLikeNaive(naive, *snapshot);
        ASSERT_FALSE(HasFailure());
    }
}

TEST_P(RandomRun, damagedStreamsNeverBreakTheState) {
    std::mt19937_64 random(GetParam());
    auto events = SyntheticRun::all(saturated(GetParam()));
    for (int i = 0; i < 30; ++i) {
        const std::size_t at = 1 + random() % (events.size() - 1);
        switch (random() % 3) {
        case 0:
            events.erase(events.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        case 1:
            events.insert(events.begin() + static_cast<std::ptrdiff_t>(at), events[at]);
            break;
        default:
            std::swap(events[at], events[1 + random() % (events.size() - 1)]);
        }
    }
    CacheState state;
    int refused = 0;
    for (trace::Event& event : events) {
        if (auto* ended = std::get_if<trace::StepEnded>(&event.body))
            ended->stateHash = 0; // the engine's hash would end the run at the first gap
        const std::uint64_t before = state.stateHash();
        if (!state.apply(event)) {
            ++refused;
            EXPECT_EQ(state.stateHash(), before);
        }
        const auto sound = checkInvariants(*state.snapshot());
        ASSERT_TRUE(sound) << sound.error().message;
    }
    EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRun, testing::Range<std::uint64_t>(1, 13));

} // namespace
} // namespace kvatlas::state

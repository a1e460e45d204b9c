// SPDX-License-Identifier: Apache-2.0
// Model-based random test of the block pool: the same operations on the pool and on a naive model, everything compared
// after each one, the invariants checked, and the event log folded into a second model that must agree as well.
#include "core/cache/block_pool.h"
#include "core/cache/invariants.h"
#include "tests/support/event_log.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>

namespace kvatlas::cache {
namespace {

using trace::BlockKind;

enum class OpKind : std::uint8_t { Open, Reserve, Grow, Write, Finish, Preempt };

// Which table and how many tokens or blocks is decided by `pick` and `amount` in the state that the operation meets, so
// that any subset of a list of operations is a legal list.
struct Op {
    OpKind kind = OpKind::Open;
    std::uint32_t pick = 0, amount = 0;
};

struct NaiveSequence {
    std::vector<std::uint32_t> blocks;
    std::uint32_t active = 0, written = 0;
};

// What the pool should be, written for obviousness.
struct NaivePool {
    std::uint32_t blocks, blockTokens;
    std::deque<std::uint32_t> freeList;
    std::map<std::uint32_t, NaiveSequence> sequences;

    NaivePool(std::uint32_t n, std::uint32_t tokens)
        : blocks(n)
        , blockTokens(tokens) {
        for (std::uint32_t i = 0; i < n; ++i)
            freeList.push_back(i);
    }
    bool isFree(std::uint32_t block) const { return std::ranges::find(freeList, block) != freeList.end(); }

    bool reserve(NaiveSequence& sequence, std::uint32_t count) {
        for (std::uint32_t first = 0; first + count <= blocks; ++first) {
            bool fits = true;
            for (std::uint32_t i = 0; i < count; ++i)
                fits = fits && isFree(first + i);
            if (!fits)
                continue;
            for (std::uint32_t i = 0; i < count; ++i) {
                sequence.blocks.push_back(first + i);
                std::erase(freeList, first + i);
            }
            return true;
        }
        return false;
    }
    bool grow(NaiveSequence& sequence, std::uint32_t tokens) {
        std::uint32_t wanted = 0;
        while (wanted * blockTokens < tokens)
            ++wanted;
        if (wanted > sequence.blocks.size() + freeList.size())
            return false;
        while (sequence.blocks.size() < wanted) {
            sequence.blocks.push_back(freeList.front());
            freeList.pop_front();
        }
        sequence.active = std::max(sequence.active, wanted);
        return true;
    }
    void close(std::uint32_t id) {
        NaiveSequence& sequence = sequences.at(id);
        for (auto it = sequence.blocks.rbegin(); it != sequence.blocks.rend(); ++it)
            freeList.push_back(*it);
        sequences.erase(id);
    }
    std::uint64_t hash() const {
        trace::StateHash hash;
        for (const auto& [id, sequence] : sequences) {
            hash.add(trace::sequenceElement(SequenceId(id), RequestId(id), sequence.written));
            for (std::uint32_t i = 0; i < sequence.blocks.size(); ++i) {
                const BlockId block(PoolId(3), sequence.blocks[i]);
                std::uint32_t used = 0;
                for (std::uint32_t slot = i * blockTokens; slot < (i + 1) * blockTokens; ++slot)
                    used += slot < sequence.written ? 1 : 0;
                hash.add(trace::tableElement(SequenceId(id), i, block));
                hash.add(
                    trace::blockElement(block, i < sequence.active ? BlockKind::Active : BlockKind::Reserved, 1, used));
            }
        }
        return hash.value();
    }
};

// Rebuilds the tables and the free list from nothing but the events.
struct FoldedLog {
    NaivePool pool;

    void apply(const trace::Event& event) {
        if (const auto* started = std::get_if<trace::SequenceStarted>(&event.body)) {
            pool.sequences[started->sequence.value];
        } else if (const auto* ended = std::get_if<trace::SequenceEnded>(&event.body)) {
            pool.sequences.erase(ended->sequence.value);
        } else if (const auto* reserved = std::get_if<trace::BlocksReserved>(&event.body)) {
            for (std::uint32_t i = 0; i < reserved->count; ++i) {
                pool.sequences.at(reserved->sequence.value).blocks.push_back(reserved->first.index() + i);
                std::erase(pool.freeList, reserved->first.index() + i);
            }
        } else if (const auto* allocated = std::get_if<trace::BlocksAllocated>(&event.body)) {
            NaiveSequence& sequence = pool.sequences.at(allocated->sequence.value);
            ASSERT_EQ(allocated->firstLogical, sequence.active);
            for (const BlockId block : allocated->blocks) {
                if (sequence.active == sequence.blocks.size()) {
                    sequence.blocks.push_back(block.index());
                    std::erase(pool.freeList, block.index());
                }
                ASSERT_EQ(sequence.blocks[sequence.active++], block.index());
            }
        } else if (const auto* written = std::get_if<trace::SlotsWritten>(&event.body)) {
            NaiveSequence& sequence = pool.sequences.at(written->sequence.value);
            ASSERT_EQ(written->firstPosition, sequence.written);
            sequence.written += written->count;
        } else if (const auto* released = std::get_if<trace::BlocksReleased>(&event.body)) {
            for (const BlockId block : released->blocks)
                pool.freeList.push_back(block.index());
            pool.sequences.at(released->sequence.value) = {};
        }
    }
};

class Driver {
public:
    Driver(std::uint32_t blocks, std::uint32_t blockTokens)
        : m_events(m_log, m_clock)
        , m_pool(PoolId(3), blocks, blockTokens, m_events, m_hash)
        , m_naive(blocks, blockTokens)
        , m_folded{NaivePool(blocks, blockTokens)} {}

    // What went wrong at the first operation that goes wrong.
    std::optional<std::string> run(std::span<const Op> ops) {
        for (std::size_t i = 0; i < ops.size(); ++i)
            if (auto wrong = step(ops[i]))
                return fmt::format("operation {}: {}", i, *wrong);
        return std::nullopt;
    }

private:
    std::optional<std::string> step(const Op& op) {
        if (op.kind == OpKind::Open || op.kind == OpKind::Reserve) {
            const std::uint32_t id = ++m_ids;
            m_tables[id] = m_pool.open(SequenceId(id), RequestId(id));
            m_naive.sequences[id];
            if (op.kind == OpKind::Reserve) {
                const std::uint32_t count = 1 + op.amount % m_naive.blocks;
                if (m_pool.reserveRun(m_tables[id], count) != m_naive.reserve(m_naive.sequences[id], count))
                    return fmt::format("reserving {} blocks", count);
            }
        } else if (!m_tables.empty()) {
            const auto it = std::next(m_tables.begin(), op.pick % m_tables.size());
            NaiveSequence& sequence = m_naive.sequences.at(it->first);
            if (op.kind == OpKind::Grow) {
                const std::uint32_t tokens = sequence.written + 1 + op.amount % (3 * m_naive.blockTokens);
                if (m_pool.grow(it->second, tokens) != m_naive.grow(sequence, tokens))
                    return fmt::format("growing to {} tokens", tokens);
            } else if (op.kind == OpKind::Write) {
                const std::uint32_t room = sequence.active * m_naive.blockTokens - sequence.written;
                if (room > 0) {
                    const std::uint32_t count = 1 + op.amount % room;
                    m_pool.writeSlots(it->second, count);
                    sequence.written += count;
                }
            } else {
                m_pool.close(it->second, op.kind == OpKind::Finish ? trace::ReleaseReason::Finished
                                                                   : trace::ReleaseReason::Preempted);
                m_naive.close(it->first);
                m_tables.erase(it);
            }
        }
        return compare();
    }

    std::optional<std::string> compare() {
        std::vector<const BlockTable*> live;
        for (const auto& [id, table] : m_tables)
            live.push_back(&table);
        if (auto broken = brokenInvariant(m_pool, live))
            return broken;

        m_events.flush();
        for (const trace::Event& event : m_log.events)
            m_folded.apply(event);
        m_log.events.clear();
        const std::uint64_t expectedHash = m_naive.hash();
        if (m_hash.value() != expectedHash)
            return "the state hash is not the sum of its elements";
        if (m_folded.pool.hash() != expectedHash)
            return "the folded events give another state";
        const auto list = m_pool.freeList();
        if (!std::ranges::equal(list, m_naive.freeList) || !std::ranges::equal(list, m_folded.pool.freeList))
            return "the free lists differ";
        for (const auto& [id, table] : m_tables) {
            const NaiveSequence& sequence = m_naive.sequences.at(id);
            const auto index = [](BlockId block) { return block.index(); };
            if (!std::ranges::equal(table.blocks(), sequence.blocks, {}, index) ||
                table.activeBlocks() != sequence.active || table.slotsWritten() != sequence.written)
                return fmt::format("the tables of sequence {} differ", id);
        }
        return std::nullopt;
    }

    testing::EventLog m_log;
    ManualClock m_clock;
    trace::EventEmitter m_events;
    trace::StateHash m_hash;
    BlockPool m_pool;
    std::map<std::uint32_t, BlockTable> m_tables;
    std::uint32_t m_ids = 0;
    NaivePool m_naive;
    FoldedLog m_folded;
};

std::vector<Op> randomOps(std::uint32_t seed, std::size_t count) {
    std::mt19937 random(seed);
    // Weighted towards growing and writing, so that the pool is nearly always saturated.
    constexpr OpKind kinds[] = {OpKind::Open,  OpKind::Open,   OpKind::Reserve, OpKind::Grow,
                                OpKind::Grow,  OpKind::Grow,   OpKind::Write,   OpKind::Write,
                                OpKind::Write, OpKind::Finish, OpKind::Preempt};
    std::vector<Op> ops(count);
    for (Op& op : ops) {
        op.kind = kinds[random() % std::size(kinds)];
        op.pick = static_cast<std::uint32_t>(random());
        op.amount = static_cast<std::uint32_t>(random());
    }
    return ops;
}

std::string shrunk(std::vector<Op> ops, std::uint32_t blocks, std::uint32_t blockTokens) {
    for (std::size_t i = ops.size(); i-- > 0;) {
        auto fewer = ops;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (Driver(blocks, blockTokens).run(fewer))
            ops = std::move(fewer);
    }
    std::string text;
    for (const Op& op : ops)
        text += fmt::format("{{{}, {}, {}}} ", static_cast<int>(op.kind), op.pick, op.amount);
    return text;
}

class PoolAgainstModel : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(PoolAgainstModel, agreesAfterEveryOperation) {
    const std::uint32_t blockTokens = GetParam();
    constexpr std::size_t kOps = 200; // x 16 seeds x 64 pool sizes x 5 block sizes: 1,024,000 operations
    for (std::uint32_t blocks = 1; blocks <= 64; ++blocks)
        for (std::uint32_t seed = 1; seed <= 16; ++seed) {
            const auto ops = randomOps(seed * 1000 + blocks, kOps);
            const auto wrong = Driver(blocks, blockTokens).run(ops);
            ASSERT_FALSE(wrong) << *wrong << "; " << blocks << " blocks of " << blockTokens << ", seed " << seed
                                << "; shrunk: " << shrunk(ops, blocks, blockTokens);
        }
}

INSTANTIATE_TEST_SUITE_P(BlockTokens, PoolAgainstModel, ::testing::Values(1, 2, 4, 16, 64));

} // namespace
} // namespace kvatlas::cache

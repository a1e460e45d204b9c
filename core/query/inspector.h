// SPDX-License-Identifier: Apache-2.0
// All that is known of one block or one request, as rows of name and value. Pure; any thread.
#pragma once

#include "core/query/number_text.h"
#include "core/state/snapshot.h"
#include "core/trace/rows.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvatlas::query {

struct Fact {
    std::string name, value;
    friend bool operator==(const Fact&, const Fact&) = default;
};

struct SlotToken {
    std::uint32_t slot = 0;       // in the block
    Position position = 0;        // in the sequence
    std::optional<TokenId> token; // none: the slot is empty, or its request is gone
    bool written = false;
    friend bool operator==(const SlotToken&, const SlotToken&) = default;
};

struct BlockFacts {
    BlockId block;
    std::string title, subtitle; // "Block 131", "device pool 0, f16"
    std::vector<Fact> facts;
    std::vector<RequestId> usedBy; // requests whose tables name it, by id
    std::vector<SlotToken> slots;  // all block_tokens of them; empty for a free block
};

// Why a request finished, in two words: "token limit".
std::string finishText(trace::FinishReason reason);

// Since when a block is what it is: "Freed", "step 12" or "never used".
Fact lastChange(const state::BlockState& block, Thousands separator = Thousands::NoBreak);

// None: there is no such block.
std::optional<BlockFacts> blockFacts(const state::Snapshot& snapshot, BlockId id,
                                     Thousands separator = Thousands::NoBreak);

struct RequestFacts {
    RequestId request;
    std::string title, subtitle; // "Request 16", its own title
    std::vector<Fact> facts;
    std::vector<BlockId> blocks; // its table
};

// None: the request is unknown, or finished at this step (then its row says more).
std::optional<RequestFacts> requestFacts(const state::Snapshot& snapshot, RequestId id,
                                         Thousands separator = Thousands::NoBreak);
// As a finished run's table has it; of a request that arrives after `step`, only that it will.
RequestFacts requestFacts(const trace::RequestRow& row, Step step, Thousands separator = Thousands::NoBreak);

} // namespace kvatlas::query

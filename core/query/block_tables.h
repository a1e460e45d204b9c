// SPDX-License-Identifier: Apache-2.0
// The block tables: a row per sequence, its blocks in logical order with their physical ids. Only the rows and cells
// asked for are computed. Pure; any thread.
#pragma once

#include "core/query/memory_map.h"
#include "core/state/snapshot.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvatlas::query {

enum class TableOrder : std::uint8_t {
    Arrival, // of the requests: by request id
    Length,  // longest table first, then by request id
};

struct TableRow {
    std::uint32_t sequenceIndex = 0; // into Snapshot::sequences
    SequenceId sequence;
    RequestId request;
    int hue = -1;
    std::uint32_t tokens = 0; // slots written
    std::uint32_t blocks = 0; // in the table, reserved ones included
    std::uint32_t activeBlocks = 0;
    friend bool operator==(const TableRow&, const TableRow&) = default;
};

// Every sequence once, in order: O(sequences).
std::vector<TableRow> tableRows(const state::Snapshot& snapshot, TableOrder order);

struct TableCell {
    BlockId block;
    std::uint32_t logical = 0;
    int hue = -1; // -1: shared
    std::uint32_t usedSlots = 0, blockTokens = 0;
    bool shared = false, partFilled = false, reserved = false;
    std::string label; // the physical index, "131"; with several pools "1:131"

    double level() const { return blockTokens == 0 ? 0 : double(usedSlots) / blockTokens; }
};

// The cells [firstLogical, firstLogical + count) of a row, as far as there are any.
std::vector<TableCell> tableCells(const state::Snapshot& snapshot, const TableRow& row, std::uint32_t firstLogical,
                                  std::uint32_t count);

// Which rows are seen: rowsIn (memory_map.h).

struct RulerTick {
    std::uint32_t logical = 0; // stands at the left edge of this block
    std::string text;          // its first token position
    friend bool operator==(const RulerTick&, const RulerTick&) = default;
};

// A tick every `everyBlocks` blocks.
std::vector<RulerTick> rulerTicks(std::uint32_t blockTokens, std::uint32_t firstLogical, std::uint32_t count,
                                  std::uint32_t everyBlocks = 4);

} // namespace kvatlas::query

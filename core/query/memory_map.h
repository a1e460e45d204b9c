// SPDX-License-Identifier: Apache-2.0
// The memory map: every physical block of a pool as a cell, in physical order, wrapped into rows. Layout, colour codes,
// cell details, words. Pixels are whole device pixels and start at the map's own origin. Pure; any thread. Blocks and
// pools that do not exist give an empty answer, never a failure.
#pragma once

#include "core/state/snapshot.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvatlas::query {

// ---- Layout

enum class MapLevel : std::uint8_t { Overview = 1, Cells = 2, Labels = 3, Slots = 4 };
constexpr int kMinCellPx = 2;
MapLevel levelOf(int cellPx); // 2..5 Overview, 6..15 Cells, 16..47 Labels, from 48 Slots

struct PixelRect {
    int x = 0, y = 0, width = 0, height = 0;
    friend bool operator==(const PixelRect&, const PixelRect&) = default;
};
struct RowRange {
    std::uint32_t first = 0, end = 0; // rows [first, end)
    friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Rows of rowPx each that touch the pixels [top, bottom).
RowRange rowsIn(std::size_t rows, int rowPx, int top, int bottom);

struct MapLayout {
    std::uint32_t blocks = 0;
    int cellPx = 0; // side of a cell
    int gapPx = 0;  // between cells
    int idPx = 0;   // room under each row for physical ids (cells from 32 px), else 0
    std::uint32_t columns = 0, rows = 0;

    int pitchPx() const { return cellPx + gapPx; }
    int rowPitchPx() const { return cellPx + gapPx + idPx; }
    int widthPx() const; // of the cells, the last gap left out
    int heightPx() const;
    std::uint32_t firstOfRow(std::uint32_t row) const { return row * columns; }
    PixelRect cell(std::uint32_t index) const;                // REQUIRES: index < blocks
    std::optional<std::uint32_t> blockAt(int x, int y) const; // the gap right of and below a cell belongs to it
    RowRange rowsIn(int top, int bottom) const;               // rows that touch the pixels [top, bottom)
};

// As many columns as fit, from ten on a multiple of 5 and from twenty on a multiple of 10, so that row labels are
// round.
MapLayout layOutMap(std::uint32_t blocks, int widthPx, int cellPx);

// The largest cell with which the whole pool is seen, between kMinCellPx (which may still need scrolling) and
// maxCellPx.
int fitCellPx(std::uint32_t blocks, int widthPx, int heightPx, int maxCellPx = 47);

// ---- Colours

enum class ColourBy : std::uint8_t { Owner, State, Age, References, Format };

// One byte per block; a colour table of 256 entries turns it into a pixel.
namespace map_code {
constexpr std::uint8_t kFree = 0, kCached = 1, kShared = 2, kActive = 3, kPartFilled = 4, kReserved = 5;
constexpr std::uint8_t kOwner = 8;            // + hue 0..6: active and full
constexpr std::uint8_t kOwnerPartFilled = 16; // + hue
constexpr std::uint8_t kOwnerReserved = 24;   // + hue
constexpr std::uint8_t kFormat = 32;          // + index into formatsOf(), 31 at most
constexpr std::uint8_t kScale = 128;          // + 0..127 on the sequential colour map, bright = much
} // namespace map_code

constexpr int kHues = 7;
int hueOf(RequestId request); // (request - 1) mod 7; -1 for request 0

// The storage formats of the run's pools, "f16" or "f16/q8_0" (K/V), each once, in the order of the pools.
std::vector<std::string> formatsOf(const state::Snapshot& snapshot);

// Codes of the blocks [first, first + out.size()) of a pool; kFree beyond its end. Age and references: free, cached and
// reserved blocks keep their state's code. Age = steps since a slot was written (before the first: since it was
// allocated), log2, 4,095 steps and more = brightest. References: one = darkest, 17 and more = brightest.
void blockCodes(const state::Snapshot& snapshot, std::size_t pool, ColourBy colourBy, std::uint32_t first,
                std::span<std::uint8_t> out);

// ---- Cells (levels 2 to 4)

struct MapCell {
    BlockId block;
    state::BlockKind kind = state::BlockKind::Free;
    std::uint8_t code = 0;
    int hue = -1;            // of the owner; -1: nobody's
    bool shared = false;     // references > 1
    bool partFilled = false; // active, and a slot is still empty
    std::uint32_t usedSlots = 0, blockTokens = 0;
    RequestId request;
    std::string label; // request number, or "×n" when shared; empty for free and cached

    double level() const { return blockTokens == 0 ? 0 : double(usedSlots) / blockTokens; }
};

std::vector<MapCell> mapCells(const state::Snapshot& snapshot, std::size_t pool, ColourBy colourBy, std::uint32_t first,
                              std::uint32_t count);

// ---- Words

struct MapLegend {
    std::uint32_t active = 0, shared = 0, partFilled = 0, cached = 0, free = 0,
                  reserved = 0; // shared, partFilled: of active
    friend bool operator==(const MapLegend&, const MapLegend&) = default;
};
MapLegend legendOf(const state::PoolState& pool);

std::string titleOf(const state::PoolState& pool); // "device, f16 · 182 blocks × 360 KiB"
std::string describeBlock(const state::Snapshot& snapshot,
                          BlockId id); // "Block 131, active, request 16, 16 of 16 slots"

} // namespace kvatlas::query

// SPDX-License-Identifier: Apache-2.0
// A weight matrix in the CPU backend's order of bytes. Immutable after creation; any thread.
//
// Rows stand in groups of 16 (the last one padded with rows of zeros); a lane is a row. Of each group first all codes,
// then all scales, both in tiles of 32 columns, k ascending:
//
//   format  codes of a tile                                            scales of a tile
//   Q4_0    256 B  [k/8][16 rows][4]: low nibble k%8, high nibble +4   d f16 [16]
//   Q4_1    256 B  the same                                            d f16 [16], m f16 [16]
//   Q4_K    256 B  the same                                            d f32 [16], m f32 [16] (multiplied out)
//   Q5_K    512 B  [k/4][16 rows][4] u8                                d f32 [16], m f32 [16] (multiplied out)
//   Q6_K    512 B  the same, offset 32                                 d f16 [16], s8 [2][16]: one for each 16 columns
//   Q8_0    512 B  the same, offset 128                                d f16 [16]
//   F32, F16, BF16: [cols][16 rows] in their own width, no tiles
//
// Four codes of one row side by side are what an int8 dot product takes; 16 of them fill 64 bytes.
#pragma once

#include "kernels/cpu/memory.h"
#include "kernels/kernels.h"

namespace kvatlas::kernels::cpu {

constexpr std::uint32_t kGroupRows = 16;
constexpr std::uint32_t kTileCols = 32;

struct TileLayout {
    std::uint32_t codeBytes = 0;  // of one tile
    std::uint32_t scaleBytes = 0; // of one tile
    std::uint32_t offset = 0;     // the stored code is the code + offset
    bool nibbles = false;
    bool coded = false; // integer codes: `fast` quantizes the activations
};

constexpr TileLayout tileLayout(WeightFormat format) {
    switch (format) {
    case WeightFormat::F32:
        return {32 * 16 * 4, 0, 0, false, false};
    case WeightFormat::F16:
    case WeightFormat::BF16:
        return {32 * 16 * 2, 0, 0, false, false};
    case WeightFormat::Q8_0:
        return {512, 32, 128, false, true};
    case WeightFormat::Q4_0:
        return {256, 32, 8, true, true};
    case WeightFormat::Q4_1:
        return {256, 64, 0, true, true};
    case WeightFormat::Q4_K:
        return {256, 128, 0, true, true};
    case WeightFormat::Q5_K:
        return {512, 128, 0, false, true};
    case WeightFormat::Q6_K:
        return {512, 64, 32, false, true};
    }
    return {};
}

class CpuMatrix final : public PackedMatrix {
public:
    CpuMatrix(WeightFormat weightFormat, std::uint32_t rowCount, std::uint32_t colCount, const std::byte* data);

    std::uint32_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
    std::size_t groupBytes() const { return m_groupBytes; }
    const std::byte* codes(std::uint32_t group) const { return m_memory.data() + group * m_groupBytes; }
    const std::byte* scales(std::uint32_t group) const { return codes(group) + m_scalesAt; }

private:
    std::size_t m_scalesAt = 0;
    std::size_t m_groupBytes = 0;
    WeightMemory m_memory;
};

} // namespace kvatlas::kernels::cpu

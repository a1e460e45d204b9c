// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace kvatlas::kernels::cpu {

namespace {

using Byte = std::uint8_t;

// The codes of one row of one tile, offset included, and what its tile keeps beside them.
struct RowTile {
    Byte codes[kTileCols] = {};
    std::uint16_t d16 = 0, m16 = 0; // as in the file
    float d32 = 0, m32 = 0;         // k-quants
    std::int8_t scales[2] = {};     // Q6_K
};

std::uint16_t bits16(const Byte* p) {
    std::uint16_t bits;
    std::memcpy(&bits, p, 2);
    return bits;
}

float halfValue(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7FFFu;
    if (magnitude >= 0x7C00u)
        return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
    // The exponent's bias is put right by an exact product, which serves subnormal numbers too.
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

void splitNibbles(const Byte* packed, Byte* codes) {
    for (int i = 0; i < 16; ++i) {
        codes[i] = packed[i] & 15;
        codes[i + 16] = packed[i] >> 4;
    }
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K; s [12].
void scaleAndMin(std::uint32_t j, const Byte* s, int& scale, int& minimum) {
    if (j < 4) {
        scale = s[j] & 63;
        minimum = s[j + 4] & 63;
    } else {
        scale = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
        minimum = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
    }
}

void readKQuant(const Byte* group, std::uint32_t j, bool fifthBit, RowTile& out) {
    int scale, minimum;
    scaleAndMin(j, group + 4, scale, minimum);
    // Exact: 11 bits times 6 bits.
    out.d32 = halfValue(bits16(group)) * static_cast<float>(scale);
    out.m32 = -(halfValue(bits16(group + 2)) * static_cast<float>(minimum));
    const Byte* high = group + 16;
    const Byte* codes = group + (fifthBit ? 48 : 16) + 32 * (j / 2);
    for (int i = 0; i < 32; ++i) {
        const int fifth = fifthBit ? (high[i] >> j) & 1 : 0;
        out.codes[i] = static_cast<Byte>(((codes[i] >> (4 * (j % 2))) & 15) | (fifth << 4));
    }
}

void readQ6K(const Byte* group, std::uint32_t j, RowTile& out) {
    const Byte* low = group + 64 * (j / 4) + 32 * (j & 1);
    const Byte* high = group + 128 + 32 * (j / 4);
    const std::uint32_t quarter = j % 4;
    for (int i = 0; i < 32; ++i) {
        const int nibble = (low[i] >> (4 * (quarter >> 1))) & 15;
        out.codes[i] = static_cast<Byte>(nibble | (((high[i] >> (2 * quarter)) & 3) << 4));
    }
    std::memcpy(out.scales, group + 192 + 2 * j, 2);
    out.d16 = bits16(group + 208);
}

// Tile `tile` of a row in the file's layout.
void readTile(WeightFormat format, const Byte* row, std::uint32_t tile, RowTile& out) {
    const WeightFormatInfo info = infoOf(format);
    const std::uint32_t tilesPerGroup = info.groupElements / kTileCols;
    const Byte* group = row + std::size_t{tile} / tilesPerGroup * info.groupBytes;
    const std::uint32_t j = tile % tilesPerGroup;
    switch (format) {
    case WeightFormat::Q8_0:
        out.d16 = bits16(group);
        for (int i = 0; i < 32; ++i)
            out.codes[i] = group[2 + i] ^ 0x80;
        return;
    case WeightFormat::Q4_0:
        out.d16 = bits16(group);
        return splitNibbles(group + 2, out.codes);
    case WeightFormat::Q4_1:
        out.d16 = bits16(group);
        out.m16 = bits16(group + 2);
        return splitNibbles(group + 4, out.codes);
    case WeightFormat::Q4_K:
        return readKQuant(group, j, false, out);
    case WeightFormat::Q5_K:
        return readKQuant(group, j, true, out);
    case WeightFormat::Q6_K:
        return readQ6K(group, j, out);
    default:
        return;
    }
}

void writeTile(WeightFormat format, std::uint32_t lane, const RowTile& in, Byte* codes, Byte* scales) {
    if (tileLayout(format).nibbles) {
        for (std::uint32_t k8 = 0; k8 < 4; ++k8)
            for (std::uint32_t i = 0; i < 4; ++i)
                codes[64 * k8 + 4 * lane + i] =
                    static_cast<Byte>(in.codes[8 * k8 + i] | (in.codes[8 * k8 + 4 + i] << 4));
    } else {
        for (std::uint32_t k4 = 0; k4 < 8; ++k4)
            std::memcpy(codes + 64 * k4 + 4 * lane, in.codes + 4 * k4, 4);
    }
    switch (format) {
    case WeightFormat::Q4_K:
    case WeightFormat::Q5_K:
        std::memcpy(scales + 4 * lane, &in.d32, 4);
        std::memcpy(scales + 64 + 4 * lane, &in.m32, 4);
        return;
    case WeightFormat::Q6_K:
        std::memcpy(scales + 2 * lane, &in.d16, 2);
        scales[32 + lane] = static_cast<Byte>(in.scales[0]);
        scales[48 + lane] = static_cast<Byte>(in.scales[1]);
        return;
    case WeightFormat::Q4_1:
        std::memcpy(scales + 32 + 2 * lane, &in.m16, 2);
        [[fallthrough]];
    default:
        std::memcpy(scales + 2 * lane, &in.d16, 2);
    }
}

} // namespace

CpuMatrix::CpuMatrix(WeightFormat weightFormat, std::uint32_t rowCount, std::uint32_t colCount, const std::byte* data)
    : m_scalesAt([&] {
        const TileLayout layout = tileLayout(weightFormat);
        const std::size_t codeBytes = layout.coded ? std::size_t{colCount} / kTileCols * layout.codeBytes
                                                   : std::size_t{colCount} * (layout.codeBytes / kTileCols);
        return (codeBytes + 63) / 64 * 64;
    }())
    , m_groupBytes(m_scalesAt +
                   (std::size_t{colCount} / kTileCols * tileLayout(weightFormat).scaleBytes + 63) / 64 * 64)
    , m_memory(m_groupBytes * ((std::size_t{rowCount} + kGroupRows - 1) / kGroupRows)) {
    rows = rowCount;
    cols = colCount;
    format = weightFormat;
    bytes = m_groupBytes * groups();
    const WeightFormatInfo info = infoOf(format);
    const TileLayout layout = tileLayout(format);
    assert(cols % info.groupElements == 0);
    const std::size_t rowBytes = std::size_t{cols} / info.groupElements * info.groupBytes;
    for (std::uint32_t row = 0; row < groups() * kGroupRows; ++row) {
        const std::uint32_t lane = row % kGroupRows;
        Byte* group = reinterpret_cast<Byte*>(m_memory.data()) + row / kGroupRows * m_groupBytes;
        const Byte* from = reinterpret_cast<const Byte*>(data) + row * rowBytes;
        if (layout.coded) {
            for (std::uint32_t tile = 0; tile < cols / kTileCols; ++tile) {
                RowTile values;
                if (row < rows)
                    readTile(format, from, tile, values);
                else
                    std::fill(std::begin(values.codes), std::end(values.codes), static_cast<Byte>(layout.offset));
                writeTile(format, lane, values, group + std::size_t{tile} * layout.codeBytes,
                          group + m_scalesAt + std::size_t{tile} * layout.scaleBytes);
            }
            continue;
        }
        for (std::uint32_t k = 0; row < rows && k < cols; ++k)
            std::memcpy(group + (std::size_t{k} * kGroupRows + lane) * info.groupBytes,
                        from + std::size_t{k} * info.groupBytes, info.groupBytes);
    }
}

} // namespace kvatlas::kernels::cpu

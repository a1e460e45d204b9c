// SPDX-License-Identifier: Apache-2.0
// Which block holds which part of a sequence: logical block i holds the slots [i * blockTokens, (i + 1) * blockTokens).
// Grows only at its end. Everybody reads it, only the BlockPool changes it. One thread (the engine's).
#pragma once

#include "core/base/ids.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kvatlas::cache {

class BlockTable {
public:
    BlockTable() = default;
    BlockTable(BlockTable&&) = default;
    BlockTable& operator=(BlockTable&&) = default;
    BlockTable(const BlockTable&) = delete;
    BlockTable& operator=(const BlockTable&) = delete;

    bool isOpen() const { return m_sequence.value != 0; }
    SequenceId sequence() const { return m_sequence; }
    RequestId request() const { return m_request; }

    // Logical order: first the active blocks, then the reserved ones.
    std::span<const BlockId> blocks() const { return m_blocks; }
    std::uint32_t activeBlocks() const { return m_activeBlocks; }
    std::uint32_t reservedBlocks() const { return static_cast<std::uint32_t>(m_blocks.size()) - m_activeBlocks; }
    std::uint32_t slotsWritten() const { return m_slotsWritten; }

private:
    friend class BlockPool;
    SequenceId m_sequence; // 0: not open
    RequestId m_request;
    std::vector<BlockId> m_blocks;
    std::uint32_t m_activeBlocks = 0;
    std::uint32_t m_slotsWritten = 0;
};

} // namespace kvatlas::cache

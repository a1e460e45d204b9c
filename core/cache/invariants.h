// SPDX-License-Identifier: Apache-2.0
// What must be true of a pool and the block tables that use it, checked the slow and obvious way: after every operation
// in tests, after every engine step when KVATLAS_CHECKED is set. O(blocks). One thread (the engine's).
#pragma once

#include "core/cache/block_pool.h"

#include <optional>
#include <span>
#include <string>

namespace kvatlas::cache {

// The first invariant that does not hold, in one sentence; nothing when all hold. `live` are all open tables.
//   1 the kinds add up to the pool - 2 each block is in exactly one place - 3 references = occurrences in live tables -
//   4 on the free list if and only if nobody refers to it - 7 a shared block is never written - 8 a table is as long as
//   its tokens need, reserved blocks apart - 9 slots are filled in order - 10 no table names a free block - 11 used
//   slots add up.
std::optional<std::string> brokenInvariant(const BlockPool& pool, std::span<const BlockTable* const> live);

} // namespace kvatlas::cache

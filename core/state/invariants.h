// SPDX-License-Identifier: Apache-2.0
// The invariants of the block manager that a snapshot can show to be broken: numbers 1, 2, 3, 4, 7, 8, 9 and 11 of the
// twelve (12, replay, is a test's business; 5, 6 and 10 belong to the prefix index and to eviction). Holds at every
// moment, inside a step too. O(blocks + table entries). Any thread. The error names the block, sequence or request.
#pragma once

#include "core/base/result.h"
#include "core/state/snapshot.h"

namespace kvatlas::state {

Result<void> checkInvariants(const Snapshot& snapshot);

} // namespace kvatlas::state

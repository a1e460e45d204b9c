// SPDX-License-Identifier: Apache-2.0
// The state of a run as a fold over its events: live, replayed and attached runs share this one definition.
// One thread. Errors: an event that does not fit the state (a damaged or hostile recording, or a mistake of the engine)
// is refused with a sentence and leaves the state as it was.
#pragma once

#include "core/base/result.h"
#include "core/state/snapshot.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace kvatlas::state {

class CacheState {
public:
    CacheState();
    ~CacheState();
    CacheState(CacheState&&) noexcept;
    CacheState& operator=(CacheState&&) noexcept;

    // Folds one event. StepEnded with a stateHash other than 0 that differs from ours is an error.
    Result<void> apply(const trace::Event& event);

    std::uint64_t stateHash() const; // equals the engine's after each step
    Step step() const;

    // O(changed chunks). The result shares what did not change with earlier snapshots.
    std::shared_ptr<const Snapshot> snapshot();

    // A keyframe: pools, tables, unfinished requests; no times. decode(encode()) has the same stateHash.
    std::vector<std::byte> encode() const;
    static Result<CacheState> decode(std::span<const std::byte> keyframe);

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvatlas::state

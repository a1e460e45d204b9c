// SPDX-License-Identifier: Apache-2.0
// The memory behind one pool: block b of the pool is at arena().blocks + b * layout.blockBytes(). Aligned to pages,
// huge pages asked for. bytes() is what was asked of the operating system for K and V, to the byte.
// Owner: the engine. One thread writes at a time. Errors: OutOfMemory with the numbers.
#pragma once

#include "core/base/result.h"
#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>

namespace kvatlas::engine {

class KvStore {
public:
    static Result<KvStore> allocate(const kernels::KvLayout& layout, std::uint32_t blocks);
    ~KvStore();
    KvStore(KvStore&& other) noexcept;
    KvStore& operator=(KvStore&&) = delete;

    const kernels::KvArena& arena() const { return m_arena; }
    std::size_t bytes() const { return m_bytes; }

private:
    KvStore(kernels::KvArena arena, std::size_t bytes)
        : m_arena(arena)
        , m_bytes(bytes) {}

    kernels::KvArena m_arena;
    std::size_t m_bytes = 0;
};

} // namespace kvatlas::engine

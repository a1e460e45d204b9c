// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kv_store.h"

#include "core/base/counted.h"

#include <sys/mman.h>
#include <utility>

namespace kvatlas::engine {

Result<KvStore> KvStore::allocate(const kernels::KvLayout& layout, std::uint32_t blocks) {
    const std::size_t blockBytes = layout.blockBytes();
    std::size_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(blockBytes, std::size_t{blocks}, &bytes);
    void* memory = overflow || bytes == 0
                       ? MAP_FAILED
                       : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return makeError(ErrorKind::OutOfMemory,
                         "no memory for the KV pool: {} of {} at {} bytes each, {:.1f} GiB together; lower "
                         "kv_memory, pool_blocks or max_model_len in the strategy",
                         counted(blocks, "block"), counted(layout.blockTokens, "token"), blockBytes,
                         static_cast<double>(blockBytes) * static_cast<double>(blocks) / (1024.0 * 1024 * 1024));
    ::madvise(memory, bytes, MADV_HUGEPAGE); // a wish: where it is not granted, pages are small
    return KvStore({static_cast<std::byte*>(memory), layout}, bytes);
}

KvStore::KvStore(KvStore&& other) noexcept
    : m_arena(other.m_arena)
    , m_bytes(std::exchange(other.m_bytes, 0)) {}

KvStore::~KvStore() {
    if (m_bytes > 0)
        ::munmap(m_arena.blocks, m_bytes);
}

} // namespace kvatlas::engine

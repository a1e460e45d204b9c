// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace kvatlas::kernels::cpu {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMapFrom = std::size_t{1} << 20;
constexpr std::size_t kChunk = std::size_t{32} << 20;

std::size_t roundUp(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
}

} // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
    if (bytes == 0)
        return;
    if (bytes > SIZE_MAX / 2)
        throw std::bad_alloc();
    if (bytes < kMapFrom) {
        const std::size_t size = roundUp(bytes, kLine);
        m_data = static_cast<std::byte*>(std::aligned_alloc(kLine, size));
        if (!m_data)
            throw std::bad_alloc();
        std::memset(m_data, 0, size);
        m_bytes = size;
        return;
    }
    m_bytes = roundUp(bytes, kHugePage);
    m_mappingBytes = m_bytes + kHugePage;
    void* mapping = mmap(nullptr, m_mappingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        throw std::bad_alloc();
    m_mapping = static_cast<std::byte*>(mapping);
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(mapping);
    m_data = m_mapping + (roundUp(address, kHugePage) - address);
    madvise(m_data, m_bytes, MADV_HUGEPAGE); // advice: where it is refused, small pages serve as well
}

AlignedBuffer::~AlignedBuffer() {
    release();
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr))
    , m_bytes(std::exchange(other.m_bytes, 0))
    , m_mapping(std::exchange(other.m_mapping, nullptr))
    , m_mappingBytes(std::exchange(other.m_mappingBytes, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
    if (this != &other) {
        release();
        m_data = std::exchange(other.m_data, nullptr);
        m_bytes = std::exchange(other.m_bytes, 0);
        m_mapping = std::exchange(other.m_mapping, nullptr);
        m_mappingBytes = std::exchange(other.m_mappingBytes, 0);
    }
    return *this;
}

void AlignedBuffer::release() noexcept {
    if (m_mapping)
        munmap(m_mapping, m_mappingBytes);
    else
        std::free(m_data);
}

void AlignedBuffer::reserve(std::size_t bytes) {
    if (bytes > m_bytes)
        *this = AlignedBuffer(bytes + bytes / 4);
}

WeightMemory::WeightMemory(std::size_t bytes) {
    // The chunk being filled. It is a cache of free space, not state: where a matrix lies changes no result.
    static std::mutex mutex;
    static std::weak_ptr<AlignedBuffer> current;
    static std::size_t used = 0;

    if (bytes > kChunk / 4) {
        m_chunk = std::make_shared<AlignedBuffer>(bytes);
        m_data = m_chunk->data();
        return;
    }
    const std::lock_guard lock(mutex);
    m_chunk = current.lock();
    if (!m_chunk || used + bytes > m_chunk->size()) {
        m_chunk = std::make_shared<AlignedBuffer>(kChunk);
        current = m_chunk;
        used = 0;
    }
    m_data = m_chunk->data() + used;
    used = roundUp(used + bytes, kLine);
}

} // namespace kvatlas::kernels::cpu

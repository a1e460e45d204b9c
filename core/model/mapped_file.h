// SPDX-License-Identifier: Apache-2.0
// A whole file as read-only memory. Any thread; the object owns the mapping and must outlive every span of it.
// Errors: Refused, one sentence (no such file, no regular file, empty, cannot be read or mapped, shrank).
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace kvatlas::model {

class MappedFile {
public:
    static Result<MappedFile> open(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const std::byte> bytes() const { return {m_data, m_size}; }

    // The kernel kills a process that reads mapped bytes which are no longer in the file. Whoever copies much out of a
    // mapping asks before and after: an error when the file is shorter than it was when it was opened.
    Result<void> checkStillWhole() const;

private:
    MappedFile(std::filesystem::path path, int descriptor, const std::byte* data, std::size_t size)
        : m_path(std::move(path))
        , m_descriptor(descriptor)
        , m_data(data)
        , m_size(size) {}
    void close() noexcept;

    std::filesystem::path m_path;
    int m_descriptor = -1;
    const std::byte* m_data = nullptr;
    std::size_t m_size = 0;
};

} // namespace kvatlas::model

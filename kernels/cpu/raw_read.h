// SPDX-License-Identifier: Apache-2.0
// How fast this machine reads memory: the roof that every bandwidth is compared with, measured in the same run on a
// buffer of the same size (a cache helps small buffers).
//
// Thread: one at a time; owns its buffer and its threads. Errors: std::bad_alloc; 0 where cpuRefusal() is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvatlas::kernels {

class RawReader {
public:
    RawReader(std::size_t bytes, unsigned threads);
    ~RawReader();
    RawReader(const RawReader&) = delete;
    RawReader& operator=(const RawReader&) = delete;

    // Seconds of one pass over the buffer, which every thread reads its share of.
    double pass();
    std::size_t bytes() const;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

// Bytes per second: the median of 15 passes after one that is not counted.
double rawReadBytesPerSecond(std::size_t bytes, unsigned threads);

} // namespace kvatlas::kernels

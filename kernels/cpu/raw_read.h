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

    // Seconds of one pass over the buffer, which every thread reads its share of: of two passes, with and without
    // asking for bytes beforehand, the faster. Which one that is depends on the machine: asking wins on Zen 4 (46
    // against 13 GB/s) and loses on Sapphire Rapids (16 against 28).
    double pass();
    std::size_t bytes() const;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvatlas::kernels

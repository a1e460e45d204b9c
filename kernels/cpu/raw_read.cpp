// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/raw_read.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu/targets.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace kvatlas::kernels {

namespace {

// What a thread reads at a time; a multiple of every vector's bytes.
constexpr std::size_t kPiece = std::size_t{1} << 20;

const cpu::RowFunctions* rows() {
    const auto names = cpuTargets();
    if (names.empty())
        return nullptr;
#if defined(__aarch64__)
    return cpu::rowFunctions(cpu::Target::Neon);
#else
    return cpu::rowFunctions(names.front() == "AVX2" ? cpu::Target::Avx2 : cpu::Target::Avx512);
#endif
}

} // namespace

struct RawReader::Impl {
    Impl(std::size_t bytes, unsigned threads)
        : buffer((std::max<std::size_t>(bytes, 1) + kPiece - 1) / kPiece * kPiece)
        , stream(threads) {
        // Pages must exist, or the zero page would be read.
        for (std::size_t at = 0; at < buffer.size(); at += 4096)
            buffer.data()[at] = static_cast<std::byte>(at >> 12);
    }
    cpu::AlignedBuffer buffer;
    cpu::CpuStream stream;
};

RawReader::RawReader(std::size_t bytes, unsigned threads)
    : m_impl(std::make_unique<Impl>(bytes, threads)) {}

RawReader::~RawReader() = default;

std::size_t RawReader::bytes() const {
    return m_impl->buffer.size();
}

double RawReader::pass() {
    const cpu::RowFunctions* functions = rows();
    if (!functions)
        return 0;
    double fastest = std::numeric_limits<double>::infinity();
    for (const bool ahead : {true, false}) {
        const auto start = std::chrono::steady_clock::now();
        std::atomic<std::uint32_t> sum{0};
        m_impl->stream.run(static_cast<std::uint32_t>(bytes() / kPiece), [&](std::uint32_t unit, unsigned) {
            sum.fetch_xor(functions->readBytes(m_impl->buffer.data() + unit * kPiece, kPiece, ahead),
                          std::memory_order_relaxed);
        });
        fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return fastest;
}

} // namespace kvatlas::kernels

// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

namespace kvatlas::kernels::cpu {

namespace {

// How long a thread waits by spinning before it gives its processor away. Between two kernels of a forward pass there
// are a few microseconds; 2,000 pauses are about 20-60 us on the machines tried. A virtual machine may lose a
// processor for 8-16 ms, so that nobody spins longer.
constexpr int kSpins = 2000;
constexpr int kYields = 20;

constexpr std::uint32_t kClosed = 0xffff'ffff; // a next unit that no job has: nothing can be claimed

void pause() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

#if defined(__x86_64__)
constexpr std::uint64_t kFlushBits = 0x8040; // MXCSR: FTZ, DAZ
std::uint64_t floatControl() {
    return _mm_getcsr();
}
void setFloatControl(std::uint64_t value) {
    _mm_setcsr(static_cast<unsigned>(value));
}
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushBits = (1u << 24) | (1u << 19); // FPCR: FZ, FZ16
std::uint64_t floatControl() {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void setFloatControl(std::uint64_t value) {
    asm volatile("msr fpcr, %0" ::"r"(value));
}
#else
constexpr std::uint64_t kFlushBits = 0;
std::uint64_t floatControl() {
    return 0;
}
void setFloatControl(std::uint64_t) {}
#endif

} // namespace

SubnormalGuard::SubnormalGuard()
    : m_saved(floatControl())
    , m_changed((m_saved & kFlushBits) != 0) {
    if (m_changed)
        setFloatControl(m_saved & ~kFlushBits);
}

SubnormalGuard::~SubnormalGuard() {
    if (m_changed)
        setFloatControl(m_saved);
}

CpuStream::CpuStream(unsigned threads)
    : m_threads(std::max(threads, 1u)) {
    for (unsigned worker = 1; worker < m_threads; ++worker)
        m_workers.emplace_back([this, worker] { work(worker); });
}

CpuStream::~CpuStream() {
    m_stop.store(true, std::memory_order_relaxed);
    m_signal.fetch_add(1, std::memory_order_release);
    m_signal.notify_all();
}

std::byte* CpuStream::shared(Area area, std::size_t bytes) {
    m_shared[area].reserve(bytes);
    return m_shared[area].data();
}

void CpuStream::reservePrivate(std::size_t bytes) {
    const std::size_t stride = (bytes + 4095) / 4096 * 4096 + 64; // 64: workers' equal offsets fall on different sets
    if (stride <= m_privateStride)
        return;
    m_private = AlignedBuffer(stride * m_threads);
    m_privateStride = stride;
}

void CpuStream::runErased(std::uint32_t units, Erased body, const void* context) {
    if (units == 0)
        return;
    const SubnormalGuard guard;
    if (m_threads == 1 || units == 1) {
        for (std::uint32_t unit = 0; unit < units; ++unit)
            body(context, unit, 0);
        return;
    }
    const std::uint32_t epoch = static_cast<std::uint32_t>(m_ticket.load(std::memory_order_relaxed) >> 32) + 1;
    // Closed first: a thread that still holds the last job's ticket, with all units taken, would otherwise find a free
    // unit in the longer job that is being set up. Who sees one of the three values below sees the closed ticket too.
    m_ticket.store(std::uint64_t{epoch} << 32 | kClosed, std::memory_order_relaxed);
    m_units.store(units, std::memory_order_release);
    m_body.store(body, std::memory_order_release);
    m_context.store(context, std::memory_order_release);
    m_done.store(0, std::memory_order_relaxed);
    m_ticket.store(std::uint64_t{epoch} << 32, std::memory_order_release);
    m_signal.store(epoch, std::memory_order_release);
    m_signal.notify_all();

    claimUnits(epoch, 0);
    for (int i = 0; m_done.load(std::memory_order_acquire) != units; ++i) {
        if (i < kSpins)
            pause();
        else
            std::this_thread::yield();
    }
}

void CpuStream::claimUnits(std::uint32_t epoch, unsigned worker) {
    std::uint64_t ticket = m_ticket.load(std::memory_order_acquire);
    while (ticket >> 32 == epoch) {
        // Valid if the exchange below succeeds: the job cannot be replaced while a unit of it is unclaimed.
        const std::uint32_t units = m_units.load(std::memory_order_acquire);
        const Erased body = m_body.load(std::memory_order_acquire);
        const void* context = m_context.load(std::memory_order_acquire);
        const std::uint32_t unit = static_cast<std::uint32_t>(ticket);
        if (unit >= units)
            return;
        if (!m_ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        body(context, unit, worker);
        m_done.fetch_add(1, std::memory_order_acq_rel);
        ticket = m_ticket.load(std::memory_order_acquire);
    }
}

void CpuStream::work(unsigned worker) {
    const SubnormalGuard guard;
    std::uint32_t seen = 0;
    while (true) {
        std::uint32_t signal = m_signal.load(std::memory_order_acquire);
        for (int i = 0; signal == seen && i < kSpins + kYields; ++i) {
            if (i < kSpins)
                pause();
            else
                std::this_thread::yield();
            signal = m_signal.load(std::memory_order_acquire);
        }
        if (signal == seen) {
            m_signal.wait(seen, std::memory_order_acquire);
            continue;
        }
        if (m_stop.load(std::memory_order_relaxed))
            return;
        seen = signal;
        claimUnits(signal, worker);
    }
}

} // namespace kvatlas::kernels::cpu

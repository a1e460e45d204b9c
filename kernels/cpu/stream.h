// SPDX-License-Identifier: Apache-2.0
// The CPU backend's execution context: a pool of threads that share out numbered units of work, and scratch memory.
//
// Thread: run() and the scratch functions from one thread at a time, the stream's user. Which thread computes a unit
// is never visible in a result.
#pragma once

#include "kernels/cpu/memory.h"
#include "kernels/kernels.h"

#include <atomic>
#include <thread>
#include <vector>

namespace kvatlas::kernels::cpu {

// While it lives, the calling thread treats subnormal numbers as IEEE says: FTZ and DAZ are off, whatever the host
// program has set, and come back afterwards.
class SubnormalGuard {
public:
    SubnormalGuard();
    ~SubnormalGuard();
    SubnormalGuard(const SubnormalGuard&) = delete;
    SubnormalGuard& operator=(const SubnormalGuard&) = delete;

private:
    std::uint64_t m_saved = 0;
    bool m_changed = false;
};

class CpuStream final : public Stream {
public:
    // threads >= 1, the user's own included.
    explicit CpuStream(unsigned threads);
    ~CpuStream() override;

    unsigned threads() const override { return m_threads; }

    // body(unit, worker) once for every unit of [0, units), worker < threads(). Returns when all are done.
    template <class Body> void run(std::uint32_t units, const Body& body) {
        runErased(
            units,
            [](const void* context, std::uint32_t unit, unsigned worker) {
                (*static_cast<const Body*>(context))(unit, worker);
            },
            &body);
    }

    // Scratch memory, 64-byte aligned, grown when needed; contents are lost when it grows. `Shared` areas are seen by
    // all workers; there is one private area per worker.
    enum Area : unsigned { FastPanels, ExactPanels, FastTiles, ExactTiles, AttendUnits, Partials, Areas };
    std::byte* shared(Area area, std::size_t bytes);
    // bytes for each worker; REQUIRES: outside run().
    void reservePrivate(std::size_t bytes);
    std::byte* privateOf(unsigned worker) const { return m_private.data() + worker * m_privateStride; }

private:
    using Erased = void (*)(const void*, std::uint32_t, unsigned);
    void runErased(std::uint32_t units, Erased body, const void* context);
    void work(unsigned worker);
    void claimUnits(std::uint32_t epoch, unsigned worker);

    const unsigned m_threads;
    AlignedBuffer m_shared[Areas];
    AlignedBuffer m_private;
    std::size_t m_privateStride = 0;

    // The job in progress. m_ticket holds (epoch << 32 | next unit): a worker that comes late finds another epoch or no
    // unit left and cannot touch the job, so that nobody waits for a thread that has lost its processor before it
    // claimed anything.
    alignas(64) std::atomic<std::uint64_t> m_ticket{0};
    std::atomic<std::uint32_t> m_units{0};
    std::atomic<Erased> m_body{nullptr};
    std::atomic<const void*> m_context{nullptr};
    alignas(64) std::atomic<std::uint32_t> m_done{0};
    alignas(64) std::atomic<std::uint32_t> m_signal{0}; // epoch to sleep on
    std::atomic<bool> m_stop{false};
    std::vector<std::jthread> m_workers;
};

} // namespace kvatlas::kernels::cpu

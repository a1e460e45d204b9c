// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvatlas::kernels::cpu {
namespace {

TEST(CpuStream, runsEveryUnitExactlyOnce) {
    for (const unsigned threads : {1u, 2u, 3u, 5u}) {
        CpuStream stream(threads);
        for (std::uint32_t units = 0; units < 200; ++units) {
            std::vector<std::atomic<int>> seen(units);
            stream.run(units, [&](std::uint32_t unit, unsigned worker) {
                EXPECT_LT(worker, threads);
                seen[unit].fetch_add(1, std::memory_order_relaxed);
            });
            for (const auto& count : seen)
                ASSERT_EQ(count.load(), 1);
        }
    }
}

// A thread that finds all units of a job taken must not take the first free one of a longer job that is being set up.
TEST(CpuStream, aLateThreadTakesNothingOfAJobThatIsBeingSetUp) {
    constexpr std::uint32_t kLong = 24;
    CpuStream stream(4);
    for (int round = 0; round < 60'000; ++round) {
        const std::uint32_t units = round % 2 == 0 ? 2 : kLong;
        std::array<std::atomic<int>, kLong> seen{};
        stream.run(units,
                   [&seen](std::uint32_t unit, unsigned) { seen[unit].fetch_add(1, std::memory_order_relaxed); });
        for (std::uint32_t unit = 0; unit < kLong; ++unit)
            ASSERT_EQ(seen[unit].load(), unit < units ? 1 : 0) << "round " << round << ", unit " << unit;
    }
}

TEST(CpuStream, seesWhatTheUnitsWrote) {
    CpuStream stream(3);
    std::vector<std::uint64_t> values(997);
    for (std::uint64_t round = 1; round <= 300; ++round) {
        stream.run(static_cast<std::uint32_t>(values.size()),
                   [&](std::uint32_t unit, unsigned) { values[unit] += round * unit; });
    }
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], 300 * 301 / 2 * i);
}

TEST(CpuStream, worksAgainAfterItsThreadsFellAsleep) {
    CpuStream stream(2);
    for (int round = 0; round < 3; ++round) {
        std::atomic<int> done{0};
        stream.run(64, [&](std::uint32_t, unsigned) { done.fetch_add(1); });
        EXPECT_EQ(done.load(), 64);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

TEST(CpuStream, givesEachWorkerItsOwnScratch) {
    CpuStream stream(3);
    stream.reservePrivate(1000);
    for (unsigned a = 0; a < 3; ++a) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stream.privateOf(a)) % 64, 0u);
        for (unsigned b = 0; b < a; ++b)
            EXPECT_GE(std::abs(stream.privateOf(a) - stream.privateOf(b)), 1000);
    }
    std::byte* shared = stream.shared(CpuStream::Partials, 5000);
    EXPECT_EQ(stream.shared(CpuStream::Partials, 4000), shared);
}

#if defined(__x86_64__)
TEST(CpuStream, keepsSubnormalNumbersAndGivesTheCallersModeBack) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    volatile float tiny = 1e-40f;
    float alone = 0, shared = 0;
    CpuStream one(1), two(2);
    one.run(1, [&](std::uint32_t, unsigned) { alone = tiny * 0.5f; });
    two.run(8, [&](std::uint32_t unit, unsigned) {
        if (unit == 7)
            shared = tiny * 0.5f;
    });
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & 0x8040, 0x8040u);
    EXPECT_EQ(alone, 1e-40f * 0.5f);
    EXPECT_EQ(shared, 1e-40f * 0.5f);
}
#endif

TEST(AlignedBuffer, isAlignedZeroedAndMovable) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
        AlignedBuffer buffer(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
        EXPECT_GE(buffer.size(), bytes);
        EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
        std::byte* data = buffer.data();
        AlignedBuffer other = std::move(buffer);
        EXPECT_EQ(other.data(), data);
        EXPECT_EQ(buffer.data(), nullptr); // NOLINT(bugprone-use-after-move): the promise under test
    }
}

} // namespace
} // namespace kvatlas::kernels::cpu

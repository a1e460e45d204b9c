// SPDX-License-Identifier: Apache-2.0
// The strategy: a full cache configuration, as a JSON file describes it (design: "Strategy and scenario files").
// Every key has a default, so `{}` is the plain paged f16 cache. Plain values, any thread.
//
// Errors. A file is hostile input: unknown keys (the nearest known one is named), duplicate keys, wrong types, numbers
// out of range, values that are not available yet, and combinations that make no sense are Refused with one sentence.
#pragma once

#include "core/base/result.h"
#include "kernels/shapes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvatlas::strategy {

enum class Layout : std::uint8_t { Paged, Contiguous };
enum class Reserve : std::uint8_t { MaxModelLen, MaxTokens }; // what `contiguous` reserves at admission
enum class Batching : std::uint8_t { Continuous, Static };
enum class Schedule : std::uint8_t { Fcfs };
enum class Preemption : std::uint8_t { Recompute };

std::string_view nameOf(Layout);
std::string_view nameOf(Reserve);
std::string_view nameOf(Batching);
std::string_view nameOf(Schedule);
std::string_view nameOf(Preemption);

// How much memory the KV pool takes.
struct KvMemory {
    enum class Kind : std::uint8_t {
        Auto,  // at least 64 MiB and one sequence of max_model_len
        Bytes, // as given
        Share, // of the free device memory
    };
    Kind kind = Kind::Auto;
    std::uint64_t bytes = 0;
    double share = 0;
    friend bool operator==(const KvMemory&, const KvMemory&) = default;
};

struct Strategy {
    std::uint32_t version = 1;
    std::string name;
    Layout layout = Layout::Paged;
    Reserve reserve = Reserve::MaxModelLen;
    std::uint32_t blockTokens = 16;
    KvMemory kvMemory;
    std::optional<std::uint32_t> poolBlocks;        // given: decides instead of kvMemory
    std::optional<std::uint32_t> maxModelLenTokens; // not given ("auto"): the model's context, at most 2,048
    Batching batching = Batching::Continuous;
    std::uint32_t maxSequences = 16; // running at the same time
    std::uint32_t chunkTokens = 256; // prefill tokens that one step computes at most
    Schedule schedule = Schedule::Fcfs;
    Preemption preemption = Preemption::Recompute;
    kernels::StorageFormat kFormat = kernels::StorageFormat::F16;
    kernels::StorageFormat vFormat = kernels::StorageFormat::F16;
    friend bool operator==(const Strategy&, const Strategy&) = default;
};

constexpr std::uint32_t kDefaultMaxModelLenTokens = 2048;
constexpr std::uint64_t kDefaultKvMemoryBytes = std::uint64_t{64} << 20;

// `what` names the input in messages: a file name, "the scenario's strategy".
Result<Strategy> parse(std::string_view json, std::string_view what = "strategy");

// Complete: every key written out, in a fixed order. parse(toJson(s)) == s.
std::string toJson(const Strategy& strategy);

// One line for people: "paged, blocks of 16, f16, 64 MiB". `taken`: what the pools of a run took, in place of the bytes
// that were asked for.
std::string describe(const Strategy& strategy, std::string_view taken = {});

// The longest sequence that the run allows, prompt and output together. Refused when the strategy asks for more than
// the model's context (contextTokens).
Result<std::uint32_t> maxModelLenFor(const Strategy& strategy, std::uint32_t contextTokens);

// The shape of a block for this model under this strategy.
kernels::KvLayout layoutFor(const Strategy& strategy, std::uint32_t layers, std::uint32_t kvHeads,
                            std::uint32_t headDim);

// Blocks of the pool, 1 .. 2^26 - 1. freeDeviceBytes: 0 when not known. Refused when the numbers do not fit,
// OutOfMemory when the given memory holds no block or more is asked for than is free.
Result<std::uint32_t> poolBlocksFor(const Strategy& strategy, const kernels::KvLayout& layout,
                                    std::uint32_t maxModelLenTokens, std::uint64_t freeDeviceBytes);

} // namespace kvatlas::strategy

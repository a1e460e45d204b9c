// SPDX-License-Identifier: Apache-2.0
// The keys and words of the strategy file: the one table that parsing, writing and hints share. Constants, any thread.
#pragma once

#include "core/strategy/strategy.h"

#include <array>
#include <span>
#include <string_view>

namespace kvatlas::strategy {

constexpr std::array<std::string_view, 2> kLayoutNames{"paged", "contiguous"};
constexpr std::array<std::string_view, 2> kReserveNames{"max_model_len", "max_tokens"};
constexpr std::array<std::string_view, 2> kBatchingNames{"continuous", "static"};
constexpr std::array<std::string_view, 2> kScheduleNames{"fcfs", "priority"};
constexpr std::array<std::string_view, 2> kPreemptionNames{"recompute", "swap"};
constexpr std::array<std::string_view, 17> kFormatNames{"f32",  "f16",  "bf16", "fp8_e4m3", "fp8_e5m2", "int8",
                                                        "int4", "q8_0", "q4_0", "q4_1",     "kivi4",    "kivi2",
                                                        "nuq4", "nuq3", "nuq2", "gear4",    "gear2"};
constexpr std::array<std::string_view, 9> kEvictionNames{"none",   "window",    "streaming", "h2o",   "tova",
                                                         "snapkv", "pyramidkv", "keynorm",   "random"};
constexpr std::array<std::string_view, 2> kPositionsNames{"cache", "original"};
constexpr std::array<std::string_view, 3> kOffloadNames{"none", "host", "disk"};

// A key whose plain value alone is available in this version. `plain` is JSON; `values`, where not empty, are the words
// that the key knows.
struct PlainOnlyKey {
    std::string_view key;
    std::string_view plain;
    std::span<const std::string_view> values;
};

constexpr std::array<PlainOnlyKey, 16> kPlainOnlyKeys{{
    {"prefix_cache", "false", {}},
    {"rotate", "false", {}},
    {"group", "32", {}},
    {"residual_tokens", "128", {}},
    {"outliers", "0.01", {}},
    {"rank", "4", {}},
    {"keep_layers", "[]", {}},
    {"eviction", "\"none\"", kEvictionNames},
    {"sinks", "4", {}},
    {"window", "1024", {}},
    {"budget", "0.2", {}},
    {"heavy", "0.5", {}},
    {"positions", "\"cache\"", kPositionsNames},
    {"offload", "\"none\"", kOffloadNames},
    {"host_memory", "\"256MiB\"", {}},
    {"disk_memory", "\"1GiB\"", {}},
}};
// `heads` has words with a number in them ("latent:192") and is read on its own.
constexpr std::string_view kPlainHeads = "native";

constexpr std::array<std::string_view, 16> kTypedKeys{"version",      "name",          "layout",       "reserve",
                                                      "block_tokens", "kv_memory",     "pool_blocks",  "max_model_len",
                                                      "batching",     "max_sequences", "chunk_tokens", "schedule",
                                                      "preemption",   "k_format",      "v_format",     "heads"};

// Every known key, in no particular order.
constexpr auto kAllKeys = [] {
    std::array<std::string_view, kTypedKeys.size() + kPlainOnlyKeys.size()> keys{};
    std::size_t n = 0;
    for (const auto key : kTypedKeys)
        keys[n++] = key;
    for (const auto& entry : kPlainOnlyKeys)
        keys[n++] = entry.key;
    return keys;
}();

// Limits of numbers.
constexpr std::uint32_t kMaxBlockTokens = 1024;
constexpr std::uint32_t kMaxPoolBlocks = (1u << 26) - 1; // block ids have 26 bits of index
constexpr std::uint32_t kMaxModelLenTokens = 1u << 24;
constexpr std::uint32_t kMaxSequences = 4096;
constexpr std::uint32_t kMaxChunkTokens = 65536;
constexpr std::size_t kMaxNameBytes = 200;

} // namespace kvatlas::strategy

// SPDX-License-Identifier: Apache-2.0
// Formats, shapes and byte counts that the kernels, the model reader, the cache and the strategy file agree on.
// Plain values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvatlas::kernels {

// How a weight tensor is stored in a model file (ggml's names and byte layouts; ids in core/model/gguf).
enum class WeightFormat : std::uint8_t { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K };

struct WeightFormatInfo {
    std::string_view name;
    std::uint32_t groupElements; // a row is a whole number of groups
    std::uint32_t groupBytes;
};

constexpr WeightFormatInfo infoOf(WeightFormat format) {
    switch (format) {
    case WeightFormat::F32:
        return {"F32", 1, 4};
    case WeightFormat::F16:
        return {"F16", 1, 2};
    case WeightFormat::BF16:
        return {"BF16", 1, 2};
    case WeightFormat::Q8_0:
        return {"Q8_0", 32, 34};
    case WeightFormat::Q4_0:
        return {"Q4_0", 32, 18};
    case WeightFormat::Q4_1:
        return {"Q4_1", 32, 20};
    case WeightFormat::Q4_K:
        return {"Q4_K", 256, 144};
    case WeightFormat::Q5_K:
        return {"Q5_K", 256, 176};
    case WeightFormat::Q6_K:
        return {"Q6_K", 256, 210};
    }
    return {"", 1, 0};
}

// How K or V is stored in a block.
enum class StorageFormat : std::uint8_t { F32, F16 };

constexpr std::string_view nameOf(StorageFormat format) {
    return format == StorageFormat::F32 ? "f32" : "f16";
}
constexpr std::size_t elementBytes(StorageFormat format) {
    return format == StorageFormat::F32 ? 4 : 2;
}
constexpr std::optional<StorageFormat> storageFormatNamed(std::string_view name) {
    for (StorageFormat f : {StorageFormat::F32, StorageFormat::F16})
        if (nameOf(f) == name)
            return f;
    return std::nullopt;
}

// exact: f32 activations on dequantized weights. fast: products with activations in int8 per 32, attention in f32.
// integer: fast, and attention by int8 Q and P on the stored codes (refused until a backend offers it).
enum class Arithmetic : std::uint8_t { Exact, Fast, Integer };

constexpr std::string_view nameOf(Arithmetic a) {
    return a == Arithmetic::Exact ? "exact" : a == Arithmetic::Fast ? "fast" : "integer";
}
constexpr std::optional<Arithmetic> arithmeticNamed(std::string_view name) {
    for (Arithmetic a : {Arithmetic::Exact, Arithmetic::Fast, Arithmetic::Integer})
        if (nameOf(a) == name)
            return a;
    return std::nullopt;
}

// The bytes of one block of a layer group, in this order:
//   for each layer: K as [kvHeads][headDim][blockTokens], then V as [kvHeads][blockTokens][headDim].
// K is stored with the token fastest, so that a SIMD lane is a key; V with the channel fastest, so that a lane is a
// channel (the two orders of sums that attention promises, kernels.h).
struct KvLayout {
    std::uint32_t layers = 0;
    std::uint32_t kvHeads = 0;
    std::uint32_t headDim = 0;
    std::uint32_t blockTokens = 16;
    StorageFormat kFormat = StorageFormat::F16;
    StorageFormat vFormat = StorageFormat::F16;

    constexpr std::size_t kHeadBytes() const { return std::size_t{headDim} * blockTokens * elementBytes(kFormat); }
    constexpr std::size_t vHeadBytes() const { return std::size_t{headDim} * blockTokens * elementBytes(vFormat); }
    constexpr std::size_t layerBytes() const { return kvHeads * (kHeadBytes() + vHeadBytes()); }
    constexpr std::size_t blockBytes() const { return layers * layerBytes(); }
    constexpr std::size_t bytesPerToken() const { return blockBytes() / blockTokens; }

    constexpr std::size_t kOffset(std::uint32_t layer, std::uint32_t head) const {
        return layer * layerBytes() + head * kHeadBytes();
    }
    constexpr std::size_t vOffset(std::uint32_t layer, std::uint32_t head) const {
        return layer * layerBytes() + kvHeads * kHeadBytes() + head * vHeadBytes();
    }
};

} // namespace kvatlas::kernels

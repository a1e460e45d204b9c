// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files by hand, right or wrong, so that tests need no model: GgufWriter lays bytes as it is told, and
// tinyLlama() builds a whole small llama model with random weights and a byte-level tokenizer.
// Deterministic: the same seed and shape give the same bytes on every machine. One thread each.
#pragma once

#include "core/base/bytes.h"
#include "core/model/gguf.h"
#include "kernels/shapes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::testing {

using Bytes = std::vector<std::byte>;

// SplitMix64 (Steele et al. 2014).
class TestRandom {
public:
    explicit TestRandom(std::uint64_t seed)
        : m_state(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (m_state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    float uniform(float low, float high) { return low + (high - low) * (static_cast<float>(next() >> 40) * 0x1p-24f); }

private:
    std::uint64_t m_state;
};

// Rounds to nearest, ties to even; for |value| < 65504.
inline std::uint16_t halfBits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    const float magnitude = std::fabs(value);
    if (magnitude < 0x1p-14f) // subnormal: a whole number of 2^-24
        return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
    const std::uint32_t rounded = (bits & 0x7FFFFFFF) + 0xFFF + (bits >> 13 & 1);
    return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}
inline float halfValue(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

class GgufWriter {
public:
    explicit GgufWriter(std::uint32_t version = 3)
        : m_version(version) {}

    // Announced counts, where they shall differ from what is written.
    std::uint64_t keyCountOffset = 0, tensorCountOffset = 0;
    std::uint64_t alignment = 32; // what the writer lays by; the key general.alignment is the caller's
    std::string magic = "GGUF";

    ByteWriter keys() { return ByteWriter(m_keys); }         // raw access, for wrong bytes
    ByteWriter tensorInfos() { return ByteWriter(m_infos); } // raw access, for wrong bytes
    void countKey() { ++m_keyCount; }
    void countTensor() { ++m_tensorCount; }

    static void text(ByteWriter out, std::string_view value) {
        out.fixed(std::uint64_t{value.size()});
        out.bytes(std::as_bytes(std::span(value)));
    }
    void key(std::string_view name, model::GgufType type) {
        text(keys(), name);
        keys().fixed(static_cast<std::uint32_t>(type));
        countKey();
    }
    void u32(std::string_view name, std::uint32_t value) { scalar(name, model::GgufType::U32, value); }
    void u64(std::string_view name, std::uint64_t value) { scalar(name, model::GgufType::U64, value); }
    void i32(std::string_view name, std::int32_t value) { scalar(name, model::GgufType::I32, value); }
    void f32(std::string_view name, float value) { scalar(name, model::GgufType::F32, value); }
    void flag(std::string_view name, bool value) {
        scalar(name, model::GgufType::Bool, static_cast<std::uint8_t>(value));
    }
    void string(std::string_view name, std::string_view value) {
        key(name, model::GgufType::Text);
        text(keys(), value);
    }
    void array(std::string_view name, model::GgufType elementType, std::uint64_t count) { // elements: the caller's
        key(name, model::GgufType::Array);
        keys().fixed(static_cast<std::uint32_t>(elementType));
        keys().fixed(count);
    }
    template <class T> void array(std::string_view name, model::GgufType elementType, const std::vector<T>& values) {
        array(name, elementType, values.size());
        for (const T& value : values)
            keys().fixed(value);
    }
    void strings(std::string_view name, const std::vector<std::string>& values) {
        array(name, model::GgufType::Text, values.size());
        for (const std::string& value : values)
            text(keys(), value);
    }

    // A tensor whose description is what the arguments say and whose data are `data`.
    void tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t typeId,
                std::span<const std::byte> data) {
        tensorAt(name, dims, typeId, m_data.size());
        m_data.insert(m_data.end(), data.begin(), data.end());
        m_dataSizeUnpadded = m_data.size();
        m_data.resize((m_data.size() + alignment - 1) / alignment * alignment);
    }
    void tensorAt(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t typeId,
                  std::uint64_t offset) { // the description alone
        text(tensorInfos(), name);
        tensorInfos().fixed(static_cast<std::uint32_t>(dims.size()));
        for (const std::uint64_t dim : dims)
            tensorInfos().fixed(dim);
        tensorInfos().fixed(typeId);
        tensorInfos().fixed(offset);
        countTensor();
    }

    Bytes header() const { // up to the first byte of data
        Bytes out;
        ByteWriter w(out);
        w.bytes(std::as_bytes(std::span(magic)));
        w.fixed(m_version);
        w.fixed(m_tensorCount + tensorCountOffset);
        w.fixed(m_keyCount + keyCountOffset);
        w.bytes(m_keys);
        w.bytes(m_infos);
        out.resize((out.size() + alignment - 1) / alignment * alignment);
        return out;
    }
    Bytes file() const {
        Bytes out = header();
        out.insert(out.end(), m_data.begin(), m_data.end());
        return out;
    }
    std::size_t dataBytesWithoutLastPadding() const { return m_dataSizeUnpadded; }

private:
    template <class T> void scalar(std::string_view name, model::GgufType type, T value) {
        key(name, type);
        keys().fixed(value);
    }

    std::uint32_t m_version;
    std::uint64_t m_keyCount = 0, m_tensorCount = 0;
    std::size_t m_dataSizeUnpadded = 0;
    Bytes m_keys, m_infos, m_data;
};

inline void writeFile(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush())
        throw std::runtime_error("cannot write " + path.string());
}

} // namespace kvatlas::testing

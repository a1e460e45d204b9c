// SPDX-License-Identifier: Apache-2.0
// Reader of GGUF files, version 2 and 3, little-endian (ggml docs/gguf.md; the rules that ggml's own reader adds on top
// are kept, so that a file it refuses is refused here: power-of-two alignment typed u32, tensors laid one after the
// other without gaps, names of at most 63 bytes, no arrays of arrays).
//
// Promise: opening a file never harms. Every count, length, offset and size is compared, without wrapping, with the
// bytes that are left before anything is allocated or read. Texts and data are views into the file, never copies.
// Threads: immutable after opening, any thread. Owner: the GgufFile owns the bytes behind every view it hands out.
// Errors: Refused, one sentence that names the file, the key or the tensor, and what to do.
#pragma once

#include "core/base/result.h"
#include "core/model/mapped_file.h"
#include "kernels/shapes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace kvatlas::model {

// Ids as in the file.
enum class GgufType : std::uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64 };

std::string_view nameOf(GgufType type);

struct GgufArray {
    GgufType elementType = GgufType::U8;
    std::uint64_t count = 0;
    std::span<const std::byte> data; // as in the file; a Text is u64 length, then its bytes
};

// Unsigned and signed integers of every width, floats of both widths.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufEntry {
    std::string_view key;
    GgufType type = GgufType::U8;
    GgufValue value;
};

// A tensor type as ggml numbers it. `format` is empty for a type that KVAtlas cannot use as a weight.
struct GgufTensorType {
    std::uint32_t id = 0;
    std::string_view name;
    std::uint32_t groupElements = 1;
    std::uint32_t groupBytes = 0;
    std::optional<kernels::WeightFormat> format;
};

const GgufTensorType* ggufTensorType(std::uint32_t id); // nullptr: unknown or removed from ggml
std::uint32_t ggufTypeId(kernels::WeightFormat format);

struct GgufTensor {
    std::string_view name;
    std::uint32_t dimensions = 0;
    std::array<std::uint64_t, 4> dims{1, 1, 1, 1}; // fastest axis first, as in the file
    const GgufTensorType* type = nullptr;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
    std::uint64_t fileOffset = 0;
    std::span<const std::byte> data; // [bytes]; empty where the file was opened for its header alone
};

// HeaderOnly reads metadata and the list of tensors and does not mind when their data are not (yet) there.
enum class GgufParts : std::uint8_t { HeaderOnly, HeaderAndData };

class GgufFile {
public:
    static Result<GgufFile> open(const std::filesystem::path& path, GgufParts parts = GgufParts::HeaderAndData);
    // `name` stands for the path in messages.
    static Result<GgufFile> fromBytes(std::vector<std::byte> bytes, std::string name,
                                      GgufParts parts = GgufParts::HeaderAndData);

    const std::string& name() const { return m_name; }
    std::uint32_t version() const { return m_version; }
    std::uint64_t alignment() const { return m_alignment; }
    std::uint64_t dataOffset() const { return m_dataOffset; }
    std::span<const std::byte> bytes() const { return m_bytes; }
    std::span<const GgufEntry> entries() const { return m_entries; }
    std::span<const GgufTensor> tensors() const { return m_tensors; }
    const GgufEntry* find(std::string_view key) const;
    const GgufTensor* tensor(std::string_view tensorName) const;

    // The value of a key in the wanted type, or a sentence: missing, of another type, out of range. A count may be
    // stored in any integer type that holds it.
    Result<std::uint64_t> count(std::string_view key) const;
    Result<double> number(std::string_view key) const;
    Result<bool> flag(std::string_view key) const;
    Result<std::string_view> text(std::string_view key) const;
    Result<std::vector<std::string_view>> texts(std::string_view key) const;
    Result<std::vector<std::int64_t>> integers(std::string_view key) const; // an array of any integer type
    Result<std::vector<float>> floats(std::string_view key) const;          // an array of f32
    // As above, and `fallback` where the key is missing; a wrong type is still an error.
    Result<std::uint64_t> countOr(std::string_view key, std::uint64_t fallback) const;
    Result<double> numberOr(std::string_view key, double fallback) const;
    Result<bool> flagOr(std::string_view key, bool fallback) const;
    Result<std::string_view> textOr(std::string_view key, std::string_view fallback) const;

    // An error when the file has shrunk since it was opened; ask before and after copying weights out of it.
    Result<void> checkStillWhole() const;

private:
    friend class GgufParser;
    GgufFile() = default;

    std::string m_name;
    std::optional<MappedFile> m_mapping;
    std::vector<std::byte> m_owned;
    std::span<const std::byte> m_bytes;
    std::uint32_t m_version = 0;
    std::uint64_t m_alignment = 32;
    std::uint64_t m_dataOffset = 0;
    std::vector<GgufEntry> m_entries;
    std::vector<GgufTensor> m_tensors;
    std::unordered_map<std::string_view, std::size_t> m_entryIndex;
    std::unordered_map<std::string_view, std::size_t> m_tensorIndex;
};

// A text from a file in quotation marks, fit for a message: control and non-ASCII bytes escaped, at most 64 shown.
std::string inQuotes(std::string_view text);

} // namespace kvatlas::model

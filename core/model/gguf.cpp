// SPDX-License-Identifier: Apache-2.0
#include "core/model/gguf.h"

#include "core/base/bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kvatlas::model {

namespace {

using kernels::WeightFormat;

constexpr std::size_t kMaxKeyBytes = 65'535;
constexpr std::size_t kMaxTensorNameBytes = 63;
// No published model comes near; they bound what the lists of a large hostile file can take.
constexpr std::uint64_t kMaxKeys = 1 << 16;
constexpr std::uint64_t kMaxTensors = 1 << 17;
constexpr std::size_t kMinKeyBytesInFile = 8 + 1 + 4 + 1;    // length, name, type, value
constexpr std::size_t kMinTensorBytesInFile = 8 + 4 + 4 + 8; // name length, dimensions, type, offset

// ggml.h and ggml-common.h at d99724f2: bytes and elements of one quantization group.
constexpr GgufTensorType kTensorTypes[] = {
    {0, "F32", 1, 4, WeightFormat::F32},
    {1, "F16", 1, 2, WeightFormat::F16},
    {2, "Q4_0", 32, 18, WeightFormat::Q4_0},
    {3, "Q4_1", 32, 20, WeightFormat::Q4_1},
    {6, "Q5_0", 32, 22, {}},
    {7, "Q5_1", 32, 24, {}},
    {8, "Q8_0", 32, 34, WeightFormat::Q8_0},
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, WeightFormat::Q4_K},
    {13, "Q5_K", 256, 176, WeightFormat::Q5_K},
    {14, "Q6_K", 256, 210, WeightFormat::Q6_K},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, {}},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, WeightFormat::BF16},
    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},
    {40, "NVFP4", 64, 36, {}},
    {41, "Q1_0", 128, 18, {}},
    {42, "Q2_0", 64, 18, {}},
};

constexpr bool formatsAgreeWithTheKernels() {
    for (const GgufTensorType& type : kTensorTypes)
        if (type.format &&
            (infoOf(*type.format).groupElements != type.groupElements ||
             infoOf(*type.format).groupBytes != type.groupBytes || infoOf(*type.format).name != type.name))
            return false;
    return true;
}
static_assert(formatsAgreeWithTheKernels());

// 0 for Text and Array, whose size is in the file.
constexpr std::size_t bytesOf(GgufType type) {
    switch (type) {
    case GgufType::U8:
    case GgufType::I8:
    case GgufType::Bool:
        return 1;
    case GgufType::U16:
    case GgufType::I16:
        return 2;
    case GgufType::U32:
    case GgufType::I32:
    case GgufType::F32:
        return 4;
    case GgufType::U64:
    case GgufType::I64:
    case GgufType::F64:
        return 8;
    case GgufType::Text:
    case GgufType::Array:
        return 0;
    }
    return 0;
}

std::string_view asText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A length prefix that cannot be followed by that many bytes fails the reader before anything else happens.
std::string_view readText(ByteReader& in) {
    const auto length = in.fixed<std::uint64_t>();
    if (length > in.remaining()) {
        in.fail();
        return {};
    }
    return asText(in.bytes(static_cast<std::size_t>(length)));
}

GgufValue readScalar(ByteReader& in, GgufType type) {
    switch (type) {
    case GgufType::U8:
        return std::uint64_t{in.fixed<std::uint8_t>()};
    case GgufType::I8:
        return std::int64_t{in.fixed<std::int8_t>()};
    case GgufType::U16:
        return std::uint64_t{in.fixed<std::uint16_t>()};
    case GgufType::I16:
        return std::int64_t{in.fixed<std::int16_t>()};
    case GgufType::U32:
        return std::uint64_t{in.fixed<std::uint32_t>()};
    case GgufType::I32:
        return std::int64_t{in.fixed<std::int32_t>()};
    case GgufType::F32:
        return double{in.fixed<float>()};
    case GgufType::Bool:
        return in.fixed<std::uint8_t>() != 0; // as ggml reads it: anything but 0 is true
    case GgufType::U64:
        return in.fixed<std::uint64_t>();
    case GgufType::I64:
        return in.fixed<std::int64_t>();
    case GgufType::F64:
        return in.fixed<double>();
    case GgufType::Text:
        return readText(in);
    case GgufType::Array:
        break;
    }
    return std::uint64_t{0};
}

bool isKnown(std::uint32_t typeId) {
    return typeId <= static_cast<std::uint32_t>(GgufType::F64);
}

} // namespace

std::string inQuotes(std::string_view text) {
    constexpr std::size_t kShown = 64;
    std::string out = "'";
    for (const char c : text.substr(0, kShown)) {
        if (c >= 0x20 && c < 0x7F)
            out += c;
        else
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return out + (text.size() > kShown ? "...'" : "'");
}

std::string_view nameOf(GgufType type) {
    constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
    return isKnown(static_cast<std::uint32_t>(type)) ? kNames[static_cast<std::uint32_t>(type)] : "unknown";
}

const GgufTensorType* ggufTensorType(std::uint32_t id) {
    const auto* found = std::ranges::find(kTensorTypes, id, &GgufTensorType::id);
    return found == std::end(kTensorTypes) ? nullptr : found;
}

std::uint32_t ggufTypeId(WeightFormat format) {
    return std::ranges::find(kTensorTypes, std::optional(format), &GgufTensorType::format)->id;
}

class GgufParser {
public:
    GgufParser(GgufFile& file, GgufParts parts)
        : m_file(file)
        , m_parts(parts)
        , m_in(file.m_bytes) {}

    Result<void> parse() {
        return readHeader()
            .and_then([this] { return readEntries(); })
            .and_then([this] { return readAlignment(); })
            .and_then([this] { return readTensors(); })
            .and_then([this] { return placeTensors(); });
    }

private:
    template <class... Args> auto refuse(fmt::format_string<Args...> text, Args&&... args) const {
        return makeError(ErrorKind::Refused, "{}: {}", m_file.m_name, fmt::format(text, std::forward<Args>(args)...));
    }
    auto endsIn(std::string_view what) const {
        return refuse(
            "the file ends, or a length in it points past the end, in {} (at byte {} of {}); it is damaged or "
            "half-downloaded: fetch it again",
            what, m_in.position(), m_file.m_bytes.size());
    }

    Result<void> readHeader() {
        if (asText(m_in.bytes(4)) != "GGUF" || !m_in.ok())
            return refuse("is not a GGUF file (it does not begin with 'GGUF'); choose a .gguf model");
        const auto version = m_in.fixed<std::uint32_t>();
        const auto tensors = m_in.fixed<std::uint64_t>();
        const auto keys = m_in.fixed<std::uint64_t>();
        if (!m_in.ok())
            return endsIn("its header");
        if ((version & 0xFFFFu) == 0 && version != 0)
            return refuse("has the wrong endian (it was written for big-endian machines); get the little-endian file");
        if (version != 2 && version != 3)
            return refuse("is GGUF version {}, and versions 2 and 3 can be read; {}", version,
                          version < 2 ? "convert it again with a current converter" : "a newer KVAtlas may read it");
        if (keys > m_in.remaining() / kMinKeyBytesInFile || keys > kMaxKeys)
            return refuse("announces {} metadata keys, more than {}; it is damaged: fetch it again", keys,
                          keys > kMaxKeys ? "any model has" : "the file can hold");
        if (tensors > m_in.remaining() / kMinTensorBytesInFile || tensors > kMaxTensors)
            return refuse("announces {} tensors, more than {}; it is damaged: fetch it again", tensors,
                          tensors > kMaxTensors ? "any model has" : "the file can hold");
        m_file.m_version = version;
        m_keys = static_cast<std::size_t>(keys);
        m_tensors = static_cast<std::size_t>(tensors);
        return {};
    }

    Result<void> readEntries() {
        m_file.m_entries.reserve(m_keys);
        m_file.m_entryIndex.reserve(m_keys);
        for (std::size_t i = 0; i < m_keys; ++i) {
            GgufEntry entry;
            entry.key = readText(m_in);
            const auto typeId = m_in.fixed<std::uint32_t>();
            if (!m_in.ok())
                return endsIn(fmt::format("metadata key {} of {}", i + 1, m_keys));
            if (entry.key.empty() || entry.key.size() > kMaxKeyBytes)
                return refuse(
                    "metadata key {} of {} has a name of {} bytes, and 1 to {} are allowed; it is damaged: fetch it "
                    "again",
                    i + 1, m_keys, entry.key.size(), kMaxKeyBytes);
            if (!isKnown(typeId))
                return refuse("the value of key {} has the unknown type {}; it is damaged: fetch it again",
                              inQuotes(entry.key), typeId);
            entry.type = static_cast<GgufType>(typeId);
            if (entry.type == GgufType::Array) {
                auto array = readArray(entry.key);
                if (!array)
                    return tl::unexpected(array.error());
                entry.value = *array;
            } else {
                entry.value = readScalar(m_in, entry.type);
            }
            if (!m_in.ok())
                return endsIn(fmt::format("the value of key {}", inQuotes(entry.key)));
            if (!m_file.m_entryIndex.emplace(entry.key, i).second)
                return refuse("has the key {} twice; it is damaged: fetch it again", inQuotes(entry.key));
            m_file.m_entries.push_back(entry);
        }
        return {};
    }

    Result<GgufArray> readArray(std::string_view key) {
        const auto elementId = m_in.fixed<std::uint32_t>();
        const auto count = m_in.fixed<std::uint64_t>();
        if (!m_in.ok())
            return endsIn(fmt::format("the array of key {}", inQuotes(key)));
        if (!isKnown(elementId))
            return refuse("the array of key {} has elements of the unknown type {}; it is damaged: fetch it again",
                          inQuotes(key), elementId);
        GgufArray array{static_cast<GgufType>(elementId), count, {}};
        if (array.elementType == GgufType::Array)
            return refuse("the array of key {} holds arrays, which no model uses; convert the model again",
                          inQuotes(key));
        const bool texts = array.elementType == GgufType::Text;
        const std::size_t least = texts ? 8 : bytesOf(array.elementType);
        if (count > m_in.remaining() / least)
            return refuse("the array of key {} announces {} elements of type {}, more than the {} bytes left in the "
                          "file can hold; "
                          "it is damaged or half-downloaded: fetch it again",
                          inQuotes(key), count, nameOf(array.elementType), m_in.remaining());
        const std::size_t begin = m_in.position();
        if (texts)
            for (std::uint64_t i = 0; i < count && m_in.ok(); ++i)
                readText(m_in);
        else
            m_in.bytes(static_cast<std::size_t>(count) * least);
        if (!m_in.ok())
            return endsIn(fmt::format("the array of key {}", inQuotes(key)));
        array.data = m_file.m_bytes.subspan(begin, m_in.position() - begin);
        return array;
    }

    Result<void> readAlignment() {
        const GgufEntry* entry = m_file.find("general.alignment");
        if (!entry)
            return {};
        if (entry->type != GgufType::U32)
            return refuse("general.alignment is of type {} and must be u32; convert the model again",
                          nameOf(entry->type));
        const auto alignment = std::get<std::uint64_t>(entry->value);
        if (!std::has_single_bit(alignment))
            return refuse("general.alignment is {} and must be a power of two; convert the model again", alignment);
        m_file.m_alignment = alignment;
        return {};
    }

    Result<void> readTensors() {
        m_file.m_tensors.reserve(m_tensors);
        m_file.m_tensorIndex.reserve(m_tensors);
        for (std::size_t i = 0; i < m_tensors; ++i) {
            GgufTensor tensor;
            tensor.name = readText(m_in);
            tensor.dimensions = m_in.fixed<std::uint32_t>();
            if (!m_in.ok())
                return endsIn(fmt::format("the description of tensor {} of {}", i + 1, m_tensors));
            if (tensor.name.size() > kMaxTensorNameBytes)
                return refuse("the name of tensor {} of {} has {} bytes, and {} are allowed; convert the model again",
                              i + 1, m_tensors, tensor.name.size(), kMaxTensorNameBytes);
            if (tensor.dimensions > tensor.dims.size())
                return refuse("tensor {} has {} dimensions, and at most {} are allowed; it is damaged: fetch it again",
                              inQuotes(tensor.name), tensor.dimensions, tensor.dims.size());
            for (std::uint32_t d = 0; d < tensor.dimensions; ++d)
                tensor.dims[d] = m_in.fixed<std::uint64_t>();
            const auto typeId = m_in.fixed<std::uint32_t>();
            const auto offset = m_in.fixed<std::uint64_t>();
            if (!m_in.ok())
                return endsIn(fmt::format("the description of tensor {}", inQuotes(tensor.name)));
            if (auto sized = sizeTensor(tensor, typeId); !sized)
                return sized;
            if (!m_file.m_tensorIndex.emplace(tensor.name, i).second)
                return refuse("has the tensor {} twice; it is damaged: fetch it again", inQuotes(tensor.name));
            tensor.fileOffset = offset; // relative to the data until placeTensors
            m_file.m_tensors.push_back(tensor);
        }
        return {};
    }

    Result<void> sizeTensor(GgufTensor& tensor, std::uint32_t typeId) const {
        tensor.type = ggufTensorType(typeId);
        if (!tensor.type)
            return refuse("tensor {} has the type number {}, which is unknown; use a file quantized to Q8_0 or Q4_K_M",
                          inQuotes(tensor.name), typeId);
        constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        tensor.elements = 1;
        for (const std::uint64_t dim : tensor.dims)
            if (dim > kMax || __builtin_mul_overflow(tensor.elements, dim, &tensor.elements) || tensor.elements > kMax)
                return tooLarge(tensor);
        if (tensor.dims[0] % tensor.type->groupElements != 0)
            return refuse(
                "tensor {} of type {} has rows of {} values, which is no multiple of {}; convert the model again",
                inQuotes(tensor.name), tensor.type->name, tensor.dims[0], tensor.type->groupElements);
        if (__builtin_mul_overflow(tensor.elements / tensor.type->groupElements, tensor.type->groupBytes,
                                   &tensor.bytes))
            return tooLarge(tensor);
        return {};
    }
    tl::unexpected<Error> tooLarge(const GgufTensor& tensor) const {
        return refuse(
            "tensor {} has the dimensions {} x {} x {} x {}, more than any machine can hold; it is damaged: fetch it "
            "again",
            inQuotes(tensor.name), tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]);
    }

    // Offsets must be the running sum of the padded sizes: no gaps, no overlaps, any order refused that ggml refuses.
    Result<void> placeTensors() {
        const std::uint64_t total = m_file.m_bytes.size();
        const std::uint64_t mask = m_file.m_alignment - 1;
        const std::uint64_t dataOffset = (m_in.position() + mask) & ~mask; // position < 2^63, alignment < 2^32
        m_file.m_dataOffset = dataOffset;
        std::uint64_t expected = 0;
        for (GgufTensor& tensor : m_file.m_tensors) {
            if (tensor.fileOffset != expected)
                return refuse("tensor {} is said to begin at byte {} of the data and must begin at {} (alignment {}); "
                              "convert the "
                              "model again",
                              inQuotes(tensor.name), tensor.fileOffset, expected, m_file.m_alignment);
            std::uint64_t end = 0;
            std::uint64_t padded = 0;
            if (__builtin_add_overflow(dataOffset, expected, &tensor.fileOffset) ||
                __builtin_add_overflow(tensor.fileOffset, tensor.bytes, &end) ||
                __builtin_add_overflow(tensor.bytes, mask, &padded) ||
                __builtin_add_overflow(expected, padded & ~mask, &expected))
                return tooLarge(tensor);
            if (m_parts == GgufParts::HeaderOnly)
                continue;
            if (end > total && tensor.bytes > 0)
                return refuse(
                    "the file is not complete: tensor {} ends at byte {}, but the file has {} ({} bytes of this "
                    "tensor are missing); fetch it again",
                    inQuotes(tensor.name), end, total, std::min(tensor.bytes, end - total));
            if (tensor.bytes > 0)
                tensor.data = m_file.m_bytes.subspan(static_cast<std::size_t>(tensor.fileOffset),
                                                     static_cast<std::size_t>(tensor.bytes));
        }
        return {};
    }

    GgufFile& m_file;
    GgufParts m_parts;
    ByteReader m_in;
    std::size_t m_keys = 0;
    std::size_t m_tensors = 0;
};

Result<GgufFile> GgufFile::open(const std::filesystem::path& path, GgufParts parts) {
    auto mapping = MappedFile::open(path);
    if (!mapping)
        return tl::unexpected(mapping.error());
    GgufFile file;
    file.m_name = path.string();
    file.m_mapping = std::move(*mapping);
    file.m_bytes = file.m_mapping->bytes();
    if (auto parsed = GgufParser(file, parts).parse(); !parsed)
        return tl::unexpected(parsed.error());
    if (auto whole = file.checkStillWhole(); !whole)
        return tl::unexpected(whole.error());
    return file;
}

Result<GgufFile> GgufFile::fromBytes(std::vector<std::byte> bytes, std::string name, GgufParts parts) {
    GgufFile file;
    file.m_name = std::move(name);
    file.m_owned = std::move(bytes);
    file.m_bytes = file.m_owned;
    if (auto parsed = GgufParser(file, parts).parse(); !parsed)
        return tl::unexpected(parsed.error());
    return file;
}

Result<void> GgufFile::checkStillWhole() const {
    return m_mapping ? m_mapping->checkStillWhole() : Result<void>{};
}

const GgufEntry* GgufFile::find(std::string_view key) const {
    const auto found = m_entryIndex.find(key);
    return found == m_entryIndex.end() ? nullptr : &m_entries[found->second];
}

const GgufTensor* GgufFile::tensor(std::string_view tensorName) const {
    const auto found = m_tensorIndex.find(tensorName);
    return found == m_tensorIndex.end() ? nullptr : &m_tensors[found->second];
}

namespace {

auto missing(const GgufFile& file, std::string_view key) {
    return makeError(ErrorKind::Refused, "{}: has no key {}, which a model needs; convert the model again", file.name(),
                     inQuotes(key));
}

auto wrongType(const GgufFile& file, const GgufEntry& entry, std::string_view wanted) {
    const auto* array = std::get_if<GgufArray>(&entry.value);
    return makeError(ErrorKind::Refused, "{}: key {} is {}{}, and {} is needed; convert the model again", file.name(),
                     inQuotes(entry.key), array ? "an array of " : "of type ",
                     nameOf(array ? array->elementType : entry.type), wanted);
}

Result<const GgufArray*> arrayOf(const GgufFile& file, std::string_view key, std::string_view wanted,
                                 std::initializer_list<GgufType> accepted) {
    const GgufEntry* entry = file.find(key);
    if (!entry)
        return missing(file, key);
    const auto* array = std::get_if<GgufArray>(&entry->value);
    if (!array || std::ranges::find(accepted, array->elementType) == accepted.end())
        return wrongType(file, *entry, wanted);
    return array;
}

} // namespace

Result<std::uint64_t> GgufFile::count(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (!entry)
        return missing(*this, key);
    if (const auto* value = std::get_if<std::uint64_t>(&entry->value))
        return *value;
    if (const auto* value = std::get_if<std::int64_t>(&entry->value)) {
        if (*value < 0)
            return makeError(ErrorKind::Refused, "{}: key {} is {} and must not be negative; convert the model again",
                             m_name, inQuotes(key), *value);
        return static_cast<std::uint64_t>(*value);
    }
    return wrongType(*this, *entry, "a whole number");
}

Result<double> GgufFile::number(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (!entry)
        return missing(*this, key);
    const auto* value = std::get_if<double>(&entry->value);
    if (!value)
        return wrongType(*this, *entry, "a number of type f32 or f64");
    if (!std::isfinite(*value))
        return makeError(ErrorKind::Refused, "{}: key {} is not a finite number; convert the model again", m_name,
                         inQuotes(key));
    return *value;
}

Result<bool> GgufFile::flag(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (!entry)
        return missing(*this, key);
    const auto* value = std::get_if<bool>(&entry->value);
    if (!value)
        return wrongType(*this, *entry, "a bool");
    return *value;
}

Result<std::string_view> GgufFile::text(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (!entry)
        return missing(*this, key);
    const auto* value = std::get_if<std::string_view>(&entry->value);
    if (!value)
        return wrongType(*this, *entry, "a string");
    return *value;
}

Result<std::vector<std::string_view>> GgufFile::texts(std::string_view key) const {
    const auto array = arrayOf(*this, key, "an array of strings", {GgufType::Text});
    if (!array)
        return tl::unexpected(array.error());
    std::vector<std::string_view> out;
    out.reserve(static_cast<std::size_t>((*array)->count));
    ByteReader in((*array)->data);
    for (std::uint64_t i = 0; i < (*array)->count; ++i)
        out.push_back(readText(in));
    return out;
}

Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
    const auto array = arrayOf(*this, key, "an array of whole numbers",
                               {GgufType::U8, GgufType::I8, GgufType::U16, GgufType::I16, GgufType::U32, GgufType::I32,
                                GgufType::I64, GgufType::U64});
    if (!array)
        return tl::unexpected(array.error());
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>((*array)->count));
    ByteReader in((*array)->data);
    for (std::uint64_t i = 0; i < (*array)->count; ++i) {
        const GgufValue value = readScalar(in, (*array)->elementType);
        if (const auto* positive = std::get_if<std::uint64_t>(&value)) {
            if (*positive > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                return makeError(ErrorKind::Refused, "{}: key {} holds {}, which is too large; convert the model again",
                                 m_name, inQuotes(key), *positive);
            out.push_back(static_cast<std::int64_t>(*positive));
        } else {
            out.push_back(std::get<std::int64_t>(value));
        }
    }
    return out;
}

Result<std::vector<float>> GgufFile::floats(std::string_view key) const {
    const auto array = arrayOf(*this, key, "an array of f32", {GgufType::F32});
    if (!array)
        return tl::unexpected(array.error());
    std::vector<float> out(static_cast<std::size_t>((*array)->count));
    std::ranges::copy((*array)->data, std::as_writable_bytes(std::span(out)).begin());
    return out;
}

Result<std::uint64_t> GgufFile::countOr(std::string_view key, std::uint64_t fallback) const {
    return find(key) ? count(key) : Result<std::uint64_t>(fallback);
}
Result<double> GgufFile::numberOr(std::string_view key, double fallback) const {
    return find(key) ? number(key) : Result<double>(fallback);
}
Result<bool> GgufFile::flagOr(std::string_view key, bool fallback) const {
    return find(key) ? flag(key) : Result<bool>(fallback);
}
Result<std::string_view> GgufFile::textOr(std::string_view key, std::string_view fallback) const {
    return find(key) ? text(key) : Result<std::string_view>(fallback);
}

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/strategy.h"

#include "core/base/counted.h"
#include "core/base/strict_json.h"
#include "core/strategy/byte_size.h"
#include "core/strategy/keys.h"

#include <algorithm>

namespace kvatlas::strategy {

namespace {

constexpr std::string_view kAuto = "auto";

void refuseUnavailable(JsonFields& fields, std::string_view key, std::string_view value, std::string_view plain) {
    fields.refuse(fmt::format("\"{}\": {} is not available yet; leave the key out or write {}.", key, value, plain));
}

// The index of a word of which only the first `available` can be used in this version.
std::size_t availableChoice(JsonFields& fields, std::string_view key, std::span<const std::string_view> names,
                            std::size_t available) {
    const std::size_t index = fields.choice(key, 0, names);
    if (index < available)
        return index;
    refuseUnavailable(fields, key, fmt::format("\"{}\"", names[index]), fmt::format("\"{}\"", names[0]));
    return 0;
}

void readName(JsonFields& fields, Strategy& out) {
    out.name = fields.text("name", "", kMaxNameBytes);
    if (std::any_of(out.name.begin(), out.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        fields.refuseValue("name", "a text without control characters");
}

void readKvMemory(JsonFields& fields, Strategy& out) {
    const Json* value = fields.find("kv_memory");
    if (!value || (value->is_string() && value->get_ref<const std::string&>() == kAuto))
        return;
    if (value->is_string()) {
        const auto bytes = bytesFromText(value->get_ref<const std::string&>());
        if (!bytes)
            return fields.refuseValue("kv_memory", bytes.error().message);
        out.kvMemory = {KvMemory::Kind::Bytes, *bytes, 0};
    } else if (value->is_number() && value->get<double>() > 0 && value->get<double>() <= 1) {
        out.kvMemory = {KvMemory::Kind::Share, 0, value->get<double>()};
    } else {
        fields.refuseValue("kv_memory",
                           "\"auto\", a size like \"64MiB\", or a share of the free memory above 0 and up to 1");
    }
}

std::optional<std::uint32_t> readAutoOrNumber(JsonFields& fields, std::string_view key, std::uint32_t max) {
    const Json* value = fields.find(key);
    if (!value || (value->is_string() && value->get_ref<const std::string&>() == kAuto))
        return std::nullopt;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < 1 || value->get<std::uint64_t>() > max) {
        fields.refuseValue(key, fmt::format("\"auto\" or a whole number from 1 to {}", max));
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(value->get<std::uint64_t>());
}

kernels::StorageFormat readFormat(JsonFields& fields, std::string_view key) {
    constexpr auto kFallback = kernels::StorageFormat::F16;
    constexpr std::size_t kFallbackIndex = 1;
    static_assert(kFormatNames[kFallbackIndex] == kernels::nameOf(kFallback));
    const auto name = kFormatNames[fields.choice(key, kFallbackIndex, kFormatNames)];
    if (const auto format = kernels::storageFormatNamed(name))
        return *format;
    fields.refuse(fmt::format("\"{}\": \"{}\" is not available yet; write \"f16\" or \"f32\".", key, name));
    return kFallback;
}

void readPlainOnlyKeys(JsonFields& fields) {
    for (const auto& entry : kPlainOnlyKeys) {
        const Json* value = fields.find(entry.key);
        if (!value)
            continue;
        const Json plain = Json::parse(entry.plain);
        if (*value == plain)
            continue;
        if (!entry.values.empty())
            fields.choice(entry.key, 0, entry.values);
        const bool sameType = value->type() == plain.type() || (value->is_number() && plain.is_number());
        if (!sameType)
            fields.refuseValue(entry.key, fmt::format("of the kind of {}", entry.plain));
        refuseUnavailable(fields, entry.key, jsonText(*value), entry.plain);
    }
}

void readHeads(JsonFields& fields) {
    const Json* value = fields.find("heads");
    if (!value || *value == Json(kPlainHeads))
        return;
    const bool word = value->is_string();
    const std::string text = word ? value->get<std::string>() : std::string();
    const bool latent = text.starts_with("latent:") && text.size() > 7 && text.size() < 16 &&
                        std::all_of(text.begin() + 7, text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (text != "mha" && text != "mqa" && !latent)
        return fields.refuseValue("heads", "\"native\", \"mha\", \"mqa\" or \"latent:RANK\"");
    refuseUnavailable(fields, "heads", jsonText(*value), "\"native\"");
}

void checkCombinations(JsonFields& fields, const Strategy& s) {
    if (s.layout == Layout::Paged && s.reserve != Reserve::MaxModelLen)
        fields.refuse("\"reserve\" says how much the contiguous layout reserves, and this layout is paged: write "
                      "\"layout\": \"contiguous\", or leave \"reserve\" out.");
    if (s.poolBlocks && s.kvMemory.kind != KvMemory::Kind::Auto)
        fields.refuse("\"pool_blocks\" and \"kv_memory\" both say how large the pool is: leave one of them out.");
}

} // namespace

std::string_view nameOf(Layout v) {
    return kLayoutNames[static_cast<std::size_t>(v)];
}
std::string_view nameOf(Reserve v) {
    return kReserveNames[static_cast<std::size_t>(v)];
}
std::string_view nameOf(Batching v) {
    return kBatchingNames[static_cast<std::size_t>(v)];
}
std::string_view nameOf(Schedule v) {
    return kScheduleNames[static_cast<std::size_t>(v)];
}
std::string_view nameOf(Preemption v) {
    return kPreemptionNames[static_cast<std::size_t>(v)];
}

Result<Strategy> parse(std::string_view json, std::string_view what) {
    const auto value = parseStrictJson(json, what, {.maxBytes = std::size_t{64} << 10, .maxDepth = 4});
    if (!value)
        return tl::unexpected(value.error());
    JsonFields fields(*value, std::string(what), kAllKeys);
    Strategy out;
    out.version = static_cast<std::uint32_t>(fields.wholeNumber("version", 1, 1, 0xFFFF'FFFF));
    if (out.version != 1)
        fields.refuse(fmt::format("the strategy is of version {}, and this program knows version 1: a newer KVAtlas "
                                  "wrote it.",
                                  out.version));
    const Strategy plain;
    readName(fields, out);
    out.layout = static_cast<Layout>(fields.choice("layout", 0, kLayoutNames));
    out.reserve = static_cast<Reserve>(fields.choice("reserve", 0, kReserveNames));
    out.blockTokens =
        static_cast<std::uint32_t>(fields.wholeNumber("block_tokens", plain.blockTokens, 1, kMaxBlockTokens));
    readKvMemory(fields, out);
    out.poolBlocks = readAutoOrNumber(fields, "pool_blocks", kMaxPoolBlocks);
    out.maxModelLenTokens = readAutoOrNumber(fields, "max_model_len", kMaxModelLenTokens);
    out.batching = static_cast<Batching>(fields.choice("batching", 0, kBatchingNames));
    out.maxSequences =
        static_cast<std::uint32_t>(fields.wholeNumber("max_sequences", plain.maxSequences, 1, kMaxSequences));
    out.chunkTokens =
        static_cast<std::uint32_t>(fields.wholeNumber("chunk_tokens", plain.chunkTokens, 1, kMaxChunkTokens));
    out.schedule = static_cast<Schedule>(availableChoice(fields, "schedule", kScheduleNames, 1));
    out.preemption = static_cast<Preemption>(availableChoice(fields, "preemption", kPreemptionNames, 1));
    out.kFormat = readFormat(fields, "k_format");
    out.vFormat = readFormat(fields, "v_format");
    readPlainOnlyKeys(fields);
    readHeads(fields);
    checkCombinations(fields, out);
    if (const auto& error = fields.error())
        return tl::unexpected(*error);
    return out;
}

std::string toJson(const Strategy& s) {
    Json memory = kAuto;
    if (s.kvMemory.kind == KvMemory::Kind::Bytes)
        memory = textFromBytes(s.kvMemory.bytes, "");
    else if (s.kvMemory.kind == KvMemory::Kind::Share)
        memory = s.kvMemory.share;
    const auto autoOr = [](const std::optional<std::uint32_t>& n) { return n ? Json(*n) : Json(kAuto); };
    Json out = {{"version", s.version},
                {"name", s.name},
                {"layout", nameOf(s.layout)},
                {"reserve", nameOf(s.reserve)},
                {"block_tokens", s.blockTokens},
                {"kv_memory", memory},
                {"pool_blocks", autoOr(s.poolBlocks)},
                {"max_model_len", autoOr(s.maxModelLenTokens)},
                {"batching", nameOf(s.batching)},
                {"max_sequences", s.maxSequences},
                {"chunk_tokens", s.chunkTokens},
                {"schedule", nameOf(s.schedule)},
                {"preemption", nameOf(s.preemption)},
                {"k_format", kernels::nameOf(s.kFormat)},
                {"v_format", kernels::nameOf(s.vFormat)}};
    for (const auto& entry : kPlainOnlyKeys)
        out[std::string(entry.key)] = Json::parse(entry.plain);
    out["heads"] = kPlainHeads;
    return jsonText(out, 2);
}

std::string describe(const Strategy& s, std::string_view taken) {
    std::string text =
        s.layout == Layout::Paged ? "paged" : fmt::format("contiguous (each reserves {})", nameOf(s.reserve));
    text += fmt::format(", blocks of {}", s.blockTokens);
    text += s.kFormat == s.vFormat
                ? fmt::format(", {}", kernels::nameOf(s.kFormat))
                : fmt::format(", K {} and V {}", kernels::nameOf(s.kFormat), kernels::nameOf(s.vFormat));
    if (s.poolBlocks)
        text += ", " + counted(*s.poolBlocks, "block");
    else if (s.kvMemory.kind == KvMemory::Kind::Share)
        text += fmt::format(", {:.4g} % of the free memory", s.kvMemory.share * 100);
    else if (!taken.empty())
        text += fmt::format(", {}", taken);
    else if (s.kvMemory.kind == KvMemory::Kind::Bytes)
        text += fmt::format(", {}", textFromBytes(s.kvMemory.bytes, " "));
    else
        text += ", 64 MiB or one sequence";
    if (s.batching == Batching::Static)
        text += ", static batching";
    if (s.maxModelLenTokens)
        text += ", at most " + counted(*s.maxModelLenTokens, "token");
    return text;
}

} // namespace kvatlas::strategy

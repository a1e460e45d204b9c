// SPDX-License-Identifier: Apache-2.0
#include "core/model/config.h"

#include "core/model/utf8.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <vector>

namespace kvatlas::model {

namespace {

constexpr std::string_view kSupported = "llama";

template <class... Args> auto refuse(const GgufFile& file, fmt::format_string<Args...> text, Args&&... args) {
    return makeError(ErrorKind::Refused, "{}: {}", file.name(), fmt::format(text, std::forward<Args>(args)...));
}

// Names the parts of NAME-00001-of-00003.gguf that are not beside this one.
std::string partsBeside(const GgufFile& file, std::uint64_t parts) {
    const std::filesystem::path path(file.name());
    const std::string stem = path.stem().string();
    constexpr std::size_t kTail = sizeof "-00001-of-00003" - 1;
    if (parts > 999 || stem.size() <= kTail || stem.compare(stem.size() - 9, 4, "-of-") != 0)
        return "";
    const std::string base = stem.substr(0, stem.size() - kTail);
    std::string missingParts;
    for (std::uint64_t part = 1; part <= parts; ++part) {
        const std::string name = fmt::format("{}-{:05}-of-{:05}{}", base, part, parts, path.extension().string());
        std::error_code error;
        if (!std::filesystem::exists(path.parent_path() / name, error))
            missingParts += (missingParts.empty() ? "" : ", ") + name;
    }
    return missingParts.empty() ? "; all parts are in the folder" : "; missing beside it: " + missingParts;
}

// Files that are GGUF but no complete language model.
Result<void> refusePartialModels(const GgufFile& file) {
    const auto parts = file.countOr("split.count", 0);
    if (!parts)
        return tl::unexpected(parts.error());
    if (*parts > 1) {
        const auto number = file.countOr("split.no", 0);
        if (!number)
            return tl::unexpected(number.error());
        return refuse(
            file, "is part {} of {} of a split model{}; merge the parts into one file first (llama-gguf-split --merge)",
            *number < *parts ? *number + 1 : *number, *parts, partsBeside(file, *parts));
    }
    const auto type = file.textOr("general.type", "model");
    if (!type)
        return tl::unexpected(type.error());
    const auto architecture = file.text("general.architecture");
    if (!architecture)
        return tl::unexpected(architecture.error());
    if (*type == "mmproj" || *architecture == "clip")
        return refuse(file,
                      "is the image or audio part (mmproj) of a model; open the language model that it belongs to");
    if (*type == "adapter" || file.find("adapter.type"))
        return refuse(file, "is a LoRA adapter, not a model; merge it into its base model first");
    if (*type == "vocab" || (file.tensors().empty() && file.find("tokenizer.ggml.tokens")))
        return refuse(file, "holds a vocabulary and no weights; open the model itself");
    if (*architecture != kSupported)
        return refuse(file, "architecture {} is not supported; KVAtlas runs: {}", inQuotes(*architecture), kSupported);
    return {};
}

// Features that llama files may carry and that would give other results if they were ignored.
Result<void> refuseUnknownMathematics(const GgufFile& file, const std::string& prefix) {
    const auto scaling = file.textOr(prefix + "rope.scaling.type", "none");
    if (!scaling)
        return tl::unexpected(scaling.error());
    if (*scaling != "none" && !scaling->empty())
        return refuse(
            file, "stretches its context with RoPE scaling {}, which KVAtlas does not compute; use a model without it",
            inQuotes(*scaling));
    for (const std::string_view key : {"rope.scale_linear", "rope.scaling.factor"}) {
        const auto factor = file.numberOr(prefix + std::string(key), 1.0);
        if (!factor)
            return tl::unexpected(factor.error());
        if (*factor != 1.0 && *factor != 0.0)
            return refuse(file,
                          "stretches its context with the RoPE factor {}, which KVAtlas does not compute; use a model "
                          "without it",
                          *factor);
    }
    for (const std::string_view key : {"expert_count", "attention.sliding_window"}) {
        const auto value = file.countOr(prefix + std::string(key), 0);
        if (!value)
            return tl::unexpected(value.error());
        if (*value != 0)
            return refuse(
                file,
                "has {}{} = {}, which the llama of KVAtlas does not compute; use a dense model with full attention",
                prefix, key, *value);
    }
    for (const std::string_view key : {"attention.scale", "logit_scale", "embedding_scale", "residual_scale",
                                       "attention.clamp_kqv", "attention.max_alibi_bias"})
        if (const auto* entry = file.find(prefix + std::string(key))) {
            const auto* value = std::get_if<double>(&entry->value);
            if (!value || *value != 0.0)
                return refuse(file, "has the key {}, which the llama of KVAtlas does not compute; use another model",
                              inQuotes(entry->key));
        }
    return {};
}

class ConfigReader {
public:
    ConfigReader(const GgufFile& file, std::string prefix)
        : m_file(file)
        , m_prefix(std::move(prefix)) {}

    Result<void> count(std::string_view key, std::uint32_t most, std::uint32_t& out) const {
        return inRange(m_prefix + std::string(key), m_file.count(m_prefix + std::string(key)), most, out);
    }
    Result<void> countOr(std::string_view key, std::uint32_t fallback, std::uint32_t most, std::uint32_t& out) const {
        return inRange(m_prefix + std::string(key), m_file.countOr(m_prefix + std::string(key), fallback), most, out);
    }
    // One number, or an array with one number per layer that must all be equal.
    Result<void> perLayerOr(std::string_view key, std::uint32_t fallback, std::uint32_t layers, std::uint32_t most,
                            std::uint32_t& out) const {
        const std::string full = m_prefix + std::string(key);
        const GgufEntry* entry = m_file.find(full);
        const auto* array = entry ? std::get_if<GgufArray>(&entry->value) : nullptr;
        if (!array)
            return countOr(key, fallback, most, out);
        if (array->count != layers)
            return refuse(m_file, "key {} has {} values for {} layers; convert the model again", inQuotes(full),
                          array->count, layers);
        const auto values = m_file.integers(full);
        if (!values)
            return tl::unexpected(values.error());
        if (std::ranges::adjacent_find(*values, std::not_equal_to{}) != values->end())
            return refuse(m_file,
                          "key {} differs from layer to layer ({} and {}), which KVAtlas does not compute; use another "
                          "model",
                          inQuotes(full), *std::ranges::min_element(*values), *std::ranges::max_element(*values));
        return inRange(full, static_cast<std::uint64_t>(std::max<std::int64_t>(values->front(), 0)), most, out);
    }

private:
    Result<void> inRange(const std::string& key, Result<std::uint64_t> value, std::uint32_t most,
                         std::uint32_t& out) const {
        if (!value)
            return tl::unexpected(value.error());
        if (*value < 1 || *value > most)
            return refuse(m_file, "key {} is {}, and 1 to {} is possible; the file is damaged or not for KVAtlas",
                          inQuotes(key), *value, most);
        out = static_cast<std::uint32_t>(*value);
        return {};
    }

    const GgufFile& m_file;
    std::string m_prefix;
};

Result<void> readHeads(const GgufFile& file, const ConfigReader& read, ModelConfig& config) {
    using C = ModelConfig;
    std::uint32_t valueLength = 0;
    return read.perLayerOr("attention.head_count", 0, config.layers, C::kMaxHeads, config.queryHeads)
        .and_then([&] {
            return read.perLayerOr("attention.head_count_kv", config.queryHeads, config.layers, C::kMaxHeads,
                                   config.kvHeads);
        })
        .and_then([&] {
            return read.countOr("attention.key_length", config.embedding / config.queryHeads, C::kMaxHeadDim,
                                config.headDim);
        })
        .and_then([&] { return read.countOr("attention.value_length", config.headDim, C::kMaxHeadDim, valueLength); })
        .and_then(
            [&] { return read.countOr("rope.dimension_count", config.headDim, C::kMaxHeadDim, config.ropeDimensions); })
        .and_then([&]() -> Result<void> {
            if (config.queryHeads % config.kvHeads != 0)
                return refuse(
                    file, "has {} query heads for {} KV heads, which is no whole number each; convert the model again",
                    config.queryHeads, config.kvHeads);
            if (valueLength != config.headDim)
                return refuse(
                    file, "has keys of {} and values of {} channels, which KVAtlas does not compute; use another model",
                    config.headDim, valueLength);
            if (config.headDim % 2 != 0)
                return refuse(file, "has heads of {} channels, and RoPE needs an even number; convert the model again",
                              config.headDim);
            if (config.ropeDimensions != config.headDim)
                return refuse(file,
                              "rotates {} of the {} channels of a head, and KVAtlas rotates all; use another model",
                              config.ropeDimensions, config.headDim);
            return {};
        });
}

Result<void> readNumbers(const GgufFile& file, const std::string& prefix, ModelConfig& config) {
    const auto base = file.numberOr(prefix + "rope.freq_base", 10'000.0);
    if (!base)
        return tl::unexpected(base.error());
    const auto epsilon = file.number(prefix + "attention.layer_norm_rms_epsilon");
    if (!epsilon)
        return tl::unexpected(epsilon.error());
    if (*base < 1.0 || *base > 1e12)
        return refuse(file, "has the RoPE base {}, and 1 to 1e12 is possible; the file is damaged", *base);
    if (*epsilon < 0.0 || *epsilon >= 1.0)
        return refuse(file, "has the RMS epsilon {}, and 0 to 1 is possible; the file is damaged", *epsilon);
    config.ropeFreqBase = *base;
    config.rmsEpsilon = *epsilon;
    return {};
}

Result<void> readVocabulary(const GgufFile& file, const ConfigReader& read, ModelConfig& config) {
    const GgufTensor* embedding = file.tensor("token_embd.weight");
    if (!embedding)
        return refuse(file, "has no tensor 'token_embd.weight', which a model needs; convert the model again");
    const std::uint64_t rows = embedding->dims[1];
    if (rows < 1 || rows > ModelConfig::kMaxVocabulary)
        return refuse(file, "'token_embd.weight' has {} rows, and 1 to {} is possible; the file is damaged", rows,
                      ModelConfig::kMaxVocabulary);
    config.vocabulary = static_cast<std::uint32_t>(rows);
    std::uint32_t declared = 0;
    if (auto ok = read.countOr("vocab_size", config.vocabulary, ModelConfig::kMaxVocabulary, declared); !ok)
        return ok;
    if (declared != config.vocabulary)
        return refuse(file, "declares {} tokens, and 'token_embd.weight' has {} rows; convert the model again",
                      declared, config.vocabulary);
    return {};
}

} // namespace

Result<ModelConfig> readModelConfig(const GgufFile& file) {
    if (auto ok = refusePartialModels(file); !ok)
        return tl::unexpected(ok.error());
    const std::string prefix = std::string(kSupported) + ".";
    if (auto ok = refuseUnknownMathematics(file, prefix); !ok)
        return tl::unexpected(ok.error());

    using C = ModelConfig;
    ModelConfig config;
    config.architecture = kSupported;
    config.name = toValidUtf8(std::filesystem::path(file.name()).stem().string());

    const ConfigReader read(file, prefix);
    const auto done =
        read.count("block_count", C::kMaxLayers, config.layers)
            .and_then([&] { return read.count("embedding_length", C::kMaxEmbedding, config.embedding); })
            .and_then([&] {
                return read.perLayerOr("feed_forward_length", 0, config.layers, C::kMaxFeedForward, config.feedForward);
            })
            .and_then([&] { return read.count("context_length", C::kMaxContextTokens, config.contextTokens); })
            .and_then([&] { return readHeads(file, read, config); })
            .and_then([&] { return readNumbers(file, prefix, config); })
            .and_then([&] { return readVocabulary(file, read, config); });
    if (!done)
        return tl::unexpected(done.error());
    return config;
}

} // namespace kvatlas::model

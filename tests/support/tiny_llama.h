// SPDX-License-Identifier: Apache-2.0
// A whole llama model small enough to be made in a test: random weights in any format, a byte-level tokenizer with a
// few merges and the chatml control tokens, SmolLM2's chat template. The same seed and shape give the same bytes
// everywhere.
#pragma once

#include "tests/support/gguf_writer.h"

#include <array>

namespace kvatlas::testing {

struct TinyLlama {
    std::uint32_t layers = 2;
    std::uint32_t embedding = 64; // with a quantized format: a multiple of its group (32, or 256 for Q4_K, Q5_K, Q6_K)
    std::uint32_t queryHeads = 4;
    std::uint32_t kvHeads = 2;
    std::uint32_t headDim = 16; // queryHeads * headDim is the row length of attn_output
    std::uint32_t feedForward = 128;
    std::uint32_t contextTokens = 256;
    kernels::WeightFormat matrixFormat = kernels::WeightFormat::F32;
    kernels::WeightFormat embeddingFormat = kernels::WeightFormat::F32;
    bool tied = true; // no output.weight
    float ropeFreqBase = 10'000.0f;
    float rmsEpsilon = 1e-5f;
    std::string name = "tiny";
    std::string preTokenizer = "smollm";
    bool addBos = false;
};

// SmolLM2-Instruct's, as its file has it.
inline constexpr std::string_view kSmollmChatTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
    "are a "
    "helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + "
    "'\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}"
    "{% endif %}";

// The GPT-2 spelling of a byte.
inline std::string visibleByte(int byte) {
    int code = byte;
    if (!((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE))
        code = byte < 0x21 ? 0x100 + byte : byte <= 0xA0 ? 0x121 + byte - 0x7F : 0x143;
    if (code < 0x80)
        return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

// Token ids: 0 <|endoftext|>, 1 <|im_start|> (BOS), 2 <|im_end|> (EOS), 3 + b = byte b, then one per merge.
inline void writeTinyTokenizer(GgufWriter& w, const TinyLlama& shape = {}) {
    const std::vector<std::array<std::string, 2>> merges = {
        {"h", "e"},       {"l", "l"},        {"he", "ll"}, {"hell", "o"}, {"t", "h"},     {"th", "e"},  {"Ġ", "the"},
        {"i", "n"},       {"in", "g"},       {"a", "n"},   {"an", "d"},   {"Ġ", "and"},   {"Ġ", "a"},   {"e", "r"},
        {"o", "n"},       {"u", "s"},        {"us", "er"}, {"s", "y"},    {"Ġ", "Ġ"},     {"ĠĠ", "ĠĠ"}, {"a", "a"},
        {"aa", "aa"},     {"Ã", "©"},        {"s", "t"},   {"i", "st"},   {"as", "s"},    {"a", "s"},   {"ass", "ist"},
        {"assist", "an"}, {"assistan", "t"}, {"e", "m"},   {"st", "em"},  {"sy", "stem"}, {".", "."},   {"Ċ", "Ċ"},
        {"w", "or"},      {"o", "r"},        {"l", "d"},   {"wor", "ld"}, {"Ġ", "world"}, {"1", "2"},   {"Ġ", "h"},
    };
    std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    std::vector<std::int32_t> kinds(3, 3);
    for (int byte = 0; byte < 256; ++byte)
        tokens.push_back(visibleByte(byte));
    std::vector<std::string> lines;
    for (const auto& [left, right] : merges) {
        lines.push_back(left + " " + right);
        tokens.push_back(left + right);
    }
    kinds.resize(tokens.size(), 1);
    w.string("tokenizer.ggml.model", "gpt2");
    if (!shape.preTokenizer.empty())
        w.string("tokenizer.ggml.pre", shape.preTokenizer);
    w.strings("tokenizer.ggml.tokens", tokens);
    w.array("tokenizer.ggml.token_type", model::GgufType::I32, kinds);
    w.strings("tokenizer.ggml.merges", lines);
    w.u32("tokenizer.ggml.bos_token_id", 1);
    w.u32("tokenizer.ggml.eos_token_id", 2);
    w.flag("tokenizer.ggml.add_bos_token", shape.addBos);
    w.string("tokenizer.chat_template", kSmollmChatTemplate);
}
inline constexpr std::uint32_t kTinyVocabulary = 3 + 256 + 42;

inline void writeTinyConfig(GgufWriter& w, const TinyLlama& shape) {
    w.string("general.architecture", "llama");
    w.string("general.name", shape.name);
    w.u32("llama.block_count", shape.layers);
    w.u32("llama.context_length", shape.contextTokens);
    w.u32("llama.embedding_length", shape.embedding);
    w.u32("llama.feed_forward_length", shape.feedForward);
    w.u32("llama.attention.head_count", shape.queryHeads);
    w.u32("llama.attention.head_count_kv", shape.kvHeads);
    w.u32("llama.attention.key_length", shape.headDim);
    w.u32("llama.attention.value_length", shape.headDim);
    w.f32("llama.rope.freq_base", shape.ropeFreqBase);
    w.f32("llama.attention.layer_norm_rms_epsilon", shape.rmsEpsilon);
    w.u32("llama.rope.dimension_count", shape.headDim);
}

// Random values in [-scale, scale] as `format` stores them. `count` must be a whole number of groups.
inline Bytes randomWeights(kernels::WeightFormat format, std::uint64_t count, float scale, TestRandom& random) {
    using kernels::WeightFormat;
    Bytes out;
    ByteWriter w(out);
    const auto info = kernels::infoOf(format);
    const auto codes = [&](std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i)
            w.fixed(static_cast<std::uint8_t>(random.next()));
    };
    for (std::uint64_t group = 0; group < count / info.groupElements; ++group) {
        const float s = scale * random.uniform(0.5f, 1.0f);
        switch (format) {
        case WeightFormat::F32:
            w.fixed(random.uniform(-scale, scale));
            break;
        case WeightFormat::F16:
            w.fixed(halfBits(random.uniform(-scale, scale)));
            break;
        case WeightFormat::BF16:
            w.fixed(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.uniform(-scale, scale)) >> 16));
            break;
        case WeightFormat::Q8_0:
            w.fixed(halfBits(s / 127.0f));
            for (int i = 0; i < 32; ++i)
                w.fixed(static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127));
            break;
        case WeightFormat::Q4_0:
            w.fixed(halfBits(s / 8.0f));
            codes(16);
            break;
        case WeightFormat::Q4_1:
            w.fixed(halfBits(2.0f * s / 15.0f));
            w.fixed(halfBits(-s));
            codes(16);
            break;
        case WeightFormat::Q4_K: // value = d * scale6 * code4 - dmin * min6
        case WeightFormat::Q5_K:
            w.fixed(halfBits(2.0f * s / (63.0f * (format == WeightFormat::Q4_K ? 15.0f : 31.0f))));
            w.fixed(halfBits(s / 63.0f));
            codes(info.groupBytes - 4);
            break;
        case WeightFormat::Q6_K: // value = d * scale8 * (code6 - 32)
            codes(info.groupBytes - 2);
            w.fixed(halfBits(s / (32.0f * 127.0f)));
            break;
        }
    }
    return out;
}

inline void writeTinyTensors(GgufWriter& w, const TinyLlama& shape, std::uint64_t seed) {
    TestRandom random(seed);
    const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns,
                            kernels::WeightFormat format, float scale) {
        w.tensor(name, {columns, rows}, model::ggufTypeId(format),
                 randomWeights(format, rows * columns, scale, random));
    };
    const auto norm = [&](const std::string& name) {
        Bytes values;
        for (std::uint32_t i = 0; i < shape.embedding; ++i)
            ByteWriter(values).fixed(random.uniform(0.5f, 1.5f));
        w.tensor(name, {shape.embedding}, model::ggufTypeId(kernels::WeightFormat::F32), values);
    };
    const auto scaleFor = [](std::uint32_t columns) { return std::sqrt(3.0f / static_cast<float>(columns)); };
    const std::uint32_t queryWidth = shape.queryHeads * shape.headDim;
    const std::uint32_t kvWidth = shape.kvHeads * shape.headDim;
    matrix("token_embd.weight", kTinyVocabulary, shape.embedding, shape.embeddingFormat, 1.0f);
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
        const std::string blk = "blk." + std::to_string(layer) + ".";
        const auto part = [&](std::string_view name, std::uint32_t rows, std::uint32_t columns) {
            matrix(blk + std::string(name) + ".weight", rows, columns, shape.matrixFormat, scaleFor(columns));
        };
        norm(blk + "attn_norm.weight");
        part("ffn_down", shape.embedding, shape.feedForward);
        part("ffn_gate", shape.feedForward, shape.embedding);
        part("ffn_up", shape.feedForward, shape.embedding);
        norm(blk + "ffn_norm.weight");
        part("attn_k", kvWidth, shape.embedding);
        part("attn_output", shape.embedding, queryWidth);
        part("attn_q", queryWidth, shape.embedding);
        part("attn_v", kvWidth, shape.embedding);
    }
    norm("output_norm.weight");
    if (!shape.tied)
        matrix("output.weight", kTinyVocabulary, shape.embedding, shape.embeddingFormat, scaleFor(shape.embedding));
}

inline GgufWriter tinyLlamaWriter(std::uint64_t seed, const TinyLlama& shape = {}) {
    GgufWriter w;
    writeTinyConfig(w, shape);
    writeTinyTokenizer(w, shape);
    writeTinyTensors(w, shape, seed);
    return w;
}

inline Bytes tinyLlama(std::uint64_t seed, const TinyLlama& shape = {}) {
    return tinyLlamaWriter(seed, shape).file();
}

inline void writeTinyLlama(const std::filesystem::path& path, std::uint64_t seed, const TinyLlama& shape = {}) {
    writeFile(path, tinyLlama(seed, shape));
}

} // namespace kvatlas::testing

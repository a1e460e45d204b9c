// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <openssl/evp.h>
#include <unordered_set>
#include <utility>

namespace kvatlas::model {

namespace {

template <class... Args> auto refuse(const GgufFile& file, fmt::format_string<Args...> text, Args&&... args) {
    return makeError(ErrorKind::Refused, "{}: {}", file.name(), fmt::format(text, std::forward<Args>(args)...));
}

std::string shapeOf(const GgufTensor& tensor) {
    std::string out;
    for (std::uint32_t d = 0; d < std::max(tensor.dimensions, 1u); ++d)
        out += fmt::format("{}{}", d ? " x " : "", tensor.dims[d]);
    return out;
}

constexpr std::string_view kRopeFactors = "rope_freqs.weight";
// Below 1 an angle could leave the range that the rotation table is exact for; Llama 3.1 and 3.2 have 1 to 32.
constexpr float kLeastRopeFactor = 1.0f, kMostRopeFactor = 1e6f;

} // namespace

Result<std::shared_ptr<const Model>> Model::open(const std::filesystem::path& path, const ModelOptions& options) {
    return build(GgufFile::open(path), options);
}

Result<std::shared_ptr<const Model>> Model::fromBytes(std::vector<std::byte> bytes, std::string name,
                                                      const ModelOptions& options) {
    return build(GgufFile::fromBytes(std::move(bytes), std::move(name)), options);
}

Result<std::shared_ptr<const Model>> Model::build(Result<GgufFile> file, const ModelOptions& options) {
    if (!file)
        return tl::unexpected(file.error());
    const std::shared_ptr<Model> model(new Model(std::move(*file)));
    auto config = readModelConfig(model->m_file);
    if (!config)
        return tl::unexpected(config.error());
    model->m_config = std::move(*config);
    if (auto ok = model->bindWeights(); !ok)
        return tl::unexpected(ok.error());

    // Held against the weights, which are really there, before a list of that length is made.
    const GgufEntry* tokens = model->m_file.find("tokenizer.ggml.tokens");
    const auto* list = tokens ? std::get_if<GgufArray>(&tokens->value) : nullptr;
    if (list && list->count != model->m_config.vocabulary)
        return refuse(model->m_file, "has {} tokens, and 'token_embd.weight' has {} rows; convert the model again",
                      list->count, model->m_config.vocabulary);
    auto tokenizer = Tokenizer::fromGguf(model->m_file, options.preTokenizer);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    model->m_tokenizer = std::make_unique<const Tokenizer>(std::move(*tokenizer));
    model->m_warnings.insert(model->m_warnings.end(), model->m_tokenizer->warnings().begin(),
                             model->m_tokenizer->warnings().end());

    const auto source = model->m_file.textOr("tokenizer.chat_template", "");
    if (!source)
        return tl::unexpected(source.error());
    const auto eos = model->m_tokenizer->eos();
    model->m_chatTemplate = ChatTemplate::recognise(*source, eos ? model->m_tokenizer->piece(*eos) : "");
    if (!model->m_chatTemplate.canRender())
        model->m_warnings.push_back(model->m_chatTemplate.describe());
    return std::shared_ptr<const Model>(model);
}

Result<void> Model::bind(const std::string& name, std::uint32_t rows, std::uint32_t columns, WeightTensor& out) const {
    const GgufTensor* tensor = m_file.tensor(name);
    if (!tensor)
        return refuse(m_file, "has no tensor {}, which a {} with {} layers needs; convert the model again",
                      inQuotes(name), m_config.architecture, m_config.layers);
    if (!tensor->type->format)
        return refuse(
            m_file,
            "tensor {} is stored as {}, which KVAtlas cannot compute with; use a file quantized to Q8_0 or Q4_K_M",
            inQuotes(name), tensor->type->name);
    if (tensor->dims[0] != columns || tensor->dims[1] != rows || tensor->dims[2] != 1 || tensor->dims[3] != 1)
        return refuse(m_file, "tensor {} has the shape {}, and the metadata ask for {} x {}; convert the model again",
                      inQuotes(name), shapeOf(*tensor), columns, rows);
    out = {tensor->name, *tensor->type->format, rows, columns, tensor->data};
    return {};
}

Result<void> Model::bindLayer(std::uint32_t layer) {
    const auto& c = m_config;
    const std::uint32_t queryWidth = c.queryHeads * c.headDim; // both at most 1024
    const std::uint32_t kvWidth = c.kvHeads * c.headDim;
    LayerWeights& w = m_layers[layer];
    struct Part {
        std::string_view name;
        std::uint32_t rows, columns;
        WeightTensor* out;
    };
    const std::array<Part, 9> parts{{
        {"attn_norm", 1, c.embedding, &w.attentionNorm},
        {"attn_q", queryWidth, c.embedding, &w.query},
        {"attn_k", kvWidth, c.embedding, &w.key},
        {"attn_v", kvWidth, c.embedding, &w.value},
        {"attn_output", c.embedding, queryWidth, &w.attentionOut},
        {"ffn_norm", 1, c.embedding, &w.feedForwardNorm},
        {"ffn_gate", c.feedForward, c.embedding, &w.gate},
        {"ffn_up", c.feedForward, c.embedding, &w.up},
        {"ffn_down", c.embedding, c.feedForward, &w.down},
    }};
    for (const Part& part : parts)
        if (auto ok = bind(fmt::format("blk.{}.{}.weight", layer, part.name), part.rows, part.columns, *part.out); !ok)
            return ok;
    return {};
}

Result<void> Model::bindWeights() {
    if (auto ok = bind("token_embd.weight", m_config.vocabulary, m_config.embedding, m_tokenEmbedding); !ok)
        return ok;
    if (auto ok = bind("output_norm.weight", 1, m_config.embedding, m_outputNorm); !ok)
        return ok;
    m_outputIsTied = m_file.tensor("output.weight") == nullptr;
    m_output = m_tokenEmbedding;
    if (!m_outputIsTied)
        if (auto ok = bind("output.weight", m_config.vocabulary, m_config.embedding, m_output); !ok)
            return ok;
    m_layers.resize(m_config.layers);
    for (std::uint32_t layer = 0; layer < m_config.layers; ++layer)
        if (auto ok = bindLayer(layer); !ok)
            return ok;
    if (auto ok = bindRopeFactors(); !ok)
        return ok;
    for (const GgufTensor& tensor : m_file.tensors()) {
        m_parameters += tensor.elements;
        m_weightBytes += tensor.bytes;
    }
    return refuseUnboundTensors();
}

Result<void> Model::bindRopeFactors() {
    const GgufTensor* tensor = m_file.tensor(kRopeFactors);
    if (!tensor)
        return {};
    WeightTensor factors;
    if (auto ok = bind(std::string(kRopeFactors), 1, m_config.headDim / 2, factors); !ok)
        return ok;
    if (factors.format != kernels::WeightFormat::F32)
        return refuse(m_file, "tensor {} is stored as {}, and RoPE factors are F32; convert the model again",
                      inQuotes(kRopeFactors), tensor->type->name);
    m_ropeFactors.resize(factors.columns);
    std::memcpy(m_ropeFactors.data(), factors.data.data(), factors.data.size());
    for (const float factor : m_ropeFactors)
        if (std::isnan(factor) || factor < kLeastRopeFactor || factor > kMostRopeFactor)
            return refuse(m_file, "tensor {} holds the RoPE factor {}, and {} to {} is possible; the file is damaged",
                          inQuotes(kRopeFactors), factor, kLeastRopeFactor, kMostRopeFactor);
    return {};
}

// A tensor that the forward pass does not know would change the results if it were ignored.
Result<void> Model::refuseUnboundTensors() {
    std::unordered_set<std::string_view> bound{m_tokenEmbedding.name, m_outputNorm.name, m_output.name};
    for (const LayerWeights& w : m_layers)
        for (const WeightTensor* part : {&w.attentionNorm, &w.query, &w.key, &w.value, &w.attentionOut,
                                         &w.feedForwardNorm, &w.gate, &w.up, &w.down})
            bound.insert(part->name);
    for (const GgufTensor& tensor : m_file.tensors()) {
        if (bound.contains(tensor.name) || tensor.name == kRopeFactors)
            continue;
        if (tensor.name.ends_with(".attn_rot_embd.weight") || tensor.name.ends_with(".attention.rotary_emb.inv_freq"))
            continue; // tables of the usual RoPE that early converters stored; computed here
        return refuse(m_file,
                      "has the tensor {}, which the llama of KVAtlas does not compute with (a bias or another "
                      "kind of layer); use another model",
                      inQuotes(tensor.name));
    }
    return {};
}

Result<std::string> Model::sha256() const {
    const std::lock_guard lock(m_sha256Mutex);
    if (!m_sha256.empty())
        return m_sha256;
    if (auto whole = m_file.checkStillWhole(); !whole)
        return tl::unexpected(whole.error());
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (EVP_Digest(m_file.bytes().data(), m_file.bytes().size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
        return makeError(ErrorKind::Failed, "{}: its SHA-256 could not be computed; check the OpenSSL installation",
                         m_file.name());
    std::string hex;
    for (unsigned i = 0; i < length; ++i)
        hex += fmt::format("{:02x}", digest[i]);
    return m_sha256 = hex;
}

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
// A model file, checked and ready to be computed with: configuration, weights in place (views into the mapped file),
// tokenizer and chat template. After a successful open every tensor that a forward pass needs exists with the shape
// that the configuration says, and nothing in the file asks for mathematics that KVAtlas does not have.
// Threads: immutable, any thread, shared by all lanes. Owner: whoever holds the shared_ptr; views die with it.
// Errors: Refused, one sentence.
#pragma once

#include "core/base/result.h"
#include "core/model/chat_template.h"
#include "core/model/config.h"
#include "core/model/gguf.h"
#include "core/model/tokenizer.h"
#include "kernels/shapes.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::model {

// A matrix [rows, columns], row by row in its stored format (columns fastest), or a vector with rows == 1.
struct WeightTensor {
    std::string_view name;
    kernels::WeightFormat format = kernels::WeightFormat::F32;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::span<const std::byte> data;

    std::size_t rowBytes() const {
        const auto info = kernels::infoOf(format);
        return std::size_t{columns} / info.groupElements * info.groupBytes;
    }
};

// Matrices are [output, input]. Q and K rows are ordered for rotation of the pairs (2i, 2i + 1) (llama converters).
struct LayerWeights {
    WeightTensor attentionNorm;   // [1, embedding]
    WeightTensor query;           // [queryHeads * headDim, embedding]
    WeightTensor key;             // [kvHeads * headDim, embedding]
    WeightTensor value;           // [kvHeads * headDim, embedding]
    WeightTensor attentionOut;    // [embedding, queryHeads * headDim]
    WeightTensor feedForwardNorm; // [1, embedding]
    WeightTensor gate;            // [feedForward, embedding]
    WeightTensor up;              // [feedForward, embedding]
    WeightTensor down;            // [embedding, feedForward]
};

struct ModelOptions {
    std::optional<PreTokenizer> preTokenizer; // instead of the one that the file names
};

class Model {
public:
    static Result<std::shared_ptr<const Model>> open(const std::filesystem::path& path,
                                                     const ModelOptions& options = {});
    // `name` stands for the path in messages.
    static Result<std::shared_ptr<const Model>> fromBytes(std::vector<std::byte> bytes, std::string name,
                                                          const ModelOptions& options = {});

    const ModelConfig& config() const { return m_config; }
    const WeightTensor& tokenEmbedding() const { return m_tokenEmbedding; } // [vocabulary, embedding]
    const WeightTensor& outputNorm() const { return m_outputNorm; }         // [1, embedding]
    const WeightTensor& output() const { return m_output; }                 // [vocabulary, embedding]
    bool outputIsTied() const { return m_outputIsTied; }                    // output() is tokenEmbedding()
    std::span<const LayerWeights> layers() const { return m_layers; }
    // [headDim / 2], each at least 1, or empty: what RoPE's frequencies are divided by (Llama 3.1's stretched context).
    std::span<const float> ropeFactors() const { return m_ropeFactors; }

    const Tokenizer& tokenizer() const { return *m_tokenizer; }
    const ChatTemplate& chatTemplate() const { return m_chatTemplate; }

    std::uint64_t parameters() const { return m_parameters; } // values in all tensors of the file
    std::uint64_t weightBytes() const { return m_weightBytes; }
    std::uint64_t fileBytes() const { return m_file.bytes().size(); }
    const GgufFile& file() const { return m_file; }

    // What a user should know although the model runs: a guessed tokenizer rule, a template that is not understood.
    std::span<const std::string> warnings() const { return m_warnings; }

    // Of the whole file, lower-case hexadecimal. Reads every byte the first time (0.1 to 0.5 s per GiB), then
    // remembered.
    Result<std::string> sha256() const;

private:
    explicit Model(GgufFile file)
        : m_file(std::move(file)) {}
    static Result<std::shared_ptr<const Model>> build(Result<GgufFile> file, const ModelOptions& options);
    Result<void> bindWeights();
    Result<void> bindLayer(std::uint32_t layer);
    Result<void> bindRopeFactors();
    Result<void> refuseUnboundTensors();
    Result<void> bind(const std::string& name, std::uint32_t rows, std::uint32_t columns, WeightTensor& out) const;

    GgufFile m_file;
    ModelConfig m_config;
    WeightTensor m_tokenEmbedding, m_outputNorm, m_output;
    bool m_outputIsTied = false;
    std::vector<LayerWeights> m_layers;
    std::vector<float> m_ropeFactors;
    std::unique_ptr<const Tokenizer> m_tokenizer; // never null after build()
    ChatTemplate m_chatTemplate;
    std::uint64_t m_parameters = 0;
    std::uint64_t m_weightBytes = 0;
    std::vector<std::string> m_warnings;
    mutable std::mutex m_sha256Mutex;
    mutable std::string m_sha256;
};

} // namespace kvatlas::model

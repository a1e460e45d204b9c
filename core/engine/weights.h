// SPDX-License-Identifier: Apache-2.0
// A model's weights in a backend's order of bytes. Immutable after loading, shared read-only by any number of engines
// and threads; keeps the model alive. Errors of load: OutOfMemory, or the model file shrank while it was read.
#pragma once

#include "core/base/result.h"
#include "core/model/model.h"
#include "kernels/kernels.h"

#include <memory>
#include <vector>

namespace kvatlas::engine {

using Matrix = std::unique_ptr<const kernels::PackedMatrix>;

struct LayerMatrices {
    std::vector<float> attentionNorm;   // [embedding]
    std::vector<float> feedForwardNorm; // [embedding]
    Matrix query, key, value;           // [heads * headDim, embedding]
    Matrix attentionOut;                // [embedding, queryHeads * headDim]
    Matrix gate, up;                    // [feedForward, embedding]
    Matrix down;                        // [embedding, feedForward]
};

class Weights {
public:
    // `backend` lives for ever (referenceKernels(), cpuKernels()).
    static Result<std::shared_ptr<const Weights>> load(const std::shared_ptr<const model::Model>& model,
                                                       const kernels::Kernels& backend);

    const model::Model& model() const { return *m_model; }
    const model::ModelConfig& config() const { return m_model->config(); }
    const kernels::Kernels& kernels() const { return m_kernels; }

    const kernels::PackedMatrix& tokenEmbedding() const { return *m_tokenEmbedding; } // [vocabulary, embedding]
    const kernels::PackedMatrix& output() const {
        return m_output ? *m_output : *m_tokenEmbedding;
    }                                                                     // [vocabulary, embedding]
    const std::vector<float>& outputNorm() const { return m_outputNorm; } // [embedding]
    const std::vector<LayerMatrices>& layers() const { return m_layers; }
    std::size_t bytes() const; // of all matrices as packed, each once

private:
    Weights(std::shared_ptr<const model::Model> model, const kernels::Kernels& backend)
        : m_model(std::move(model))
        , m_kernels(backend) {}
    void pack();

    std::shared_ptr<const model::Model> m_model;
    const kernels::Kernels& m_kernels;
    Matrix m_tokenEmbedding, m_output; // no m_output where it is tied to the embedding
    std::vector<float> m_outputNorm;
    std::vector<LayerMatrices> m_layers;
};

} // namespace kvatlas::engine

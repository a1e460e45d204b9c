// SPDX-License-Identifier: Apache-2.0
#include "core/engine/weights.h"

#include <new>

namespace kvatlas::engine {

namespace {

Matrix packed(const kernels::Kernels& backend, const model::WeightTensor& tensor) {
    return backend.createMatrix(tensor.format, tensor.rows, tensor.columns, tensor.data.data());
}

// The values of a tensor of one row: the backend itself knows how to read every format.
std::vector<float> values(const kernels::Kernels& backend, const model::WeightTensor& tensor) {
    const Matrix row = packed(backend, tensor);
    const auto stream = backend.createStream(1);
    std::vector<float> out(tensor.columns);
    const std::int32_t first = 0;
    backend.embed(*stream, *row, &first, 1, out.data());
    return out;
}

} // namespace

Result<std::shared_ptr<const Weights>> Weights::load(const std::shared_ptr<const model::Model>& model,
                                                     const kernels::Kernels& backend) {
    if (!backend.createStream(1))
        return makeError(ErrorKind::Failed, "the {} backend does not run on this machine; choose another backend",
                         backend.name);
    const model::GgufFile& file = model->file();
    if (auto whole = file.checkStillWhole(); !whole)
        return tl::unexpected(whole.error());
    std::shared_ptr<Weights> weights(new Weights(model, backend));
    try {
        weights->pack();
    } catch (const std::bad_alloc&) {
        return makeError(ErrorKind::OutOfMemory,
                         "no memory for the weights of {}: they take about {:.0f} MiB; choose a smaller model",
                         file.name(), static_cast<double>(model->weightBytes()) / (1024.0 * 1024));
    }
    if (auto whole = file.checkStillWhole(); !whole)
        return tl::unexpected(whole.error());
    return weights;
}

void Weights::pack() {
    m_tokenEmbedding = packed(m_kernels, m_model->tokenEmbedding());
    if (!m_model->outputIsTied())
        m_output = packed(m_kernels, m_model->output());
    m_outputNorm = values(m_kernels, m_model->outputNorm());
    m_layers.reserve(m_model->layers().size());
    for (const model::LayerWeights& layer : m_model->layers()) {
        LayerMatrices matrices;
        matrices.attentionNorm = values(m_kernels, layer.attentionNorm);
        matrices.feedForwardNorm = values(m_kernels, layer.feedForwardNorm);
        matrices.query = packed(m_kernels, layer.query);
        matrices.key = packed(m_kernels, layer.key);
        matrices.value = packed(m_kernels, layer.value);
        matrices.attentionOut = packed(m_kernels, layer.attentionOut);
        matrices.gate = packed(m_kernels, layer.gate);
        matrices.up = packed(m_kernels, layer.up);
        matrices.down = packed(m_kernels, layer.down);
        m_layers.push_back(std::move(matrices));
    }
}

std::size_t Weights::bytes() const {
    std::size_t bytes = m_tokenEmbedding->bytes + (m_output ? m_output->bytes : 0);
    for (const LayerMatrices& layer : m_layers)
        for (const Matrix* matrix :
             {&layer.query, &layer.key, &layer.value, &layer.attentionOut, &layer.gate, &layer.up, &layer.down})
            bytes += (*matrix)->bytes;
    return bytes;
}

} // namespace kvatlas::engine

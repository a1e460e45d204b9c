// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernel_times.h"

#include <algorithm>

namespace kvatlas::engine {

namespace {

void addTo(trace::KernelSpan& span, std::int64_t ns, std::uint64_t bytes, std::uint64_t flops) {
    ++span.calls;
    span.durationNs += ns;
    span.bytes += bytes;
    span.flops += flops;
}

} // namespace

void KernelTimes::begin(bool perLayer) {
    m_perLayer = perLayer;
    m_sums = {};
    m_layers.clear();
}

void KernelTimes::add(trace::KernelKind kernel, std::uint16_t layer, std::int64_t ns, std::uint64_t bytes,
                      std::uint64_t flops) {
    trace::KernelSpan& sum = m_sums[static_cast<std::size_t>(kernel)];
    sum.kernel = kernel;
    addTo(sum, ns, bytes, flops);
    if (!m_perLayer || layer == trace::KernelSpan::kAllLayers)
        return;
    auto span = std::ranges::find_if(
        m_layers, [&](const trace::KernelSpan& s) { return s.kernel == kernel && s.layer.value == layer; });
    if (span == m_layers.end())
        span = m_layers.insert(span, trace::KernelSpan{.kernel = kernel, .layer = LayerId(layer)});
    addTo(*span, ns, bytes, flops);
}

void KernelTimes::emit(trace::EventEmitter& events) const {
    for (const trace::KernelSpan& sum : m_sums)
        if (sum.calls > 0)
            events.emit(sum);
    for (const trace::KernelSpan& span : m_layers)
        events.emit(span);
}

} // namespace kvatlas::engine

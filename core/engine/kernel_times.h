// SPDX-License-Identifier: Apache-2.0
// Sums time, bytes and operations per kind of kernel over one step, and per layer too when asked. One thread.
#pragma once

#include "core/trace/event_emitter.h"

#include <array>
#include <vector>

namespace kvatlas::engine {

class KernelTimes {
public:
    void begin(bool perLayer);
    void add(trace::KernelKind kernel, std::uint16_t layer, std::int64_t ns, std::uint64_t bytes, std::uint64_t flops);
    void emit(trace::EventEmitter& events) const; // one KernelSpan per kind, then one per kind and layer when kept

private:
    static constexpr std::size_t kKinds = static_cast<std::size_t>(trace::KernelKind::Sample) + 1;
    bool m_perLayer = false;
    std::array<trace::KernelSpan, kKinds> m_sums{};
    std::vector<trace::KernelSpan> m_layers;
};

} // namespace kvatlas::engine

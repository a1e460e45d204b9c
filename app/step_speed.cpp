// SPDX-License-Identifier: Apache-2.0
#include "app/step_speed.h"

namespace kvatlas::app {

namespace {
std::optional<double> rate(std::uint64_t tokens, std::int64_t ns) {
    if (tokens == 0 || ns <= 0)
        return std::nullopt;
    return static_cast<double>(tokens) * 1e9 / static_cast<double>(ns);
}
} // namespace

void StepSpeed::onEvents(std::span<const trace::Event> events) {
    for (const auto& event : events) {
        if (const auto* started = std::get_if<trace::StepStarted>(&event.body)) {
            m_step = {0, 0, event.ns};
            for (const auto& entry : started->batch)
                (entry.prefill ? m_step.prefillTokens : m_step.decodeTokens) += entry.tokens;
        } else if (std::holds_alternative<trace::StepEnded>(event.body)) {
            Sum& sum = m_step.prefillTokens == 0 ? m_decodeOnly : m_step.decodeTokens == 0 ? m_prefillOnly : m_mixed;
            sum.prefillTokens += m_step.prefillTokens;
            sum.decodeTokens += m_step.decodeTokens;
            sum.ns += event.ns - m_step.ns;
        }
    }
}

std::optional<double> StepSpeed::prefillTokensPerSecond() const {
    return rate(m_prefillOnly.prefillTokens + m_mixed.prefillTokens, m_prefillOnly.ns + m_mixed.ns);
}

std::optional<double> StepSpeed::decodeTokensPerSecond() const {
    if (m_decodeOnly.decodeTokens > 0)
        return rate(m_decodeOnly.decodeTokens, m_decodeOnly.ns);
    return rate(m_mixed.decodeTokens, m_mixed.ns);
}

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// Tokens per second of prefill and of decode, measured over steps. Prefill counts every step that computes prompt
// tokens (and only tokens that were really computed: what a prefix cache gave is not in a batch); decode counts the
// steps that do nothing else, or, where there are none, all that decode. One thread (the delivery's).
#pragma once

#include "core/trace/event_sink.h"

#include <cstdint>
#include <optional>

namespace kvatlas::app {

class StepSpeed final : public trace::EventSink {
public:
    void onEvents(std::span<const trace::Event> events) override;
    void onKeyframe(Step, std::span<const std::byte>) override {}

    // Nothing when no such token was computed.
    std::optional<double> prefillTokensPerSecond() const;
    std::optional<double> decodeTokensPerSecond() const;

private:
    struct Sum {
        std::uint64_t prefillTokens = 0, decodeTokens = 0;
        std::int64_t ns = 0;
    };
    Sum m_step; // the running one; ns: when it started
    Sum m_prefillOnly, m_decodeOnly, m_mixed;
};

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// Writes a lone request's text to the terminal as its tokens come, never half a character. Delivery thread.
#pragma once

#include "core/model/tokenizer.h"
#include "core/trace/event_sink.h"

namespace kvatlas::app {

class StreamedText final : public trace::EventSink {
public:
    // The tokenizer outlives it.
    explicit StreamedText(const model::Tokenizer& tokenizer)
        : m_tokenizer(tokenizer) {}

    void onEvents(std::span<const trace::Event> events) override;
    void onKeyframe(Step, std::span<const std::byte>) override {}

    void finish(); // what was still waiting, and an empty line

private:
    const model::Tokenizer& m_tokenizer;
    model::StreamingDecoder m_decoder;
};

} // namespace kvatlas::app

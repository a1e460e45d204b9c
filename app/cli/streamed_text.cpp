// SPDX-License-Identifier: Apache-2.0
#include "app/cli/streamed_text.h"

#include "app/cli/output.h"

namespace kvatlas::app {

void StreamedText::onEvents(std::span<const trace::Event> events) {
    for (const auto& event : events) {
        const auto* sampled = std::get_if<trace::TokenSampled>(&event.body);
        if (sampled == nullptr || m_tokenizer.isEndToken(sampled->token) ||
            m_tokenizer.kindOf(sampled->token) == model::TokenKind::Control)
            continue;
        writeData(withoutControls(m_decoder.push(m_tokenizer.piece(sampled->token))));
    }
    flushData();
}

void StreamedText::finish() {
    writeData(m_decoder.finish() + "\n\n");
}

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
#include "core/model/tokenizer.h"
#include "core/model/utf8.h"

#include <utility>

namespace kvatlas::model {

std::string StreamingDecoder::push(std::string_view bytes) {
    const std::string joined = std::exchange(m_waiting, {}) + std::string(bytes);
    std::string_view text = joined;
    std::string out;
    while (!text.empty()) {
        const Utf8Character character = firstUtf8Character(text);
        if (character.kind == Utf8Character::Cut) {
            m_waiting = text;
            break;
        }
        out += character.kind == Utf8Character::Whole ? text.substr(0, character.bytes) : kReplacementCharacter;
        text.remove_prefix(character.bytes);
    }
    return out;
}

std::string StreamingDecoder::finish() {
    return toValidUtf8(std::exchange(m_waiting, {}));
}

} // namespace kvatlas::model

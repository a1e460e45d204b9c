// SPDX-License-Identifier: Apache-2.0
#include "core/model/utf8.h"

#include <cassert>

namespace kvatlas::model {

Utf8Character firstUtf8Character(std::string_view text) {
    assert(!text.empty());
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = at(0);
    if (lead < 0x80)
        return {1, Utf8Character::Whole};
    // The allowed range of the second byte depends on the first; later ones are 80..BF.
    std::size_t length = 0;
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        low = lead == 0xE0 ? 0xA0 : 0x80;
        high = lead == 0xED ? 0x9F : 0xBF;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        low = lead == 0xF0 ? 0x90 : 0x80;
        high = lead == 0xF4 ? 0x8F : 0xBF;
    } else {
        return {1, Utf8Character::Wrong};
    }
    for (std::size_t i = 1; i < length; ++i) {
        if (i == text.size())
            return {i, Utf8Character::Cut};
        if (at(i) < low || at(i) > high)
            return {i, Utf8Character::Wrong};
        low = 0x80;
        high = 0xBF;
    }
    return {length, Utf8Character::Whole};
}

std::string toValidUtf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Utf8Character character = firstUtf8Character(text);
        out += character.kind == Utf8Character::Whole ? text.substr(0, character.bytes) : kReplacementCharacter;
        text.remove_prefix(character.bytes);
    }
    return out;
}

} // namespace kvatlas::model

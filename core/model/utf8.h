// SPDX-License-Identifier: Apache-2.0
// UTF-8 as the Unicode standard defines it (table 3-7: no surrogates, no overlong forms, nothing above U+10FFFF).
// Pure functions, any thread, no errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvatlas::model {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD"; // U+FFFD

struct Utf8Character {
    std::size_t bytes = 0; // of the character; or of the longest wrong or cut-off beginning, at least 1
    enum Kind : unsigned char { Whole, Cut, Wrong } kind = Wrong; // Cut: more bytes could complete it
};

// What stands at the beginning of `text`, which must not be empty.
Utf8Character firstUtf8Character(std::string_view text);

// `text` with every wrong or cut-off part replaced by one U+FFFD.
std::string toValidUtf8(std::string_view text);

inline bool isValidUtf8(std::string_view text) {
    return toValidUtf8(text) == text;
}

} // namespace kvatlas::model

// SPDX-License-Identifier: Apache-2.0
// Numbers as the window and the reports write them, the same in every locale: a separator between thousands, a point
// for decimals, the unit after a space, U+2212 as minus sign. UTF-8. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace kvatlas::query {

enum class Thousands : std::uint8_t {
    Thin,    // U+2009, for the text face
    NoBreak, // U+00A0, for mono faces, which have no thin space
};

std::string numberText(std::int64_t value, Thousands separator = Thousands::Thin); // 368 640
// Three significant digits, never fewer than the whole part has: 0.0351, 2.10, 14.8, 143, 1 432. Not finite: an en
// dash.
std::string significantText(double value, Thousands separator = Thousands::Thin);
std::string bytesText(std::uint64_t bytes, Thousands separator = Thousands::Thin);      // 12.4 MiB, 360 KiB, 17 B
std::string exactBytesText(std::uint64_t bytes, Thousands separator = Thousands::Thin); // 368 640 B = 360 KiB
std::string percentText(double fraction);                                               // one decimal: 2.1 %
std::string durationText(std::int64_t ns); // 1.24 s, 12.3 ms, 850 us with U+00B5

} // namespace kvatlas::query

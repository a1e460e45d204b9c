// SPDX-License-Identifier: Apache-2.0
// core/query's numbers for people as QString, with no-break spaces between thousands. Pure, any thread.
#pragma once

#include <QString>

#include <cstdint>

namespace kvatlas::ui {

QString grouped(std::uint64_t number);  // "368 640"
QString bytesText(std::uint64_t bytes); // "59.1 MiB", "360 KiB", "12 B"
QString percentText(double share);      // 0.0432 -> "4.3 %"
QString threeDigits(double number);     // 143.2 -> "143", 9.13 -> "9.13"
QString durationText(std::int64_t nanoseconds);

} // namespace kvatlas::ui

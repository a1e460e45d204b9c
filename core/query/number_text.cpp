// SPDX-License-Identifier: Apache-2.0
#include "core/query/number_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

namespace kvatlas::query {

namespace {

constexpr std::string_view kMinus = "\u2212";
constexpr std::string_view kUnknown = "\u2013";

std::string_view textOf(Thousands separator) {
    return separator == Thousands::Thin ? "\u2009" : "\u00A0";
}

std::string grouped(std::string_view digits, Thousands separator) {
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0)
            out += textOf(separator);
        out += digits[i];
    }
    return out;
}

// The decimals that leave three significant digits; REQUIRES: value > 0.
int decimalsFor(double value) {
    const int exponent = static_cast<int>(std::floor(std::log10(value)));
    const int decimals = std::clamp(2 - exponent, 0, 12);
    // 9.996 rounds to 10.0, which has one decimal fewer.
    const double rounded = std::round(value * std::pow(10.0, decimals)) / std::pow(10.0, decimals);
    return rounded >= std::pow(10.0, exponent + 1) ? std::max(decimals - 1, 0) : decimals;
}

constexpr std::array<std::string_view, 5> kByteUnits{"B", "KiB", "MiB", "GiB", "TiB"};

} // namespace

std::string numberText(std::int64_t value, Thousands separator) {
    const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    return std::string(value < 0 ? kMinus : "") + grouped(fmt::format("{}", size), separator);
}

std::string significantText(double value, Thousands separator) {
    if (!std::isfinite(value))
        return std::string(kUnknown);
    if (value == 0)
        return "0";
    const std::string text = fmt::format("{:.{}f}", std::fabs(value), decimalsFor(std::fabs(value)));
    const std::size_t point = text.find('.');
    std::string out = grouped(std::string_view(text).substr(0, point), separator);
    if (point != std::string::npos)
        out += text.substr(point);
    return std::string(value < 0 ? kMinus : "") + out;
}

std::string bytesText(std::uint64_t bytes, Thousands separator) {
    std::size_t unit = 0;
    double value = static_cast<double>(bytes);
    // 1,023.9 KiB would be written as 1 024 KiB: it is 1.00 MiB.
    while (unit + 1 < kByteUnits.size() && value >= (unit == 0 ? 1024 : 1023.5)) {
        value /= 1024;
        ++unit;
    }
    if (unit == 0)
        return fmt::format("{} B", bytes);
    const bool whole = bytes % (std::uint64_t{1} << (10 * unit)) == 0 && value >= 100;
    return (whole ? numberText(static_cast<std::int64_t>(value), separator) : significantText(value, separator)) + " " +
           std::string(kByteUnits[unit]);
}

std::string exactBytesText(std::uint64_t bytes, Thousands separator) {
    const std::string exact = grouped(fmt::format("{}", bytes), separator) + " B";
    return bytes < 1024 ? exact : exact + " = " + bytesText(bytes, separator);
}

std::string percentText(double fraction) {
    if (!std::isfinite(fraction))
        return std::string(kUnknown);
    const std::string text = fmt::format("{:.1f}", std::fabs(fraction) * 100);
    return (fraction < 0 && text != "0.0" ? std::string(kMinus) : std::string()) + text + " %";
}

std::string durationText(std::int64_t ns) {
    const double size = std::fabs(static_cast<double>(ns));
    const std::string sign(ns < 0 ? kMinus : "");
    if (size < 1000)
        return sign + fmt::format("{:.0f} ns", size);
    constexpr std::array<std::pair<double, std::string_view>, 3> kUnits{{{1e3, "\u00B5s"}, {1e6, "ms"}, {1e9, "s"}}};
    for (const auto& [scale, unit] : kUnits)
        if (size / scale < 999.5 || scale == 1e9)
            return sign + significantText(size / scale) + " " + std::string(unit);
    return {};
}

} // namespace kvatlas::query

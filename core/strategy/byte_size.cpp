// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/byte_size.h"

#include <array>
#include <charconv>
#include <limits>

namespace kvatlas::strategy {

namespace {
struct Unit {
    std::string_view name;
    unsigned shift;
};
constexpr std::array<Unit, 4> kUnits{{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};
} // namespace

Result<std::uint64_t> bytesFromText(std::string_view text) {
    const auto mustBe = [] {
        return makeError(ErrorKind::Refused, "a size like \"64MiB\": a whole number above 0 and B, KiB, MiB or GiB");
    };
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number == 0)
        return mustBe();
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' '))
        text.remove_prefix(1);
    for (const auto& unit : kUnits) {
        if (text != unit.name)
            continue;
        if (number > (std::uint64_t{std::numeric_limits<std::int64_t>::max()} >> unit.shift))
            return makeError(ErrorKind::Refused, "smaller than 8,589,934,592 GiB");
        return number << unit.shift;
    }
    return mustBe();
}

std::string textFromBytes(std::uint64_t bytes, std::string_view between) {
    for (const auto& unit : kUnits) {
        const std::uint64_t mask = (std::uint64_t{1} << unit.shift) - 1;
        if (bytes >> unit.shift != 0 && (bytes & mask) == 0)
            return fmt::format("{}{}{}", bytes >> unit.shift, between, unit.name);
    }
    return fmt::format("0{}B", between);
}

} // namespace kvatlas::strategy

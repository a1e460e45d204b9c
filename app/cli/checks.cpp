// SPDX-License-Identifier: Apache-2.0
#include "app/cli/checks.h"

#include "core/model/utf8.h"

#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace kvatlas::app {

namespace {

// The whole text as a number, or nothing.
template <class Number> std::optional<Number> parsed(const std::string& text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

} // namespace

CLI::Validator wholeNumber(std::uint64_t least, std::uint64_t most) {
    return {[least, most](std::string& text) {
                const auto value = parsed<std::uint64_t>(text);
                const bool plain = text == "0" || (!text.empty() && text[0] >= '1' && text[0] <= '9');
                if (value && plain && *value >= least && *value <= most)
                    return std::string();
                return fmt::format("{} is not a whole number from {} to {}", text, least, most);
            },
            "", "whole number"};
}

CLI::Validator number(double least, double most) {
    return {[least, most](std::string& text) {
                const auto value = parsed<double>(text);
                if (value && *value >= least && *value <= most) // false for NaN
                    return std::string();
                return fmt::format("{} is not a number from {} to {}", text, least, most);
            },
            "", "number"};
}

CLI::Validator utf8() {
    return {
        [](std::string& text) { return model::isValidUtf8(text) ? std::string() : "is not text in UTF-8; convert it"; },
        "", "UTF-8 text"};
}

CLI::Validator notEmpty() {
    return {[](std::string& text) {
                return text.empty() ? std::string("is empty; give a value or leave the flag out") : std::string();
            },
            "", "not empty"};
}

} // namespace kvatlas::app

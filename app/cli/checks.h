// SPDX-License-Identifier: Apache-2.0
// What a flag's value must be, checked before it is converted: the library's own conversions take 0x10, 010 and numbers
// that are too large, and its ranges let "nan" through.
#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

namespace kvatlas::app {

CLI::Validator wholeNumber(std::uint64_t least, std::uint64_t most); // decimal digits only
CLI::Validator number(double least, double most);                    // finite
CLI::Validator utf8();                                               // a tokenizer has no tokens for other bytes
CLI::Validator notEmpty();                                           // an unset variable in a script is a mistake

} // namespace kvatlas::app

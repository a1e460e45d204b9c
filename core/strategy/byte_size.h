// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them: "64MiB". Any thread, any locale.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvatlas::strategy {

// A whole number and B, KiB, MiB or GiB, with or without a space between. The error says what it must be.
Result<std::uint64_t> bytesFromText(std::string_view text);

// The largest unit that divides the size: 67108864 -> "64MiB", with `between` before the unit.
std::string textFromBytes(std::uint64_t bytes, std::string_view between);

} // namespace kvatlas::strategy

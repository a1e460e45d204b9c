// SPDX-License-Identifier: Apache-2.0
// A number of things in a sentence: "1 token", "12 tokens". Regular plurals only. Any thread.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace kvatlas {

inline std::string counted(std::uint64_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

} // namespace kvatlas

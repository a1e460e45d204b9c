// SPDX-License-Identifier: Apache-2.0
// What this program is. Constants, any thread.
#pragma once

#include <string>
#include <string_view>

namespace kvatlas::app {

std::string_view programVersion(); // "0.1.0"
std::string_view programCommit();  // "ff49784", "ff49784+" with changes on top, "unknown" outside a repository

// One line: "kvatlas-cli 0.1.0, commit ff49784, CUDA no".
std::string versionLine(std::string_view program);

} // namespace kvatlas::app

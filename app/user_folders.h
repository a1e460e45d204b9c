// SPDX-License-Identifier: Apache-2.0
// Where this user's files lie, by the XDG base directory rules: an empty or relative value counts as unset, and without
// HOME the system's list of users says where home is. Any thread.
#pragma once

#include <filesystem>

namespace kvatlas::app {

std::filesystem::path absoluteFrom(const char* variable); // empty: unset or relative
std::filesystem::path home();
std::filesystem::path cacheHome(); // ~/.cache
std::filesystem::path dataHome();  // ~/.local/share

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// A text file that is read whole: strategies, scenarios, themes. Any thread; reads the disk.
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>

namespace kvatlas {

// Errors: Refused with the system's reason, or when the file is no regular file or larger than maxBytes.
Result<std::string> readSmallFile(const std::filesystem::path& file, std::size_t maxBytes);

} // namespace kvatlas

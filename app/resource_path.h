// SPDX-License-Identifier: Apache-2.0
// Where the program's data files are (resources/). Any thread; asks the disk, never writes.
// Errors: Failed, one sentence that names the places looked at.
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string_view>

namespace kvatlas::app {

// The first of these that holds `strategies` and `scenarios`: $KVATLAS_RESOURCES; `resources` beside the program;
// ../share/kvatlas from the program's folder; the source tree that the program was built in, while it lies where it lay
// in relation to the program.
Result<std::filesystem::path> resourceFolder();

// A scenario's path: the argument when it names a file, else NAME.json among the shipped scenarios. Unknown: Usage,
// with the nearest shipped name.
Result<std::filesystem::path> scenarioFile(std::string_view fileOrName);

} // namespace kvatlas::app

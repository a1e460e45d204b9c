// SPDX-License-Identifier: Apache-2.0
// From words on a command line or in a dialogue to a backend and loaded weights. Any thread; loading takes as long as
// reading the file does. Errors: one sentence each.
#pragma once

#include "core/base/result.h"
#include "core/engine/weights.h"
#include "core/model/model.h"
#include "kernels/kernels.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace kvatlas::app {

// "auto", "cpu" or "reference". Unknown: Usage. Not usable on this machine: Failed, with the reason.
Result<const kernels::Kernels*> backendNamed(std::string_view name);

// "exact", "fast"; "integer" is refused while no backend offers it. Unknown: Usage.
Result<kernels::Arithmetic> arithmeticNamed(std::string_view name);

std::string describe(const kernels::Kernels& backend); // "cpu, AVX-512 VNNI"

// Opens the model and puts its weights into the backend's order.
Result<std::shared_ptr<const engine::Weights>> loadWeights(const std::filesystem::path& model,
                                                           const kernels::Kernels& backend);

} // namespace kvatlas::app

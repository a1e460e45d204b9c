// SPDX-License-Identifier: Apache-2.0
// The frozen names under which a session stores enums in its rows. A name never changes and is never used twice; a test
// holds every one of them. Any thread.
#pragma once

#include "core/trace/event.h"

#include <optional>
#include <string_view>

namespace kvatlas::sessions {

std::string_view nameOf(trace::FinishReason reason);
std::string_view nameOf(trace::PreemptionReason reason);
std::string_view nameOf(trace::ReleaseReason reason);
std::string_view nameOf(trace::KernelKind kernel);
std::string_view nameOf(trace::Tier tier);

std::optional<trace::FinishReason> finishReasonNamed(std::string_view name);

} // namespace kvatlas::sessions

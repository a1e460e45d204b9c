// SPDX-License-Identifier: Apache-2.0
// An event as JSON, for exports and for the rows that people read. Field names are those of FORMAT.md. Text that is not
// UTF-8 is carried with replacement characters. Any thread.
#pragma once

#include "core/trace/event.h"

#include <nlohmann/json.hpp>

namespace kvatlas::sessions {

// The fields of the body alone.
nlohmann::ordered_json fieldsOf(const trace::Event& event);

// {"step", "ns", "kind", fields...}
nlohmann::ordered_json toJson(const trace::Event& event);

// One line without spaces or line break.
std::string toLine(const nlohmann::ordered_json& json);

} // namespace kvatlas::sessions

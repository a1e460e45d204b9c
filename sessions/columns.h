// SPDX-License-Identifier: Apache-2.0
// Columns of a session file's rows, which may hold anything.
#pragma once

#include "core/base/ids.h"
#include "sessions/sqlite.h"

#include <cstdint>
#include <limits>
#include <optional>

namespace kvatlas::sessions {

inline bool isStep(std::int64_t value) {
    return value >= 0 && value <= std::numeric_limits<Step>::max();
}

// Nothing for NULL and for what is no step.
inline std::optional<Step> optionalStep(const Statement& row, int column) {
    if (row.isNull(column) || !isStep(row.integer(column)))
        return std::nullopt;
    return static_cast<Step>(row.integer(column));
}

} // namespace kvatlas::sessions

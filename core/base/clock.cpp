// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"

#include <chrono>

namespace kvatlas {

std::int64_t SteadyClock::nowNs() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace kvatlas

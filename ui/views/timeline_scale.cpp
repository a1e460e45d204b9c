// SPDX-License-Identifier: Apache-2.0
#include "ui/views/timeline_scale.h"

#include <algorithm>

namespace kvatlas::ui {

Step TimelineScale::endFor(Step lastStep, bool grows) {
    if (!grows)
        return std::max<Step>(lastStep, 1);
    std::uint64_t power = 64;
    while (power < lastStep) { // 64, 96, 128, 192, 256, ...
        if (power + power / 2 >= lastStep)
            return static_cast<Step>(std::min<std::uint64_t>(power + power / 2, 0xFFFF'FFFF));
        power *= 2;
    }
    return static_cast<Step>(std::min<std::uint64_t>(power, 0xFFFF'FFFF));
}

} // namespace kvatlas::ui

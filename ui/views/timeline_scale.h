// SPDX-License-Identifier: Apache-2.0
// The step axis that memory over time and the request bars share. Pure values, any thread.
#pragma once

#include "core/query/timeline.h"

namespace kvatlas::ui {

struct TimelineScale {
    static constexpr int kLeft = 112, kRight = 16; // margins in logical pixels, the same for both views

    Step lastStep = 64; // right end of the axis
    int width = 600;    // of the whole view

    double plotWidth() const { return std::max(1, width - kLeft - kRight); }
    query::StepAxis axis() const { return {0, lastStep, double(kLeft), plotWidth()}; }
    double xOf(double step) const { return axis().xOf(step); }
    Step stepAt(double x) const { return axis().stepAt(x); }

    // A run that goes on gets an axis with room, growing in few jumps; one that is over ends at its last step.
    static Step endFor(Step lastStep, bool grows);
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Paints query::RequestBars: waiting a 2 px line, prefill solid (once more after a preemption), decode at 30 % with the
// number inside, preempted a dotted line, refused a mark.
// GUI thread.
#pragma once

#include "core/query/timeline.h"
#include "ui/bridge/linked_state.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QRect>

#include <optional>

namespace kvatlas::ui {

class RequestBarPainter {
public:
    static constexpr int kMaxBarHeight = 20, kMinBarHeight = 1;
    // Logical pixels; the bars' x count from the left edge of `rect`.
    static void paint(QPainter& painter, const QRect& rect, const Theme& theme, const query::RequestBars& bars,
                      const Selection& selection);
    static std::optional<RequestId> barAt(QPoint point, const QRect& rect, const query::RequestBars& bars);
    // Lanes that do not fit into `rect`, however thin they are drawn.
    static std::uint32_t lanesLeftOut(const QRect& rect, const query::RequestBars& bars);

private:
    static QRectF rectOf(const query::RequestBar& bar, const QRect& rect, const query::RequestBars& bars);
};

} // namespace kvatlas::ui

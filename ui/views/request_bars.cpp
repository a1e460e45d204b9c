// SPDX-License-Identifier: Apache-2.0
#include "ui/views/request_bars.h"

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr int kTop = 6;
constexpr double kDecodeTint = 0.30, kDimShare = 0.30, kNumberFrom = 9, kMinWidth = 3;

QRectF spanRect(const query::BarSpan& span, const QRectF& bar, double left) {
    return {left + span.from, bar.y(), span.to - span.from, bar.height()};
}

} // namespace

QRectF RequestBarPainter::rectOf(const query::RequestBar& bar, const QRect& rect, const query::RequestBars& bars) {
    const double most = kMaxBarHeight + 2;
    const double pitch =
        bars.lanes == 0 ? most : std::clamp(double(rect.height() - kTop) / bars.lanes, kMinBarHeight + 1.0, most);
    const double height = std::round(std::clamp(pitch - 2, double(kMinBarHeight), double(kMaxBarHeight)));
    double from = 1e9, to = 0;
    for (const query::BarSpan& span : {bar.waiting, bar.prefill, bar.decode})
        if (!span.empty()) {
            from = std::min(from, span.from);
            to = std::max(to, span.to);
        }
    if (to <= from)
        return {};
    return {rect.x() + from, std::round(rect.y() + kTop + bar.lane * pitch), std::max(kMinWidth, to - from), height};
}

std::optional<RequestId> RequestBarPainter::barAt(QPoint point, const QRect& rect, const query::RequestBars& bars) {
    for (const query::RequestBar& bar : bars.bars)
        if (rectOf(bar, rect, bars).adjusted(-1, -1, 1, 1).contains(point))
            return bar.request;
    return {};
}

void RequestBarPainter::paint(QPainter& painter, const QRect& rect, const Theme& theme, const query::RequestBars& bars,
                              const Selection& selection) {
    const QFont font = theme.monoFont(theme.type.micro, QFont::Medium);
    const QFontMetrics metrics(font);
    painter.setFont(font);
    for (const query::RequestBar& bar : bars.bars) {
        const QRectF whole = rectOf(bar, rect, bars);
        if (whole.isEmpty() || whole.bottom() > rect.bottom() + 1)
            continue;
        const bool dim = selection.request != RequestId() && selection.request != bar.request;
        const QColor hue =
            dim ? mixed(theme.hueOf(bar.request.value), theme.panel, kDimShare) : theme.hueOf(bar.request.value);
        if (!bar.running && bar.finishReason == trace::FinishReason::Refused) {
            painter.fillRect(QRectF(whole.x(), whole.y(), kMinWidth, whole.height()), theme.bad);
            continue;
        }
        if (!bar.waiting.empty()) {
            const QRectF span = spanRect(bar.waiting, whole, rect.x());
            painter.fillRect(QRectF(span.x(), std::round(span.center().y()) - 1, span.width(), 2), hue);
        }
        if (!bar.prefill.empty()) {
            QRectF span = spanRect(bar.prefill, whole, rect.x());
            span.setWidth(std::max(span.width(), 2.0));
            painter.fillRect(span, hue);
        }
        if (!bar.decode.empty())
            painter.fillRect(spanRect(bar.decode, whole, rect.x()), mixed(hue, theme.panel, kDecodeTint));
        for (const query::BarSpan& gap : bar.gaps) { // preempted: recomputed later
            const QRectF span = spanRect(gap, whole, rect.x());
            painter.fillRect(span, theme.panel);
            for (double x = span.left(); x < span.right(); x += 4)
                painter.fillRect(QRectF(x, std::round(span.center().y()) - 1, 2, 2), hue);
            if (span.width() >= kNumberFrom && span.height() >= kNumberFrom) {
                painter.setPen(theme.text);
                painter.drawText(span.adjusted(0, -1, 0, 1), Qt::AlignCenter, QStringLiteral("P"));
            }
        }
        const QString number = QString::number(bar.request.value);
        if (bar.numbered && whole.height() >= kNumberFrom &&
            bar.decode.to - bar.decode.from > metrics.horizontalAdvance(number) + 8) {
            painter.setPen(dim ? theme.text3 : theme.text);
            painter.drawText(spanRect(bar.decode, whole, rect.x()).adjusted(4, -1, 0, 1),
                             Qt::AlignLeft | Qt::AlignVCenter, number);
        }
        if (selection.request == bar.request) { // half outside: the gap between packed lanes is 1 or 2 px
            painter.setBrush(Qt::NoBrush);
            painter.setPen(QPen(theme.select, 2));
            painter.drawRect(whole.adjusted(-1, 0, 1, 0));
        }
    }
}

} // namespace kvatlas::ui

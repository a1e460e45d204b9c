// SPDX-License-Identifier: Apache-2.0
#include "ui/views/request_bars.h"

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr int kTop = 6;
constexpr double kDecodeTint = 0.30, kNumberFrom = 9, kMinWidth = 3, kMinPitch = 2;

double pitchOf(const QRect& rect, const query::RequestBars& bars) {
    const double most = RequestBarPainter::kMaxBarHeight + 2;
    return bars.lanes == 0 ? most : std::clamp(double(rect.height() - kTop) / bars.lanes, kMinPitch, most);
}

// The first stretch of decode that holds `width`, between gaps and recomputed prefill; empty when there is none.
query::BarSpan roomForNumber(const query::RequestBar& bar, double width) {
    std::vector<query::BarSpan> taken = bar.gaps;
    taken.insert(taken.end(), bar.recomputed.begin(), bar.recomputed.end());
    std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
    double from = bar.decode.from;
    for (const query::BarSpan& span : taken) {
        if (std::min(span.from, bar.decode.to) - from > width)
            return {from, std::min(span.from, bar.decode.to)};
        from = std::max(from, span.to);
    }
    return bar.decode.to - from > width ? query::BarSpan{from, bar.decode.to} : query::BarSpan{};
}

QRectF spanRect(const query::BarSpan& span, const QRectF& bar, double left) {
    return {left + span.from, bar.y(), span.to - span.from, bar.height()};
}

} // namespace

QRectF RequestBarPainter::rectOf(const query::RequestBar& bar, const QRect& rect, const query::RequestBars& bars) {
    const double pitch = pitchOf(rect, bars);
    const double height =
        std::round(std::clamp(pitch - (pitch < 5 ? 1 : 2), double(kMinBarHeight), double(kMaxBarHeight)));
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

std::uint32_t RequestBarPainter::lanesLeftOut(const QRect& rect, const query::RequestBars& bars) {
    const double fit = std::floor((rect.height() - kTop) / pitchOf(rect, bars) + 0.01);
    return bars.lanes - std::min(bars.lanes, static_cast<std::uint32_t>(std::max(fit, 0.0)));
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
    const std::uint32_t lanes = bars.lanes - lanesLeftOut(rect, bars);
    QRectF selected;
    for (const query::RequestBar& bar : bars.bars) {
        const QRectF whole = rectOf(bar, rect, bars);
        if (whole.isEmpty() || bar.lane >= lanes)
            continue;
        const bool dim = selection.request != RequestId() && selection.request != bar.request;
        const QColor hue =
            dim ? mixed(theme.hueOf(bar.request.value), theme.panel, theme.dimShare()) : theme.hueOf(bar.request.value);
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
        for (const query::BarSpan& span : bar.recomputed)
            painter.fillRect(spanRect(span, whole, rect.x()), hue);
        for (const query::BarSpan& gap : bar.gaps) {
            const QRectF span = spanRect(gap, whole, rect.x());
            painter.fillRect(span, theme.panel);
            for (double x = span.left(); x < span.right(); x += 4)
                painter.fillRect(QRectF(x, std::round(span.center().y()) - 1, 2, 2), hue);
            if (span.width() >= kNumberFrom && span.height() >= kNumberFrom) { // recompute
                const QString letter = QStringLiteral("P");
                const double plate = metrics.horizontalAdvance(letter) + 2;
                painter.fillRect(QRectF(span.center().x() - plate / 2, span.y(), plate, span.height()), theme.panel);
                painter.setPen(dim ? theme.text3 : theme.text);
                painter.drawText(span.adjusted(0, -1, 0, 1), Qt::AlignCenter, letter);
            }
        }
        const QString number = QString::number(bar.request.value);
        const query::BarSpan room = roomForNumber(bar, metrics.horizontalAdvance(number) + 8);
        if (bar.numbered && whole.height() >= kNumberFrom && !room.empty()) {
            painter.setPen(dim ? theme.text3 : theme.text);
            painter.drawText(spanRect(room, whole, rect.x()).adjusted(4, -1, 0, 1), Qt::AlignLeft | Qt::AlignVCenter,
                             number);
        }
        if (selection.request == bar.request)
            selected = whole;
    }
    if (selected.isEmpty())
        return;
    // Over the others, and outside of a bar that is too thin to hold a frame.
    const bool thin = selected.height() < 6;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.select, thin ? 1 : 2));
    painter.drawRect(thin ? selected.adjusted(-1.5, -1.5, 0.5, 0.5) : selected.adjusted(-1, 0, 1, 0));
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/views/picture.h"

#include "ui/theme/colour_map.h"

#include <QFontMetrics>

namespace kvatlas::ui {

int paintLegend(QPainter& painter, const QRect& rect, const Theme& theme, const std::vector<LegendEntry>& entries,
                bool vector) {
    const QFont text = theme.textFont(theme.type.small), value = theme.monoFont(theme.type.small, QFont::Medium);
    const QFontMetrics textMetrics(text), valueMetrics(value);
    const int side = 12;
    int x = rect.x();
    CellPainter cells;
    for (const LegendEntry& entry : entries) {
        const int textWidth = textMetrics.horizontalAdvance(entry.text);
        if (entry.mark == LegendEntry::Mark::Scale) {
            constexpr int kWidth = 64;
            const int endWidth = textMetrics.horizontalAdvance(entry.value);
            const int all = textWidth + 6 + kWidth + 6 + endWidth;
            if (x + all > rect.x() + rect.width())
                break;
            for (int i = 0; i < kWidth; ++i)
                painter.fillRect(x + textWidth + 6 + i, rect.y() + (rect.height() - side) / 2, 1, side,
                                 QColor(viridis()[static_cast<std::size_t>(i * 255 / (kWidth - 1))]));
            painter.setPen(theme.text2);
            painter.setFont(text);
            painter.drawText(QRect(x, rect.y(), textWidth + 2, rect.height()), Qt::AlignVCenter, entry.text);
            painter.drawText(QRect(x + all - endWidth, rect.y(), endWidth + 2, rect.height()), Qt::AlignVCenter,
                             entry.value);
            x += all + 14;
            continue;
        }
        const int valueWidth = entry.value.isEmpty() ? 0 : 6 + valueMetrics.horizontalAdvance(entry.value);
        if (x + side + 6 + textWidth + valueWidth > rect.x() + rect.width())
            break;
        const QRect box(x, rect.y() + (rect.height() - side) / 2, side, side);
        {
            DeviceSpace space(painter);
            cells.begin(painter, theme, space.scale(), vector);
            const QRect device = space.rect(box);
            const int middle = device.center().y(), line = space.px(2);
            switch (entry.mark) {
            case LegendEntry::Mark::Cell:
                cells.cell(device, entry.look);
                break;
            case LegendEntry::Mark::Hatch:
                cells.hatch(device, entry.look.colour);
                break;
            case LegendEntry::Mark::Line:
                painter.fillRect(device.x(), middle, device.width(), line, entry.look.colour);
                break;
            case LegendEntry::Mark::DashedLine:
                painter.fillRect(device.x(), middle, device.width() * 5 / 12, line, entry.look.colour);
                painter.fillRect(device.x() + device.width() * 7 / 12, middle, device.width() * 5 / 12, line,
                                 entry.look.colour);
                break;
            case LegendEntry::Mark::Scale:
                break; // above
            case LegendEntry::Mark::Tick:
                painter.fillRect(device.center().x(), device.y(), line, device.height(), entry.look.colour);
                break;
            }
        }
        painter.setPen(theme.text2);
        painter.setFont(text);
        painter.drawText(QRect(x + side + 6, rect.y(), textWidth + 2, rect.height()), Qt::AlignVCenter, entry.text);
        if (!entry.value.isEmpty()) {
            painter.setPen(theme.text);
            painter.setFont(value);
            painter.drawText(QRect(x + side + 6 + textWidth + 6, rect.y(), valueWidth, rect.height()), Qt::AlignVCenter,
                             entry.value);
        }
        x += side + 6 + textWidth + valueWidth + 14;
    }
    return x - rect.x();
}

} // namespace kvatlas::ui

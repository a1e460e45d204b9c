// SPDX-License-Identifier: Apache-2.0
// A view as a picture: what its widget shows and what an export paints, from one function. GUI thread.
#pragma once

#include "ui/theme/theme.h"
#include "ui/views/cell_painter.h"

#include <QPainter>
#include <QRect>
#include <QString>

#include <vector>

namespace kvatlas::ui {

struct LegendEntry {
    enum class Mark { Cell, Line, DashedLine, Tick, Hatch, Scale } mark = Mark::Cell;
    CellLook look;       // Cell; else its colour
    QString text, value; // of a scale: its two ends, before and behind it
    friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

// Paints entries from left to right, vertically centred; those that do not fit are left out. Returns the width used.
int paintLegend(QPainter& painter, const QRect& rect, const Theme& theme, const std::vector<LegendEntry>& entries,
                bool vector = false);

class Picture {
public:
    virtual ~Picture() = default;
    virtual QString pictureTitle() const = 0;
    virtual QString pictureSubtitle() const = 0;
    virtual std::vector<LegendEntry> legend() const = 0;
    // The body, without title and legend, into `rect`; nothing outside of it. `vector`: no pixmaps, no clips.
    virtual void paintPicture(QPainter& painter, const QRect& rect, bool vector) = 0;
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Makes the focused cell of a painted view known to screen readers: a view that inherits CellCanvas is offered with one
// child, its focused cell. GUI thread.
#pragma once

#include <QRect>
#include <QString>

class QWidget;

namespace kvatlas::ui {

class CellCanvas {
public:
    virtual ~CellCanvas() = default;
    virtual QString focusedCellName() const = 0; // "Block 131, active, request 16, 16 of 16 slots"; empty: no cell
    virtual QRect focusedCellRect() const = 0;   // in the widget's coordinates
};

// Once per process, before the first view is asked for.
void installCellAccessibility();

// Tells screen readers that the focused cell is another one.
void announceFocusedCell(QWidget* canvas);

} // namespace kvatlas::ui

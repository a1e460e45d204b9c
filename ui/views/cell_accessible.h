// SPDX-License-Identifier: Apache-2.0
// Makes the focused cell of a painted view known to screen readers: a view that inherits CellCanvas is offered with one
// child, its focused cell. GUI thread.
#pragma once

class QWidget;

namespace kvatlas::ui {

// Once per process, before the first view is asked for.
void installCellAccessibility();

// Tells screen readers that the focused cell is another one.
void announceFocusedCell(QWidget* canvas);

} // namespace kvatlas::ui

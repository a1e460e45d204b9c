// SPDX-License-Identifier: Apache-2.0
// The few signs of the toolbar and the badges, drawn as paths so that they take any colour and any pixel ratio.
// GUI thread.
#pragma once

#include <QColor>
#include <QIcon>
#include <QPainter>

namespace kvatlas::ui {

enum class Glyph { Play, Pause, StepBack, StepForward, Follow, ChevronDown, ChevronUp, Check, More, Close, Dot };

// Fills `box` (any size; the shapes are designed on a 16 px grid).
void drawGlyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& colour);

QIcon glyphIcon(Glyph glyph, const QColor& colour, const QColor& disabled);

} // namespace kvatlas::ui

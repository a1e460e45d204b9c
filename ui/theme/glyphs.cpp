// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/glyphs.h"

#include <QIconEngine>

namespace kvatlas::ui {

namespace {

void stroke(QPainter& painter, const QColor& colour, std::initializer_list<QPointF> points, double width = 1.6) {
    painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(QPolygonF(QList<QPointF>(points)));
}

void fill(QPainter& painter, const QColor& colour, std::initializer_list<QPointF> points) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(QPolygonF(QList<QPointF>(points)));
}

class GlyphEngine final : public QIconEngine {
public:
    GlyphEngine(Glyph glyph, QColor colour, QColor disabled)
        : m_glyph(glyph)
        , m_colour(colour)
        , m_disabled(disabled) {}
    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
        QRect square(0, 0, std::min(rect.width(), rect.height()), std::min(rect.width(), rect.height()));
        square.moveCenter(rect.center());
        drawGlyph(*painter, m_glyph, square, mode == QIcon::Disabled ? m_disabled : m_colour);
    }
    QIconEngine* clone() const override { return new GlyphEngine(*this); }
    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
        QPixmap pixmap(size);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        paint(&painter, QRect(QPoint(), size), mode, state);
        return pixmap;
    }

private:
    Glyph m_glyph;
    QColor m_colour, m_disabled;
};

} // namespace

void drawGlyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& colour) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.translate(box.topLeft());
    painter.scale(box.width() / 16, box.height() / 16);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    switch (glyph) {
    case Glyph::Play:
        fill(painter, colour, {{4, 2.5}, {13.5, 8}, {4, 13.5}});
        break;
    case Glyph::Pause:
        painter.drawRect(QRectF(3.5, 3, 3, 10));
        painter.drawRect(QRectF(9.5, 3, 3, 10));
        break;
    case Glyph::StepBack:
        painter.drawRect(QRectF(3, 3, 2, 10));
        fill(painter, colour, {{13, 3}, {6, 8}, {13, 13}});
        break;
    case Glyph::StepForward:
        painter.drawRect(QRectF(11, 3, 2, 10));
        fill(painter, colour, {{3, 3}, {10, 8}, {3, 13}});
        break;
    case Glyph::Follow:
        stroke(painter, colour, {{2, 8}, {10, 8}});
        stroke(painter, colour, {{6.5, 4.5}, {10, 8}, {6.5, 11.5}});
        stroke(painter, colour, {{13.5, 3.5}, {13.5, 12.5}});
        break;
    case Glyph::ChevronDown:
        stroke(painter, colour, {{4.5, 6.5}, {8, 10}, {11.5, 6.5}});
        break;
    case Glyph::ChevronUp:
        stroke(painter, colour, {{4.5, 9.5}, {8, 6}, {11.5, 9.5}});
        break;
    case Glyph::Check:
        stroke(painter, colour, {{3.5, 8.5}, {6.5, 11.5}, {12.5, 4.5}});
        break;
    case Glyph::More:
        for (double x : {3.5, 8.0, 12.5})
            painter.drawEllipse(QPointF(x, 8), 1.3, 1.3);
        break;
    case Glyph::Close:
        stroke(painter, colour, {{4, 4}, {12, 12}});
        stroke(painter, colour, {{12, 4}, {4, 12}});
        break;
    case Glyph::Dot:
        painter.drawEllipse(QPointF(8, 8), 4, 4);
        break;
    }
    painter.restore();
}

QIcon glyphIcon(Glyph glyph, const QColor& colour, const QColor& disabled) {
    return QIcon(new GlyphEngine(glyph, colour, disabled));
}

} // namespace kvatlas::ui

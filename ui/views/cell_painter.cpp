// SPDX-License-Identifier: Apache-2.0
#include "ui/views/cell_painter.h"

#include <algorithm>
#include <cmath>

namespace kvatlas::ui {

namespace {

constexpr int kMaxLabels = 400, kMaxPixmaps = 256;
constexpr double kHatchPitch = 6, kHatchWidth = 1.4;

constexpr double kPartFilledTint = 0.34, kHollowTint = 0.15, kPatternTint = 0.35;

// The parts of the lines x + y = k * pitch that lie inside `rect`.
template <class Draw> void eachHatchLine(const QRectF& rect, double pitch, Draw draw) {
    const double first = std::ceil((rect.left() + rect.top()) / pitch) * pitch;
    for (double sum = first; sum < rect.right() + rect.bottom(); sum += pitch) {
        const double x0 = std::max(rect.left(), sum - rect.bottom()), x1 = std::min(rect.right(), sum - rect.top());
        if (x1 > x0)
            draw(QLineF(x0, sum - x0, x1, sum - x1));
    }
}

} // namespace

DeviceSpace::DeviceSpace(QPainter& painter)
    : m_painter(painter) {
    const QTransform transform = painter.deviceTransform();
    m_scale = transform.m11() > 0 ? transform.m11() : 1;
    painter.save();
    const double dx = std::round(transform.dx()) - transform.dx(), dy = std::round(transform.dy()) - transform.dy();
    painter.translate(dx / m_scale, dy / m_scale);
    painter.scale(1 / m_scale, 1 / m_scale);
}

DeviceSpace::~DeviceSpace() {
    m_painter.restore();
}

int DeviceSpace::px(double logical) const {
    const int rounded = static_cast<int>(std::lround(logical * m_scale));
    return logical > 0 ? std::max(1, rounded) : rounded;
}

QRect DeviceSpace::rect(const QRect& logical) const {
    const QPoint from(static_cast<int>(std::lround(logical.x() * m_scale)),
                      static_cast<int>(std::lround(logical.y() * m_scale)));
    const QPoint to(static_cast<int>(std::lround((logical.x() + logical.width()) * m_scale)),
                    static_cast<int>(std::lround((logical.y() + logical.height()) * m_scale)));
    return {from, QSize(to.x() - from.x(), to.y() - from.y())};
}

CellLook lookOf(const Theme& theme, const state::BlockState& block, std::uint32_t blockTokens) {
    CellLook look;
    switch (block.kind) {
    case state::BlockKind::Free:
        look.shape = CellShape::Free;
        look.colour = theme.state.freeLine;
        return look;
    case state::BlockKind::Cached:
        look.shape = CellShape::Hollow;
        look.colour = theme.state.cached;
        return look;
    case state::BlockKind::Reserved:
        look.shape = CellShape::Hatched;
        look.colour = theme.hueOf(block.request.value);
        return look;
    case state::BlockKind::Active:
        break;
    }
    if (block.references > 1) {
        look.colour = theme.shared();
        look.label = QChar(0x00D7) + QString::number(block.references);
    } else {
        look.colour = theme.hueOf(block.request.value);
        look.label = QString::number(block.request.value);
        look.pattern = block.request.value == 0 ? 0 : static_cast<int>((block.request.value - 1) % 7);
    }
    const bool part = blockTokens > 0 && block.usedSlots < blockTokens;
    look.shape = part ? CellShape::PartFilled : CellShape::Solid;
    look.level = part ? static_cast<double>(block.usedSlots) / blockTokens : 1;
    return look;
}

void CellPainter::begin(QPainter& painter, const Theme& theme, double scale, bool vector) {
    m_painter = &painter;
    m_theme = &theme;
    m_scale = scale;
    m_vector = vector;
    if (m_labels.size() > kMaxLabels)
        m_labels.clear();
    if (m_solids.size() > kMaxPixmaps)
        m_solids.clear();
    if (m_hatches.size() > kMaxPixmaps)
        m_hatches.clear();
}

int CellPainter::width(double logical) const {
    return std::max(1, static_cast<int>(std::lround(logical * m_scale)));
}

void CellPainter::solid(const QRect& rect, const QColor& colour) {
    const double radius = (rect.width() < 14 * m_scale ? 1 : m_theme->radiusCell) * m_scale;
    if (rect.width() < 5) {
        m_painter->fillRect(rect, colour);
        return;
    }
    if (m_vector) {
        m_painter->setPen(Qt::NoPen);
        m_painter->setBrush(colour);
        m_painter->drawRoundedRect(rect, radius, radius);
        return;
    }
    if (rect.width() > 255 || rect.height() > 255) {
        m_painter->fillRect(rect, colour);
        return;
    }
    const quint64 key = (quint64{colour.rgb()} << 16) | (quint64(rect.width()) << 8) | quint64(rect.height());
    auto at = m_solids.find(key);
    if (at == m_solids.end()) {
        QPixmap pixmap(rect.size());
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawRoundedRect(QRect(QPoint(), rect.size()), radius, radius);
        painter.end();
        at = m_solids.insert(key, pixmap);
    }
    m_painter->drawPixmap(rect.topLeft(), *at);
}

void CellPainter::frame(const QRect& rect, const QColor& colour, int width) {
    const int w = std::min(width, std::max(1, rect.width() / 2));
    m_painter->fillRect(rect.x(), rect.y(), rect.width(), w, colour);
    m_painter->fillRect(rect.x(), rect.bottom() + 1 - w, rect.width(), w, colour);
    m_painter->fillRect(rect.x(), rect.y() + w, w, rect.height() - 2 * w, colour);
    m_painter->fillRect(rect.right() + 1 - w, rect.y() + w, w, rect.height() - 2 * w, colour);
}

void CellPainter::hatch(const QRect& rect, const QColor& colour) {
    const double pitch = std::lround(kHatchPitch * m_scale);
    if (m_vector) {
        m_painter->setPen(QPen(colour, kHatchWidth * m_scale));
        eachHatchLine(rect, pitch, [this](const QLineF& line) { m_painter->drawLine(line); });
        return;
    }
    const quint64 key = (quint64{colour.rgba()} << 8) | static_cast<quint64>(pitch);
    auto at = m_hatches.find(key);
    if (at == m_hatches.end()) {
        const int side = static_cast<int>(pitch);
        QPixmap tile(side, side);
        tile.fill(Qt::transparent);
        QPainter painter(&tile);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(colour, kHatchWidth * m_scale));
        eachHatchLine(QRectF(-side, -side, 3 * side, 3 * side), pitch,
                      [&painter](const QLineF& line) { painter.drawLine(line); });
        painter.end();
        at = m_hatches.insert(key, tile);
    }
    m_painter->drawTiledPixmap(rect, *at, rect.topLeft());
}

void CellPainter::pattern(const QRect& rect, int index, const QColor& colour) {
    QColor ink = labelOn(colour);
    ink.setAlphaF(kPatternTint);
    const int w = width(1), step = width(4);
    if (index == 1 || index == 2 || index == 6) { // lines kept inside by geometry: SVG ignores clips
        m_painter->setPen(QPen(ink, w));
        eachHatchLine(rect, step * 1.5, [&](QLineF line) {
            if (index != 1) { // mirrored about the vertical middle
                const double sum = rect.left() + rect.left() + rect.width();
                line.setLine(sum - line.x1(), line.y1(), sum - line.x2(), line.y2());
            }
            m_painter->drawLine(line);
        });
    }
    if (index == 6)
        pattern(rect, 1, colour);
    for (int y = rect.top() + step / 2; index == 3 && y + w <= rect.bottom() + 1; y += step)
        m_painter->fillRect(rect.left(), y, rect.width(), w, ink);
    for (int x = rect.left() + step / 2; index == 4 && x + w <= rect.right() + 1; x += step)
        m_painter->fillRect(x, rect.top(), w, rect.height(), ink);
    for (int y = rect.top() + step / 2; index == 5 && y + w <= rect.bottom() + 1; y += step)
        for (int x = rect.left() + step / 2; x + w <= rect.right() + 1; x += step)
            m_painter->fillRect(x, y, w, w, ink);
}

void CellPainter::label(const QRect& rect, const QString& text, const QFont& font, const QColor& colour) {
    m_painter->setPen(colour);
    m_painter->setFont(font);
    if (m_vector) {
        m_painter->drawText(rect, Qt::AlignCenter, text);
        return;
    }
    const LabelKey key{text, font.key()};
    auto at = m_labels.find(key);
    if (at == m_labels.end()) {
        if (m_labels.size() > kMaxLabels)
            m_labels.clear();
        QStaticText made(text);
        made.setTextFormat(Qt::PlainText);
        made.setPerformanceHint(QStaticText::AggressiveCaching);
        made.prepare(QTransform(), font);
        at = m_labels.insert(key, made);
    }
    const QSizeF size = at->size();
    m_painter->drawStaticText(QPointF(std::round(rect.x() + (rect.width() - size.width()) / 2),
                                      std::round(rect.y() + (rect.height() - size.height()) / 2)),
                              *at);
}

void CellPainter::cell(const QRect& rect, const CellLook& look) {
    const int hair = width(1);
    switch (look.shape) {
    case CellShape::Free:
        frame(rect, look.colour, hair);
        break;
    case CellShape::Hollow:
        m_painter->fillRect(rect, mixed(look.colour, m_theme->well, kHollowTint));
        frame(rect, look.colour, hair);
        break;
    case CellShape::Hatched:
        m_painter->fillRect(rect, m_theme->well);
        hatch(rect, look.colour);
        frame(rect, look.colour, hair);
        break;
    case CellShape::Solid:
        solid(rect, look.colour);
        if (m_theme->patterns && look.pattern > 0 && rect.width() >= 10 * m_scale)
            pattern(rect, look.pattern, look.colour);
        break;
    case CellShape::PartFilled: {
        m_painter->fillRect(rect, mixed(look.colour, m_theme->well, kPartFilledTint));
        frame(rect, look.colour, hair);
        const int bar = rect.width() < 16 * m_scale ? rect.height() / 3 : width(4);
        const int filled = static_cast<int>(std::lround((rect.width() - 2 * hair) * look.level));
        m_painter->fillRect(rect.x() + hair, rect.bottom() + 1 - hair - bar, filled, bar, look.colour);
        break;
    }
    }
}

void CellPainter::selection(const QRect& rect) {
    const int two = width(2), one = width(1);
    frame(rect.adjusted(-one - two, -one - two, one + two, one + two), m_theme->select, two);
    frame(rect.adjusted(-one, -one, one, one), m_theme->selectHalo, one);
}

void CellPainter::hover(const QRect& rect) {
    const int one = width(1);
    frame(rect.adjusted(-one, -one, one, one), m_theme->select, one);
}

} // namespace kvatlas::ui

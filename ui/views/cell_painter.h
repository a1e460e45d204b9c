// SPDX-License-Identifier: Apache-2.0
// One block as a cell, the same in map, tables, legend and inspector: hue says who, shape says what state.
// Works in device pixels: DeviceSpace turns a painter's space into whole device pixels and back. GUI thread.
#pragma once

#include "core/state/snapshot.h"
#include "ui/theme/theme.h"

#include <QHash>
#include <QPainter>
#include <QPixmap>
#include <QRect>
#include <QStaticText>

namespace kvatlas::ui {

// While it lives the painter's unit is one device pixel and its origin a whole one, whatever the pixel ratio.
class DeviceSpace {
public:
    explicit DeviceSpace(QPainter& painter);
    ~DeviceSpace();
    DeviceSpace(const DeviceSpace&) = delete;
    DeviceSpace& operator=(const DeviceSpace&) = delete;

    double scale() const { return m_scale; }
    int px(double logical) const; // rounded, at least 1 for what is not 0
    QRect rect(const QRect& logical) const;

private:
    QPainter& m_painter;
    double m_scale = 1;
};

enum class CellShape : std::uint8_t { Free, Hollow, Solid, PartFilled, Hatched };

struct CellLook {
    CellShape shape = CellShape::Free;
    QColor colour;       // the hue; of a hollow cell its outline
    double level = 1;    // used share of a part filled cell
    QString label;       // request number or xn, drawn from 16 px
    int pattern = 0;     // 1..7: marks over the hue
    bool dashed = false; // not in the device pool
    friend bool operator==(const CellLook&, const CellLook&) = default;
};

// How one block is shown when coloured by owner: the states of look.md, section "Block states".
CellLook lookOf(const Theme& theme, const state::BlockState& block, std::uint32_t blockTokens);

class CellPainter {
public:
    // `vector`: for a printer or SVG, where pixmaps and clips are to be avoided.
    void begin(QPainter& painter, const Theme& theme, double scale, bool vector);

    void cell(const QRect& rect, const CellLook& look);
    void hatch(const QRect& rect, const QColor& colour);
    void label(const QRect& rect, const QString& text, const QFont& font, const QColor& colour);
    void frame(const QRect& rect, const QColor& colour, int width); // inside the rectangle
    void selection(const QRect& rect);                              // 2 px outside, with a halo
    void hover(const QRect& rect);                                  // 1 px
    int width(double logical) const;                                // of a line, in device pixels

private:
    void solid(const QRect& rect, const QColor& colour);
    void pattern(const QRect& rect, int index, const QColor& colour);

    QPainter* m_painter = nullptr;
    const Theme* m_theme = nullptr;
    double m_scale = 1;
    bool m_vector = false;
    struct LabelKey {
        QString text, font;
        friend bool operator==(const LabelKey&, const LabelKey&) = default;
        friend size_t qHash(const LabelKey& key, size_t seed = 0) { return qHashMulti(seed, key.text, key.font); }
    };
    QHash<LabelKey, QStaticText> m_labels;
    QHash<quint64, QPixmap> m_solids, m_hatches;
};

} // namespace kvatlas::ui

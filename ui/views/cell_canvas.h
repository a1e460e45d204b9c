// SPDX-License-Identifier: Apache-2.0
// What painted views of cells have in common: scrolling, one focused cell that arrows move and Enter takes, a ring
// around it when the keyboard put it there, a tooltip that tells what is under the pointer now, whatever moved, and
// goes when the pointer leaves. GUI thread.
#pragma once

#include "ui/workbench.h"

#include <QAbstractScrollArea>

#include <optional>

namespace kvatlas::ui {

class HoverTip;

class CellCanvas : public QAbstractScrollArea {
    Q_OBJECT
public:
    // `name` and `description` are for screen readers.
    CellCanvas(const Workbench& bench, const QString& name, const QString& description, QWidget* parent);

    virtual QString focusedCellName() const = 0; // "Block 131, active, request 16, 16 of 16 slots"; empty: no cell
    virtual QRect focusedCellRect() const = 0;   // in the widget's coordinates

protected:
    virtual void relayout() = 0;                       // the size is another
    virtual void focusSomeCell() = 0;                  // the view has the focus: so must a cell, if there is one
    virtual void moveFocus(int columns, int rows) = 0; // by one cell
    virtual void takeFocused() = 0;                    // selects it
    virtual bool takeKey(int) { return false; }        // a key of the view's own
    virtual void hoverAt(QPointF point) = 0;           // the pointer is there, in the viewport: hovers and explains

    bool showsRing() const { return m_ring && hasFocus(); }
    void announceFocus();
    void refreshHover(); // what lies under a resting pointer may be another cell, or say something else

    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;

    const Workbench m_bench;
    HoverTip* const m_tip;

private:
    bool moveByKey(int key);
    void leave();
    std::optional<QPointF> m_pointer; // in the viewport
    bool m_ring = false;              // the focus came by the keyboard: shown on the cell
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Every physical block of every pool as a cell, at four levels by cell size. Click selects, hover explains, arrows
// move, Ctrl + wheel and + - 0 zoom. GUI thread.
#pragma once

#include "ui/views/cell_canvas.h"
#include "ui/views/memory_map_painter.h"
#include "ui/views/view_frame.h"

namespace kvatlas::ui {

class EmptyNote;

class MemoryMapCanvas : public CellCanvas {
    Q_OBJECT
public:
    MemoryMapCanvas(const Workbench& bench, QWidget* parent);

    void setSnapshot(SnapshotPtr snapshot, const Lane* lane);
    MapScene scene() const;
    const MapLayout& layout() const { return m_layout; }
    MemoryMapPainter& painter() { return m_painter; }

    int cell() const { return m_layout.cellLogical(); }
    void zoomTo(int cell, QPoint about); // logical pixels; 0 fits
    void zoomBy(int notches, QPoint about);
    QPoint zoomCentre() const; // of keys and menu: the selected, else the focused block in sight, else the middle
    bool fitting() const { return m_cell == 0; }

    QString focusedCellName() const override;
    QRect focusedCellRect() const override;

signals:
    void zoomChanged();

protected:
    void relayout() override;
    void focusSomeCell() override;
    void moveFocus(int columns, int rows) override;
    void takeFocused() override;
    bool takeKey(int key) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void hoverAt(QPointF point) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    double scale() const { return viewport()->devicePixelRatioF(); }
    QRegion changedCells(const state::Snapshot& before, const state::Snapshot& after) const;
    std::optional<BlockId> blockAt(QPointF viewportPoint) const;
    QRect logicalRect(BlockId block) const; // in viewport coordinates
    void select(BlockId block);
    void ensureVisible(BlockId block);
    void explain(std::optional<BlockId> id);

    SnapshotPtr m_snapshot;
    const Lane* m_lane = nullptr;
    MemoryMapPainter m_painter;
    MapLayout m_layout;
    int m_cell = 0; // wanted; 0 = fit
    double m_wheel = 0;
    std::optional<BlockId> m_focused;
};

class MemoryMapView : public ViewFrame {
    Q_OBJECT
public:
    MemoryMapView(const Workbench& bench, std::size_t laneIndex, QWidget* parent = nullptr);

    MemoryMapCanvas& canvas() { return *m_canvas; }
    EmptyNote& emptyNote() { return *m_empty; }
    QWidget* focusTarget() override { return m_canvas; }
    std::vector<LegendEntry> legend() const override;
    void paintPicture(QPainter& painter, const QRect& rect, bool vector) override;

private:
    void refresh();
    void refreshColour();

    MemoryMapCanvas* m_canvas;
    EmptyNote* m_empty;
    QToolButton* m_colour;
    MemoryMapPainter m_exportPainter;
};

// "active", "free", ...: for tooltips.
QString blockStateText(const state::BlockState& block);

} // namespace kvatlas::ui

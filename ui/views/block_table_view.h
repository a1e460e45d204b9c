// SPDX-License-Identifier: Apache-2.0
// The block table of every sequence at the cursor. Click selects, arrows move, hover links with the map. GUI thread.
#pragma once

#include "ui/views/block_table_painter.h"
#include "ui/views/cell_canvas.h"
#include "ui/views/view_frame.h"

namespace kvatlas::ui {

class EmptyNote;

class BlockTableCanvas : public CellCanvas {
    Q_OBJECT
public:
    BlockTableCanvas(const Workbench& bench, QWidget* parent);

    void setSnapshot(SnapshotPtr snapshot);
    void setOrder(query::TableOrder order);
    const std::vector<TableRow>& rows() const { return m_rows; }
    TableScene scene() const;

    QString focusedCellName() const override;
    QRect focusedCellRect() const override;

protected:
    void relayout() override;
    void focusSomeCell() override;
    void moveFocus(int columns, int rows) override;
    void takeFocused() override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void hoverAt(QPointF point) override;

private:
    QPoint scroll() const;
    void selectCell(TableCell cell);
    void explain(std::optional<TableCell> cell);
    std::optional<TableCell> focusedCell() const; // the focus, kept inside the rows

    SnapshotPtr m_snapshot;
    query::TableOrder m_order = query::TableOrder::Arrival;
    std::vector<TableRow> m_rows;
    BlockTablePainter m_painter;
    std::optional<TableCell> m_focused;
};

class BlockTableView : public ViewFrame {
    Q_OBJECT
public:
    BlockTableView(const Workbench& bench, std::size_t laneIndex, QWidget* parent = nullptr);

    BlockTableCanvas& canvas() { return *m_canvas; }
    QWidget* focusTarget() override { return m_canvas; }
    EmptyNote& emptyNote() { return *m_empty; }
    std::vector<LegendEntry> legend() const override;
    void paintPicture(QPainter& painter, const QRect& rect, bool vector) override;

private:
    void refresh();
    void setOrder(query::TableOrder order);

    BlockTableCanvas* m_canvas;
    EmptyNote* m_empty;
    QToolButton* m_orderButton;
    query::TableOrder m_order = query::TableOrder::Arrival;
    BlockTablePainter m_exportPainter;
};

} // namespace kvatlas::ui

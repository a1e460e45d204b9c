// SPDX-License-Identifier: Apache-2.0
// The block table of every sequence at the cursor. Click selects, arrows move, hover links with the map. GUI thread.
#pragma once

#include "ui/views/block_table_painter.h"
#include "ui/views/cell_accessible.h"
#include "ui/views/view_frame.h"

#include <QAbstractScrollArea>

namespace kvatlas::ui {

class EmptyNote;
class HoverTip;

class BlockTableCanvas : public QAbstractScrollArea, public CellCanvas {
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
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    QPoint scroll() const;
    void relayout();
    void selectCell(TableCell cell);
    void moveFocus(int columns, int rows);
    void explain(std::optional<TableCell> cell);
    std::optional<TableCell> focusedCell() const; // the focus, kept inside the rows

    const Workbench m_bench;
    SnapshotPtr m_snapshot;
    query::TableOrder m_order = query::TableOrder::Arrival;
    std::vector<TableRow> m_rows;
    BlockTablePainter m_painter;
    std::optional<TableCell> m_focused;
    bool m_ring = false; // the focus came by the keyboard: shown on the cell
    HoverTip* m_tip;
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

// SPDX-License-Identifier: Apache-2.0
#include "ui/views/cell_canvas.h"

#include "ui/views/cell_accessible.h"
#include "ui/views/hover_tip.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>

namespace kvatlas::ui {

CellCanvas::CellCanvas(const Workbench& bench, const QString& name, const QString& description, QWidget* parent)
    : QAbstractScrollArea(parent)
    , m_bench(bench)
    , m_tip(new HoverTip(this)) {
    installCellAccessibility();
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(name);
    setAccessibleDescription(description);
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    viewport()->setAccessibleName(tr("%1: cells").arg(name));
    verticalScrollBar()->setAccessibleName(tr("%1: scroll").arg(name));
    horizontalScrollBar()->setAccessibleName(tr("%1: scroll sideways").arg(name));
    const auto repaint = [this] { viewport()->update(); };
    connect(&bench.linked, &LinkedState::selectionChanged, this, repaint);
    connect(&bench.linked, &LinkedState::hoverChanged, this, repaint);
    connect(&bench.appearance, &Appearance::changed, this, &CellCanvas::refreshHover);
}

void CellCanvas::announceFocus() {
    announceFocusedCell(this);
    viewport()->update();
}

void CellCanvas::refreshHover() {
    if (m_pointer)
        hoverAt(*m_pointer);
}

void CellCanvas::leave() {
    if (!m_pointer)
        return;
    m_pointer.reset();
    m_bench.linked.hover({});
    m_tip->withdraw();
}

void CellCanvas::resizeEvent(QResizeEvent*) {
    relayout();
}

void CellCanvas::scrollContentsBy(int, int) {
    viewport()->update();
    refreshHover();
}

void CellCanvas::mouseMoveEvent(QMouseEvent* event) {
    m_pointer = event->position();
    hoverAt(*m_pointer);
}

void CellCanvas::hideEvent(QHideEvent* event) {
    QAbstractScrollArea::hideEvent(event);
    leave();
}

bool CellCanvas::moveByKey(int key) {
    switch (key) {
    case Qt::Key_Left:
        moveFocus(-1, 0);
        break;
    case Qt::Key_Right:
        moveFocus(1, 0);
        break;
    case Qt::Key_Up:
        moveFocus(0, -1);
        break;
    case Qt::Key_Down:
        moveFocus(0, 1);
        break;
    default:
        return false;
    }
    m_ring = true;
    announceFocus();
    return true;
}

void CellCanvas::keyPressEvent(QKeyEvent* event) {
    const bool chord = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier) &&
                       event->key() != Qt::Key_Plus; // some keyboards need Shift for it
    bool taken = !chord && (moveByKey(event->key()) || takeKey(event->key()));
    if (!taken && !chord && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)) {
        takeFocused();
        taken = true;
    }
    event->setAccepted(taken);
}

void CellCanvas::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    focusSomeCell();
    m_ring = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason ||
             event->reason() == Qt::ShortcutFocusReason;
    announceFocus();
}

void CellCanvas::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

bool CellCanvas::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave)
        leave();
    return QAbstractScrollArea::viewportEvent(event);
}

void CellCanvas::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        viewport()->update();
    QAbstractScrollArea::changeEvent(event);
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/views/cell_accessible.h"

#include "ui/views/cell_canvas.h"

#include <QAccessible>
#include <QAccessibleWidget>

namespace kvatlas::ui {

namespace {

class CellInterface final : public QAccessibleInterface {
public:
    explicit CellInterface(CellCanvas* canvas)
        : m_canvas(canvas) {}
    bool isValid() const override { return m_canvas != nullptr; }
    QObject* object() const override { return nullptr; }
    QWindow* window() const override { return nullptr; }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(m_canvas); }
    QAccessibleInterface* child(int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    QAccessible::Role role() const override { return QAccessible::Cell; }
    QAccessible::State state() const override {
        QAccessible::State state;
        state.focusable = true;
        state.focused = m_canvas->hasFocus();
        state.selectable = true;
        return state;
    }
    QString text(QAccessible::Text kind) const override {
        return kind == QAccessible::Name ? m_canvas->focusedCellName() : QString();
    }
    void setText(QAccessible::Text, const QString&) override {}
    QRect rect() const override {
        const QRect own = m_canvas->focusedCellRect();
        return {m_canvas->mapToGlobal(own.topLeft()), own.size()};
    }

private:
    CellCanvas* m_canvas; // outlives its accessible interfaces
};

class CanvasInterface final : public QAccessibleWidget {
public:
    explicit CanvasInterface(CellCanvas* canvas)
        : QAccessibleWidget(canvas, QAccessible::Table)
        , m_canvas(canvas)
        , m_cell(QAccessible::registerAccessibleInterface(new CellInterface(canvas))) {}
    ~CanvasInterface() override { QAccessible::deleteAccessibleInterface(m_cell); }
    int childCount() const override { return m_canvas->focusedCellName().isEmpty() ? 0 : 1; }
    QAccessibleInterface* child(int index) const override {
        return index == 0 && childCount() == 1 ? QAccessible::accessibleInterface(m_cell) : nullptr;
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        return child == QAccessible::accessibleInterface(m_cell) ? 0 : -1;
    }
    QAccessibleInterface* focusChild() const override { return child(0); }
    QAccessibleInterface* childAt(int x, int y) const override {
        QAccessibleInterface* cell = child(0);
        return cell && cell->rect().contains(x, y) ? cell : nullptr;
    }

private:
    CellCanvas* m_canvas;
    QAccessible::Id m_cell;
};

QAccessibleInterface* makeInterface(const QString&, QObject* object) {
    auto* canvas = qobject_cast<CellCanvas*>(object);
    return canvas ? new CanvasInterface(canvas) : nullptr;
}

} // namespace

void installCellAccessibility() {
    static const bool installed = (QAccessible::installFactory(makeInterface), true);
    static_cast<void>(installed);
}

void announceFocusedCell(QWidget* canvas) {
    if (!QAccessible::isActive())
        return;
    QAccessibleEvent event(canvas, QAccessible::Focus);
    event.setChild(0);
    QAccessible::updateAccessibility(&event);
}

} // namespace kvatlas::ui

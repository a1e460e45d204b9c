// SPDX-License-Identifier: Apache-2.0
#include "ui/views/cell_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QWidget>

namespace kvatlas::ui {

namespace {

class CellInterface final : public QAccessibleInterface {
public:
    explicit CellInterface(QWidget* widget)
        : m_widget(widget) {}
    bool isValid() const override { return m_widget != nullptr; }
    QObject* object() const override { return nullptr; }
    QWindow* window() const override { return nullptr; }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(m_widget); }
    QAccessibleInterface* child(int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    QAccessible::Role role() const override { return QAccessible::Cell; }
    QAccessible::State state() const override {
        QAccessible::State state;
        state.focusable = true;
        state.focused = m_widget->hasFocus();
        state.selectable = true;
        return state;
    }
    QString text(QAccessible::Text kind) const override {
        return kind == QAccessible::Name ? dynamic_cast<const CellCanvas*>(m_widget)->focusedCellName() : QString();
    }
    void setText(QAccessible::Text, const QString&) override {}
    QRect rect() const override {
        const QRect own = dynamic_cast<const CellCanvas*>(m_widget)->focusedCellRect();
        return {m_widget->mapToGlobal(own.topLeft()), own.size()};
    }

private:
    QWidget* m_widget; // outlives its accessible interfaces
};

class CanvasInterface final : public QAccessibleWidget {
public:
    explicit CanvasInterface(QWidget* widget)
        : QAccessibleWidget(widget, QAccessible::Table)
        , m_cell(QAccessible::registerAccessibleInterface(new CellInterface(widget))) {}
    ~CanvasInterface() override { QAccessible::deleteAccessibleInterface(m_cell); }
    int childCount() const override {
        return dynamic_cast<const CellCanvas*>(widget())->focusedCellName().isEmpty() ? 0 : 1;
    }
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
    QAccessible::Id m_cell;
};

QAccessibleInterface* makeInterface(const QString&, QObject* object) {
    auto* widget = qobject_cast<QWidget*>(object);
    return widget && dynamic_cast<CellCanvas*>(widget) ? new CanvasInterface(widget) : nullptr;
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

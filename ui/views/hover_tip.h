// SPDX-License-Identifier: Apache-2.0
// The tooltip of the views: rows of name and value, beside what it explains and never over it. After 400 ms at first,
// at once when the pointer moves on to another cell. GUI thread; one per view.
#pragma once

#include "ui/theme/theme.h"

#include <QTimer>
#include <QWidget>

#include <vector>

namespace kvatlas::ui {

class HoverTip : public QWidget {
    Q_OBJECT
public:
    struct Row {
        QString name, value;
    };
    static constexpr int kMaxRows = 5;

    explicit HoverTip(QWidget* owner);
    // `about` in global coordinates.
    void present(const Theme& theme, const QString& head, std::vector<Row> rows, const QRect& about);
    void withdraw();
    const QString& head() const { return m_head; }
    const std::vector<Row>& rows() const { return m_rows; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void place();
    Theme m_theme;
    QString m_head;
    std::vector<Row> m_rows;
    QRect m_about;
    QTimer m_delay;
};

} // namespace kvatlas::ui

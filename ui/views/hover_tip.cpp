// SPDX-License-Identifier: Apache-2.0
#include "ui/views/hover_tip.h"

#include <QGuiApplication>
#include <QPainter>
#include <QScreen>

#include <algorithm>

namespace kvatlas::ui {

namespace {
constexpr int kPadding = 8, kRowHeight = 18, kColumnGap = 16, kDelayMs = 400, kDistance = 6;
}

HoverTip::HoverTip(QWidget* owner)
    : QWidget(owner, Qt::ToolTip | Qt::FramelessWindowHint) {
    setAttribute(Qt::WA_ShowWithoutActivating);
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAccessibleName(tr("Tooltip"));
    m_delay.setSingleShot(true);
    m_delay.setInterval(kDelayMs);
    connect(&m_delay, &QTimer::timeout, this, [this] {
        place();
        show();
    });
}

void HoverTip::present(const Theme& theme, const QString& head, std::vector<Row> rows, const QRect& about) {
    m_theme = theme;
    m_head = head;
    if (rows.size() > kMaxRows)
        rows.resize(kMaxRows);
    m_rows = std::move(rows);
    m_about = about;
    if (isVisible()) {
        place();
        update();
    } else if (!m_delay.isActive()) {
        m_delay.start();
    }
}

void HoverTip::withdraw() {
    m_delay.stop();
    hide();
}

void HoverTip::place() {
    const QFontMetrics names(m_theme.textFont(m_theme.type.small)), values(m_theme.monoFont(m_theme.type.small)),
        heads(m_theme.textFont(m_theme.type.body, QFont::DemiBold));
    int nameWidth = 0, valueWidth = 0;
    for (const Row& row : m_rows) {
        nameWidth = std::max(nameWidth, names.horizontalAdvance(row.name));
        valueWidth = std::max(valueWidth, values.horizontalAdvance(row.value));
    }
    const int width = std::max(heads.horizontalAdvance(m_head), nameWidth + kColumnGap + valueWidth) + 2 * kPadding + 2;
    resize(width, 2 * kPadding + kRowHeight * (static_cast<int>(m_rows.size()) + 1));
    const QScreen* screen = QGuiApplication::screenAt(m_about.center());
    const QRect room = screen ? screen->availableGeometry() : QRect(0, 0, 1 << 15, 1 << 15);
    QPoint at(m_about.right() + kDistance, m_about.bottom() + kDistance);
    if (at.x() + this->width() > room.right())
        at.setX(m_about.left() - kDistance - this->width());
    if (at.y() + height() > room.bottom())
        at.setY(m_about.top() - kDistance - height());
    move(std::max(room.left(), at.x()), std::max(room.top(), at.y()));
}

void HoverTip::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.lineStrong); // square: round corners are black where nothing composes windows
    painter.fillRect(rect().adjusted(1, 1, -1, -1), m_theme.raised);
    QRect row(kPadding, kPadding, width() - 2 * kPadding, kRowHeight);
    painter.setFont(m_theme.textFont(m_theme.type.body, QFont::DemiBold));
    painter.setPen(m_theme.text);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, m_head);
    for (const Row& entry : m_rows) {
        row.translate(0, kRowHeight);
        painter.setFont(m_theme.textFont(m_theme.type.small));
        painter.setPen(m_theme.text3);
        painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, entry.name);
        painter.setFont(m_theme.monoFont(m_theme.type.small));
        painter.setPen(m_theme.text);
        painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, entry.value);
    }
}

} // namespace kvatlas::ui

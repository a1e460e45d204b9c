// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/rail.h"

#include <QPainter>

namespace kvatlas::ui {

Rail::Rail(const Appearance& appearance, const QString& name, QWidget* parent)
    : QAbstractButton(parent)
    , m_appearance(appearance) {
    setObjectName(QStringLiteral("rail"));
    setText(name);
    setAccessibleName(tr("Show the %1").arg(name.toLower()));
    setToolTip(accessibleName());
    setCheckable(true);
    setFixedWidth(32);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
    setFocusPolicy(Qt::TabFocus);
    connect(&appearance, &Appearance::changed, this, qOverload<>(&QWidget::update));
}

void Rail::paintEvent(QPaintEvent*) {
    const Theme& theme = m_appearance.theme();
    QPainter painter(this);
    painter.fillRect(rect(), isChecked() ? theme.accentSoft : underMouse() ? theme.hover : theme.panel);
    painter.fillRect(QRect(0, 0, 1, height()), theme.line);
    painter.setFont(theme.textFont(theme.type.body));
    painter.setPen(theme.text2);
    painter.translate(width() / 2.0, 0);
    painter.rotate(90);
    painter.drawText(QRectF(16, -12, height() - 32, 24), Qt::AlignLeft | Qt::AlignVCenter, text());
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/message_bar.h"

#include "ui/theme/glyphs.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>

namespace kvatlas::ui {

namespace {
constexpr qint64 kReadMs = 1500; // nobody has read a sentence sooner
}

MessageBar::MessageBar(const Appearance& appearance, QWidget* parent)
    : QFrame(parent)
    , m_appearance(appearance) {
    setAccessibleName(tr("Message"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(16, 6, 8, 6);
    m_text = new QLabel(this);
    m_text->setWordWrap(true);
    m_text->setTextFormat(Qt::PlainText);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    row->addWidget(m_text, 1);
    m_close = new QToolButton(this);
    m_close->setAccessibleName(tr("Close the message"));
    m_close->setToolTip(tr("Close"));
    m_close->setFixedSize(24, 24);
    row->addWidget(m_close, 0, Qt::AlignTop);
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    connect(&appearance, &Appearance::changed, this, &MessageBar::restyle);
    restyle();
    hide();
}

void MessageBar::restyle() {
    const Theme& theme = m_appearance.theme();
    m_text->setFont(theme.textFont(theme.type.body));
    m_close->setIcon(glyphIcon(Glyph::Close, theme.text2, theme.text3));
    update();
}

void MessageBar::clearSeen() {
    if (m_kind == Kind::Note || !m_told.isValid() || m_told.elapsed() >= kReadMs)
        hide();
}

void MessageBar::tell(Kind kind, const QString& sentence) {
    m_kind = kind;
    m_told.start();
    m_text->setText(sentence);
    m_text->setAccessibleName(sentence);
    setAccessibleDescription(sentence);
    show();
    QAccessibleEvent event(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
    update();
}

void MessageBar::withdraw(const QString& sentence) {
    if (m_text->text() == sentence)
        hide();
}

QString MessageBar::sentence() const {
    return isHidden() ? QString() : m_text->text();
}

void MessageBar::paintEvent(QPaintEvent*) {
    const Theme& theme = m_appearance.theme();
    QPainter painter(this);
    painter.fillRect(rect(), theme.raised);
    painter.fillRect(QRect(0, 0, 4, height()), m_kind == Kind::Problem ? theme.bad : theme.lineStrong);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.line);
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/views/empty_note.h"
#include "ui/theme/plain_text.h"

#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

namespace kvatlas::ui {

namespace {
constexpr int kLineCharacters = 48;
}

EmptyNote::EmptyNote(const Appearance& appearance, QWidget* parent)
    : QWidget(parent)
    , m_appearance(appearance) {
    setAccessibleName(tr("Nothing to show"));
    auto* column = new QVBoxLayout(this);
    column->setSpacing(12);
    column->addStretch(1);
    m_sentence = new QLabel(this);
    m_sentence->setWordWrap(true);
    m_sentence->setTextFormat(Qt::PlainText);
    m_sentence->setAlignment(Qt::AlignCenter);
    column->addWidget(m_sentence, 0, Qt::AlignHCenter);
    m_button = new QPushButton(this);
    column->addWidget(m_button, 0, Qt::AlignHCenter);
    column->addStretch(1);
    connect(m_button, &QPushButton::clicked, this, &EmptyNote::triggered);
    connect(&appearance, &Appearance::changed, this, &EmptyNote::restyle);
    restyle();
}

void EmptyNote::restyle() {
    const Theme& theme = m_appearance.theme();
    m_sentence->setFont(theme.textFont(theme.type.body));
    QPalette palette = m_sentence->palette();
    palette.setColor(QPalette::WindowText, theme.text2);
    m_sentence->setPalette(palette);
    m_sentence->setFixedWidth(QFontMetrics(m_sentence->font()).averageCharWidth() * kLineCharacters);
}

void EmptyNote::setText(const QString& sentence, const QString& button) {
    if (m_sentence->text() == sentence && m_button->text() == labelText(button))
        return;
    m_sentence->setText(sentence);
    m_sentence->setMinimumHeight(m_sentence->heightForWidth(m_sentence->width()));
    m_sentence->setAccessibleName(sentence);
    m_button->setText(labelText(button));
    m_button->setVisible(!button.isEmpty());
}

void EmptyNote::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_appearance.theme().panel);
}

} // namespace kvatlas::ui

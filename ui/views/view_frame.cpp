// SPDX-License-Identifier: Apache-2.0
#include "ui/views/view_frame.h"

#include "ui/theme/glyphs.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>

namespace kvatlas::ui {

LegendBar::LegendBar(const Workbench& bench, QWidget* parent)
    : QWidget(parent)
    , m_bench(bench) {
    setAccessibleName(tr("Legend"));
    setFixedHeight(24);
}

void LegendBar::setEntries(std::vector<LegendEntry> entries) {
    if (entries == m_entries)
        return;
    m_entries = std::move(entries);
    QStringList words;
    for (const LegendEntry& entry : m_entries)
        words << (entry.value.isEmpty() ? entry.text : entry.text + QLatin1Char(' ') + entry.value);
    setAccessibleDescription(words.join(QLatin1String(", ")));
    update();
}

void LegendBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paintLegend(painter, rect().adjusted(12, 0, -12, -4), m_bench.theme(), m_entries);
}

ViewFrame::ViewFrame(const Workbench& bench, std::size_t laneIndex, const QString& title, const QString& key,
                     QWidget* parent)
    : QWidget(parent)
    , m_bench(bench)
    , m_laneIndex(laneIndex)
    , m_title(title)
    , m_key(key) {
    setAccessibleName(title);
    m_column = new QVBoxLayout(this);
    m_column->setContentsMargins(0, 0, 0, 0);
    m_column->setSpacing(0);
    m_headerBar = new QWidget(this);
    m_headerBar->setAccessibleName(tr("%1 header").arg(title));
    m_header = new QHBoxLayout(m_headerBar);
    m_header->setContentsMargins(12, 0, 8, 0);
    m_header->setSpacing(10);
    m_titleLabel = new QLabel(title, m_headerBar);
    m_subtitleLabel = new QLabel(m_headerBar);
    m_subtitleLabel->setTextFormat(Qt::PlainText);
    m_subtitleLabel->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_subtitleLabel->setAccessibleName(tr("About the %1").arg(title.toLower()));
    m_header->addWidget(m_titleLabel);
    m_header->addWidget(m_subtitleLabel, 1);
    m_more = new QToolButton(m_headerBar);
    m_more->setAccessibleName(tr("%1 menu").arg(title));
    m_more->setToolTip(tr("More for this view"));
    m_more->setPopupMode(QToolButton::InstantPopup);
    m_more->setFixedSize(24, 24);
    m_menu = new QMenu(m_more);
    m_menu->addAction(tr("Export picture…"), this, [this] { emit exportRequested(m_key); });
    m_more->setMenu(m_menu);
    m_header->addWidget(m_more);
    m_column->addWidget(m_headerBar);
    m_legend = new LegendBar(bench, this);
    m_column->addWidget(m_legend);
    connect(&bench.appearance, &Appearance::changed, this, &ViewFrame::restyle);
    restyle();
}

void ViewFrame::restyle() {
    const Theme& look = theme();
    m_headerBar->setFixedHeight(m_bench.appearance.heights().viewHeader);
    m_titleLabel->setFont(look.textFont(look.type.body, QFont::DemiBold));
    m_subtitleLabel->setFont(look.textFont(look.type.body - 1));
    QPalette palette = m_subtitleLabel->palette();
    palette.setColor(QPalette::WindowText, look.text3);
    m_subtitleLabel->setPalette(palette);
    m_more->setIcon(glyphIcon(Glyph::More, look.text2, look.text3));
    for (QToolButton* button : m_controls) {
        button->setFont(look.textFont(look.type.body - 1));
        button->setIcon(glyphIcon(Glyph::ChevronDown, look.text2, look.text3));
    }
    update();
}

void ViewFrame::setBody(QWidget* body) {
    m_column->insertWidget(1, body, 1);
}

void ViewFrame::setSubtitle(const QString& text) {
    if (m_subtitle == text)
        return;
    m_subtitle = text;
    m_subtitleLabel->setText(text);
}

QToolButton* ViewFrame::addControl(const QString& label, const QString& tip) {
    auto* button = new QToolButton(m_headerBar);
    button->setText(label);
    button->setAccessibleName(tip);
    button->setToolTip(tip);
    button->setPopupMode(QToolButton::InstantPopup);
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setLayoutDirection(Qt::RightToLeft); // the chevron behind the text
    m_header->insertWidget(m_header->count() - 1, button);
    m_controls.push_back(button);
    restyle();
    return button;
}

void ViewFrame::setControlText(QToolButton* button, const QString& label, const QString& value) {
    button->setText(label + QLatin1Char(' ') + value);
    button->setAccessibleName(label + QLatin1Char(' ') + value);
}

void ViewFrame::showLegend(std::vector<LegendEntry> entries) {
    m_legend->setEntries(std::move(entries));
}

void ViewFrame::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme().panel);
}

} // namespace kvatlas::ui

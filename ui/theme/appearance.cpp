// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/appearance.h"

#include "ui/theme/proxy_style.h"

#include <QApplication>

namespace kvatlas::ui {

namespace {
constexpr PartHeights kNormal{};
constexpr PartHeights kCompact{24, 40, 26, 30, 28, 34, 22, 24};
constexpr PartHeights kPresentation{26, 64, 40, 48, 44, 48, 34, 40};
} // namespace

Appearance::Appearance(QObject* parent)
    : QObject(parent) {
    m_system = QApplication::palette().color(QPalette::Window).lightnessF() < 0.5 ? ThemeName::Dark : ThemeName::Light;
    m_style = new ProxyStyle(*this);
    QApplication::setStyle(m_style); // the application owns it
    apply();
}

Appearance::~Appearance() {
    m_style->forgetAppearance();
}

void Appearance::choose(ThemeChoice choice) {
    m_choice = choice;
    apply();
}

void Appearance::toggle() {
    choose(m_theme.name == ThemeName::Light ? ThemeChoice::Dark : ThemeChoice::Light);
}

void Appearance::setPatterns(bool on) {
    m_patterns = on;
    apply();
}

void Appearance::setPresentation(bool on) {
    m_presentation = on;
    apply();
}

void Appearance::setCompact(bool compact) {
    if (m_compact == compact)
        return;
    m_compact = compact;
    apply();
}

void Appearance::apply() {
    const ThemeName name = m_choice == ThemeChoice::System     ? m_system
                           : m_choice == ThemeChoice::Light    ? ThemeName::Light
                           : m_choice == ThemeChoice::Contrast ? ThemeName::Contrast
                                                               : ThemeName::Dark;
    m_theme = loadTheme(name, m_presentation);
    if (m_patterns)
        m_theme.patterns = *m_patterns;
    m_heights = m_presentation ? kPresentation : m_compact ? kCompact : kNormal;
    QApplication::setFont(m_theme.textFont(m_theme.type.body));
    QApplication::setPalette(m_theme.palette());
    qApp->setStyleSheet(m_theme.styleSheet());
    emit changed();
}

} // namespace kvatlas::ui

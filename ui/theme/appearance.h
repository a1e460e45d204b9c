// SPDX-License-Identifier: Apache-2.0
// The application's current theme: owns the Theme value, applies style, palette, fonts and chrome sheet to the
// QApplication, and says when it changed. One per process, GUI thread.
#pragma once

#include "ui/theme/theme.h"

#include <QObject>

#include <optional>

namespace kvatlas::ui {

class ProxyStyle;

enum class ThemeChoice { System, Light, Dark, Contrast };

class Appearance : public QObject {
    Q_OBJECT
public:
    // Looks at the system's palette once, before it sets its own.
    explicit Appearance(QObject* parent = nullptr);
    ~Appearance() override;

    const Theme& theme() const { return m_theme; }
    ThemeChoice choice() const { return m_choice; }
    void choose(ThemeChoice choice);
    void toggle(); // light <-> dark
    void setPatterns(bool on);
    void setPresentation(bool on);
    bool compact() const { return m_compact; }
    void setCompact(bool compact); // below 1440 wide
    const PartHeights& heights() const { return m_heights; }

signals:
    void changed();

private:
    void apply();

    Theme m_theme;
    PartHeights m_heights;
    ThemeChoice m_choice = ThemeChoice::System;
    ThemeName m_system = ThemeName::Light;
    bool m_presentation = false, m_compact = false;
    std::optional<bool> m_patterns; // as the theme has it, until chosen
    ProxyStyle* m_style = nullptr;
};

} // namespace kvatlas::ui

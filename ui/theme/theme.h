// SPDX-License-Identifier: Apache-2.0
// The colours, sizes and fonts of the window, read from resources/tokens.json: nothing else in ui/ holds a hex value.
// Plain values, handed to painters by const reference. GUI thread (QFont and QColor are values; copies may travel).
// Errors: a token file that lacks a value is refused with the name of the value.
#pragma once

#include "core/base/result.h"

#include <QColor>
#include <QFont>
#include <QHash>
#include <QPalette>
#include <QString>

#include <array>
#include <vector>

namespace kvatlas::ui {

enum class ThemeName { Light, Dark, Contrast };
inline constexpr std::array kThemeNames{ThemeName::Light, ThemeName::Dark, ThemeName::Contrast};
QString keyOf(ThemeName name); // "light", "dark", "contrast": the key in tokens.json

// Pixels, chosen by Theme::presentation.
struct TypeScale {
    int micro = 10, small = 11, body = 13, title = 15, lesson = 14, lessonHead = 18, figure = 28;
};

// Heights of the window's parts, by size class.
struct PartHeights {
    int menu = 26, toolbar = 46, control = 28, laneHeader = 34, viewHeader = 32, dockTab = 36, row = 22, status = 28;
};

struct Theme {
    ThemeName name = ThemeName::Light;
    // How much of their colour the others keep beside a selected request.
    double dimShare() const { return name == ThemeName::Contrast ? 0.6 : 0.3; }
    bool presentation = false;
    bool patterns = false;     // marks over the hues of requests
    bool reduceMotion = false; // nothing fades

    QColor window, panel, raised, well, hover, line, lineStrong, text, text2, text3, accent, accentText, accentSoft;
    QColor good, warn, bad, select, selectHalo;
    std::array<QColor, 8> seq; // requests 1..7 in turn, then shared blocks
    struct {
        QColor active, cached, free, freeLine, reserved, evicted, copied, converted, moved, waste;
    } state;
    QHash<QString, QColor> format;
    std::array<QColor, 4> lane; // A, B, C, D
    std::array<std::vector<double>, 4> lanePen;
    std::vector<QColor> diverging;
    int radiusCell = 2, radiusControl = 4, radiusPanel = 6, radiusBadge = 3;
    int fadeMs = 120;
    TypeScale type;

    const QColor& hueOf(std::uint64_t request) const { return seq[request == 0 ? 7 : (request - 1) % 7]; }
    const QColor& shared() const { return seq[7]; }

    QFont textFont(int px, QFont::Weight weight = QFont::Normal) const;
    // `px` is the size of the text it stands beside: the mono face takes 0.94 of it, at least 10.
    QFont monoFont(int px, QFont::Weight weight = QFont::Normal) const;

    QPalette palette() const;
    QString styleSheet() const; // for the chrome only
};

Result<Theme> parseTheme(const QByteArray& tokensJson, ThemeName name, bool presentation = false);
Theme loadTheme(ThemeName name, bool presentation = false); // the built-in tokens

// WCAG 2.1 relative luminance and contrast ratio.
double luminance(const QColor& colour);
double contrastRatio(const QColor& a, const QColor& b);

QColor labelOn(const QColor& fill);                                   // black or white, whichever reads better
QColor mixed(const QColor& over, const QColor& under, double amount); // opaque result of `over` at `amount`

} // namespace kvatlas::ui

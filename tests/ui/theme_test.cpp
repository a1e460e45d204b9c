// SPDX-License-Identifier: Apache-2.0
// Colours, contrast and numbers: the checks of the look, on the theme that the program really loads.
#include "ui/theme/appearance.h"
#include "ui/theme/colour_map.h"
#include "ui/theme/number_text.h"
#include "ui/theme/theme.h"

#include <QApplication>
#include <QFile>
#include <QPainter>
#include <QPushButton>
#include <QTest>

#include <array>
#include <cmath>

namespace kvatlas::ui {

namespace {

QByteArray tokens() {
    QFile file(QStringLiteral(KVATLAS_SOURCE_DIR "/resources/tokens.json"));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

double worst(const QColor& ink, std::initializer_list<QColor> grounds) {
    double least = 21;
    for (const QColor& ground : grounds)
        least = std::min(least, contrastRatio(ink, ground));
    return least;
}

// 100 x the distance in OKLab after Machado, Oliveira, Fernandes 2009, severity 1.0.
using Matrix = std::array<std::array<double, 3>, 3>;
constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kProtan{
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeutan{
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};

std::array<double, 3> oklab(const QColor& colour, const Matrix& sight) {
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    const double in[] = {linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())};
    double out[3];
    for (std::size_t i = 0; i < 3; ++i)
        out[i] = std::clamp(sight[i][0] * in[0] + sight[i][1] * in[1] + sight[i][2] * in[2], 0.0, 1.0);
    const double l = std::cbrt(0.4122214708 * out[0] + 0.5363325363 * out[1] + 0.0514459929 * out[2]);
    const double m = std::cbrt(0.2119034982 * out[0] + 0.6806995451 * out[1] + 0.1073969566 * out[2]);
    const double s = std::cbrt(0.0883024619 * out[0] + 0.2817188376 * out[1] + 0.6299787005 * out[2]);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(const QColor& a, const QColor& b, const Matrix& sight) {
    const auto x = oklab(a, sight), y = oklab(b, sight);
    return 100 * std::sqrt(std::pow(x[0] - y[0], 2) + std::pow(x[1] - y[1], 2) + std::pow(x[2] - y[2], 2));
}

} // namespace

class ThemeTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void holdsTheColoursOfTheTokenFile() {
        const auto light = parseTheme(tokens(), ThemeName::Light), dark = parseTheme(tokens(), ThemeName::Dark);
        QVERIFY(light && dark);
        QCOMPARE(light->accent.name(), QStringLiteral("#4a4fd0"));
        QCOMPARE(dark->panel.name(), QStringLiteral("#171a1f"));
        QCOMPARE(light->seq[7].name(), QStringLiteral("#2f3c4a"));
        QCOMPARE(light->state.cached.name(), QStringLiteral("#45756f"));
        QCOMPARE(light->type.figure, 28);
        QCOMPARE(parseTheme(tokens(), ThemeName::Light, true)->type.figure, 52);
        QCOMPARE(loadTheme(ThemeName::Dark).panel, dark->panel); // the built-in file is this file
    }

    void namesTheValueThatIsMissing() {
        QByteArray broken = tokens();
        broken.replace("\"lineStrong\": \"#7C8592\"", "\"lineStrung\": \"#7C8592\"");
        const auto theme = parseTheme(broken, ThemeName::Light);
        QVERIFY(!theme);
        QVERIFY(theme.error().message.find("tokens.light.lineStrong") != std::string::npos);
        QVERIFY(!parseTheme("{", ThemeName::Light));
        QVERIFY(!parseTheme("{}", ThemeName::Light));
    }

    void textReadsOnEverySurface() {
        for (ThemeName name : kThemeNames) {
            const Theme t = loadTheme(name);
            for (const QColor& ink : {t.text, t.text2, t.text3, t.accent, t.good, t.warn, t.bad})
                QVERIFY2(worst(ink, {t.window, t.panel, t.raised, t.well, t.hover}) >= 4.5,
                         qPrintable(keyOf(name) + ' ' + ink.name()));
            QVERIFY(contrastRatio(t.accentText, t.accent) >= 4.5);
            QVERIFY(contrastRatio(t.text, t.accentSoft) >= 4.5);
        }
    }

    void marksStandOutAndLabelsReadOnThem() {
        for (ThemeName name : kThemeNames) {
            const Theme t = loadTheme(name);
            std::vector<QColor> marks(t.seq.begin(), t.seq.end());
            for (const QColor& mark : {t.state.active, t.state.cached, t.state.reserved, t.state.evicted,
                                       t.state.copied, t.state.converted, t.state.moved, t.state.waste, t.lineStrong})
                marks.push_back(mark);
            marks.insert(marks.end(), t.lane.begin(), t.lane.end());
            for (const QColor& mark : t.format)
                marks.push_back(mark);
            for (const QColor& mark : marks)
                QVERIFY2(worst(mark, {t.panel, t.well, t.window}) >= 3.0, qPrintable(keyOf(name) + ' ' + mark.name()));
            for (const QColor& fill : t.seq)
                QVERIFY2(contrastRatio(labelOn(fill), fill) >= 4.5, qPrintable(keyOf(name) + ' ' + fill.name()));
        }
    }

    void requestsStayApartForColourBlindEyes() {
        for (ThemeName name : kThemeNames) {
            const Theme t = loadTheme(name);
            for (const Matrix& sight : {kNormal, kProtan, kDeutan})
                for (std::size_t i = 0; i < 4; ++i)
                    for (std::size_t j = i + 1; j < 4; ++j)
                        QVERIFY2(distance(t.seq[i], t.seq[j], sight) >= 8.5, qPrintable(keyOf(name)));
        }
    }

    void colourMapsGrowLighterAllTheWay() {
        constexpr double kRounding = 0.002; // of colours to 8 bits
        for (const ColourTable* table : {&viridis(), &cividis()})
            for (std::size_t i = 1; i < table->size(); ++i)
                QVERIFY(oklab(QColor((*table)[i]), kNormal)[0] >
                        oklab(QColor((*table)[i - 1]), kNormal)[0] - kRounding);
        QCOMPARE(QColor(viridis()[0]).name(), QStringLiteral("#440154"));
        QCOMPARE(QColor(viridis()[255]).name(), QStringLiteral("#fde725"));
    }

    void requestsTakeTheirHueInTurn() {
        const Theme t = loadTheme(ThemeName::Light);
        QCOMPARE(t.hueOf(1), t.seq[0]);
        QCOMPARE(t.hueOf(7), t.seq[6]);
        QCOMPARE(t.hueOf(8), t.seq[0]);
        QCOMPARE(t.hueOf(0), t.shared());
    }

    void monoTextIsSmallerButNeverBelowTenPixels() {
        const Theme t = loadTheme(ThemeName::Light);
        QCOMPARE(t.monoFont(10).pixelSize(), 10);
        QCOMPARE(t.monoFont(13).pixelSize(), 12);
        QCOMPARE(t.monoFont(28).pixelSize(), 26);
    }

    void chromeSheetStaysShortAndHoldsNoPlaceholder() {
        for (ThemeName name : kThemeNames) {
            const QString sheet = loadTheme(name).styleSheet();
            QVERIFY(sheet.count('\n') < 60);
            QVERIFY(!sheet.contains('@'));
        }
    }

    void appliesPaletteAndControlHeights() {
        Appearance appearance;
        appearance.choose(ThemeChoice::Dark);
        QCOMPARE(QApplication::palette().color(QPalette::Base).name(), QStringLiteral("#171a1f"));
        QPushButton button("Run");
        QCOMPARE(button.sizeHint().height(), 28);
        appearance.setCompact(true);
        QCOMPARE(button.sizeHint().height(), 26);
        appearance.toggle();
        QCOMPARE(appearance.theme().name, ThemeName::Light);
    }

    void primaryButtonIsTheAccent() {
        Appearance appearance;
        appearance.choose(ThemeChoice::Light);
        QPushButton button("Run");
        button.setProperty("primary", true);
        button.resize(120, 32);
        const QImage picture = button.grab().toImage();
        QCOMPARE(picture.pixelColor(12, 6).name(), appearance.theme().accent.name());
    }
};

} // namespace kvatlas::ui

QTEST_MAIN(kvatlas::ui::ThemeTest)
#include "theme_test.moc"

// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/theme.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <cassert>
#include <cmath>

static void initThemeResource() {
    Q_INIT_RESOURCE(kvatlas_ui);
}

namespace kvatlas::ui {

namespace {

// Reads named values and remembers the first one that is missing.
class TokenReader {
public:
    explicit TokenReader(QJsonObject object, QString path)
        : m_object(std::move(object))
        , m_path(std::move(path)) {}

    QColor colour(const char* key) {
        const QColor value(m_object.value(QLatin1String(key)).toString());
        if (!value.isValid())
            miss(key);
        return value;
    }
    int number(const char* key) {
        const QJsonValue value = m_object.value(QLatin1String(key));
        if (!value.isDouble())
            miss(key);
        return static_cast<int>(std::lround(value.toDouble()));
    }
    std::vector<QColor> colours(const char* key, int count) {
        std::vector<QColor> out;
        const QJsonArray values = m_object.value(QLatin1String(key)).toArray();
        for (const auto& value : values)
            out.emplace_back(value.toString());
        if (static_cast<int>(out.size()) != count ||
            std::any_of(out.begin(), out.end(), [](const QColor& c) { return !c.isValid(); })) {
            miss(key);
            out.resize(static_cast<std::size_t>(count));
        }
        return out;
    }
    TokenReader child(const char* key) {
        TokenReader reader(m_object.value(QLatin1String(key)).toObject(), m_path + '.' + key);
        if (reader.m_object.isEmpty())
            miss(key);
        return reader;
    }
    const QJsonObject& object() const { return m_object; }
    void take(const TokenReader& reader) {
        if (m_missing.isEmpty())
            m_missing = reader.m_missing;
    }
    const QString& missing() const { return m_missing; }

private:
    void miss(const char* key) {
        if (m_missing.isEmpty())
            m_missing = m_path + '.' + key;
    }
    QJsonObject m_object;
    QString m_path, m_missing;
};

void readColours(TokenReader& from, Theme& theme) {
    const std::pair<const char*, QColor*> flat[] = {{"window", &theme.window},
                                                    {"panel", &theme.panel},
                                                    {"raised", &theme.raised},
                                                    {"well", &theme.well},
                                                    {"hover", &theme.hover},
                                                    {"line", &theme.line},
                                                    {"lineStrong", &theme.lineStrong},
                                                    {"text", &theme.text},
                                                    {"text2", &theme.text2},
                                                    {"text3", &theme.text3},
                                                    {"accent", &theme.accent},
                                                    {"accentText", &theme.accentText},
                                                    {"accentSoft", &theme.accentSoft},
                                                    {"good", &theme.good},
                                                    {"warn", &theme.warn},
                                                    {"bad", &theme.bad},
                                                    {"select", &theme.select},
                                                    {"selectHalo", &theme.selectHalo}};
    for (const auto& [key, target] : flat)
        *target = from.colour(key);
    const std::vector<QColor> seq = from.colours("seq", 8);
    std::copy(seq.begin(), seq.end(), theme.seq.begin());
    theme.diverging = from.colours("diverging", 7);

    TokenReader state = from.child("state");
    auto& s = theme.state;
    const std::pair<const char*, QColor*> states[] = {
        {"active", &s.active},     {"cached", &s.cached},   {"free", &s.free},     {"freeLine", &s.freeLine},
        {"reserved", &s.reserved}, {"evicted", &s.evicted}, {"copied", &s.copied}, {"converted", &s.converted},
        {"moved", &s.moved},       {"waste", &s.waste}};
    for (const auto& [key, target] : states)
        *target = state.colour(key);
    from.take(state);

    TokenReader format = from.child("format");
    for (const QString& key : format.object().keys())
        theme.format.insert(key, format.colour(key.toLatin1().constData()));
    from.take(format);

    TokenReader lane = from.child("lane");
    const char* letters[] = {"A", "B", "C", "D"};
    for (std::size_t i = 0; i < 4; ++i)
        theme.lane[i] = lane.colour(letters[i]);
    from.take(lane);
}

} // namespace

QString keyOf(ThemeName name) {
    switch (name) {
    case ThemeName::Light:
        return QStringLiteral("light");
    case ThemeName::Dark:
        return QStringLiteral("dark");
    case ThemeName::Contrast:
        return QStringLiteral("contrast");
    }
    return {};
}

Result<Theme> parseTheme(const QByteArray& tokensJson, ThemeName name, bool presentation) {
    QJsonParseError problem;
    const QJsonDocument document = QJsonDocument::fromJson(tokensJson, &problem);
    if (!document.isObject())
        return makeError(ErrorKind::Refused, "The theme file is not JSON ({} at byte {}); restore tokens.json.",
                         problem.errorString().toStdString(), problem.offset);
    TokenReader root(document.object(), QStringLiteral("tokens"));
    Theme theme;
    theme.name = name;
    theme.presentation = presentation;
    theme.patterns = name == ThemeName::Contrast;

    const QByteArray key = keyOf(name).toLatin1();
    TokenReader colours = root.child(key.constData());
    readColours(colours, theme);
    root.take(colours);

    TokenReader radius = root.child("radius");
    theme.radiusCell = radius.number("cell");
    theme.radiusControl = radius.number("control");
    theme.radiusPanel = radius.number("panel");
    theme.radiusBadge = radius.number("badge");
    root.take(radius);

    TokenReader types = root.child("type");
    TokenReader type = types.child(presentation ? "presentation" : "normal");
    theme.type = {type.number("micro"),  type.number("small"),      type.number("body"),  type.number("title"),
                  type.number("lesson"), type.number("lessonHead"), type.number("figure")};
    root.take(types);
    root.take(type);

    const char* letters[] = {"A", "B", "C", "D"};
    for (std::size_t i = 0; i < 4; ++i) {
        const QJsonArray dashes = root.object().value("lanePen").toObject().value(letters[i]).toArray();
        for (const auto& value : dashes)
            theme.lanePen[i].push_back(value.toDouble());
    }
    TokenReader motion = root.child("motionMs");
    theme.fadeMs = motion.number("fade");
    root.take(motion);

    if (!root.missing().isEmpty())
        return makeError(ErrorKind::Refused, "The theme file lacks {}; restore tokens.json.",
                         root.missing().toStdString());
    return theme;
}

Theme loadTheme(ThemeName name, bool presentation) {
    initThemeResource();
    QFile file(QStringLiteral(":/kvatlas/tokens.json"));
    const bool opened = file.open(QIODevice::ReadOnly);
    assert(opened);
    static_cast<void>(opened);
    Result<Theme> theme = parseTheme(file.readAll(), name, presentation);
    assert(theme);
    return std::move(*theme);
}

QFont Theme::textFont(int px, QFont::Weight weight) const {
    QFont font;
    font.setFamilies({QStringLiteral("Inter"), QStringLiteral("Segoe UI"), QStringLiteral(".AppleSystemUIFont"),
                      QStringLiteral("Noto Sans"), QStringLiteral("DejaVu Sans")});
    font.setPixelSize(px);
    font.setWeight(weight);
    font.setStyleStrategy(QFont::StyleStrategy(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
    return font;
}

QFont Theme::monoFont(int px, QFont::Weight weight) const {
    QFont font;
    font.setFamilies({QStringLiteral("JetBrains Mono"), QStringLiteral("Cascadia Mono"), QStringLiteral("Menlo"),
                      QStringLiteral("DejaVu Sans Mono")});
    font.setStyleHint(QFont::Monospace);
    font.setPixelSize(std::max(10, static_cast<int>(std::lround(0.94 * px))));
    font.setWeight(weight);
    font.setStyleStrategy(
        QFont::StyleStrategy(QFont::PreferAntialias | QFont::NoSubpixelAntialias | QFont::PreferNoShaping));
    return font;
}

QPalette Theme::palette() const {
    QPalette palette;
    const std::pair<QPalette::ColorRole, QColor> roles[] = {{QPalette::Window, window},
                                                            {QPalette::Base, panel},
                                                            {QPalette::AlternateBase, raised},
                                                            {QPalette::Button, raised},
                                                            {QPalette::Text, text},
                                                            {QPalette::WindowText, text},
                                                            {QPalette::ButtonText, text},
                                                            {QPalette::BrightText, bad},
                                                            {QPalette::PlaceholderText, text3},
                                                            {QPalette::Highlight, accent},
                                                            {QPalette::HighlightedText, accentText},
                                                            {QPalette::Link, accent},
                                                            {QPalette::LinkVisited, accent},
                                                            {QPalette::ToolTipBase, raised},
                                                            {QPalette::ToolTipText, text},
                                                            {QPalette::Mid, line},
                                                            {QPalette::Midlight, line},
                                                            {QPalette::Dark, lineStrong},
                                                            {QPalette::Shadow, lineStrong},
                                                            {QPalette::Light, raised}};
    for (const auto& [role, colour] : roles)
        palette.setColor(role, colour);
    for (QPalette::ColorRole role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, text3);
    palette.setColor(QPalette::Disabled, QPalette::Highlight, line);
    palette.setColor(QPalette::Disabled, QPalette::HighlightedText, text3);
    return palette;
}

QString Theme::styleSheet() const {
    QString sheet = QStringLiteral(R"(QMenuBar { background: @window; color: @text2; border: 0; padding: 0 4px; }
QMenuBar::item { padding: 4px 8px; background: transparent; }
QMenuBar::item:selected { background: @hover; color: @text; }
QMenu { background: @raised; color: @text; border: 1px solid @lineStrong; padding: 4px 0; }
QMenu::item { padding: 5px 24px 5px 24px; }
QMenu::item:selected { background: @accentSoft; color: @text; }
QMenu::item:disabled { color: @text3; }
QMenu::separator { height: 1px; background: @line; margin: 4px 0; }
QToolButton { background: transparent; border: 1px solid transparent; border-radius: 4px; padding: 3px 6px; color: @text; }
QToolButton:hover { background: @hover; }
QToolButton:pressed, QToolButton:checked { background: @accentSoft; }
QToolButton:disabled { color: @text3; }
QToolButton::menu-indicator { image: none; width: 0; }
QToolButton#primary { background: @accent; color: @accentText; }
QToolButton#primary:disabled { background: @line; }
QStatusBar { background: @raised; color: @text2; border-top: 1px solid @line; }
QStatusBar::item { border: 0; }
QSplitter::handle { background: @line; }
QTabBar { background: @panel; }
QTabBar::tab { background: transparent; color: @text3; padding: 9px 2px 7px 2px; margin: 0 10px 0 10px; border: 0; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: @text; border-bottom: 2px solid @accent; }
QTabBar::tab:hover { color: @text; }
QHeaderView::section { background: @panel; color: @text3; border: 0; border-bottom: 1px solid @line; padding: 3px 6px; font-size: @smallpx; }
QScrollBar { background: transparent; }
QScrollBar:vertical { width: 8px; }
QScrollBar:horizontal { height: 8px; }
QScrollBar::handle { background: @lineStrong; border-radius: 2px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 24px; }
QScrollBar::handle:horizontal { min-width: 24px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
)");
    // Longest names first: @lineStrong holds @line.
    const std::pair<const char*, QColor> names[] = {{"@accentText", accentText},
                                                    {"@accentSoft", accentSoft},
                                                    {"@lineStrong", lineStrong},
                                                    {"@accent", accent},
                                                    {"@window", window},
                                                    {"@raised", raised},
                                                    {"@panel", panel},
                                                    {"@hover", hover},
                                                    {"@text2", text2},
                                                    {"@text3", text3},
                                                    {"@text", text},
                                                    {"@line", line}};
    for (const auto& [key, colour] : names)
        sheet.replace(QLatin1String(key), colour.name());
    sheet.replace(QLatin1String("@small"), QString::number(type.small));
    return sheet;
}

double luminance(const QColor& colour) {
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

double contrastRatio(const QColor& a, const QColor& b) {
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QColor labelOn(const QColor& fill) {
    return contrastRatio(fill, Qt::white) >= 4.5 ? QColor(Qt::white) : QColor(Qt::black);
}

QColor mixed(const QColor& over, const QColor& under, double amount) {
    const auto mix = [amount](int a, int b) { return static_cast<int>(std::lround(a * amount + b * (1 - amount))); };
    return {mix(over.red(), under.red()), mix(over.green(), under.green()), mix(over.blue(), under.blue())};
}

} // namespace kvatlas::ui

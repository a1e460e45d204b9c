// SPDX-License-Identifier: Apache-2.0
// Fusion with flat controls from the theme: push button, combo box, edit, spin box, check, radio, arrows, focus frame.
// GUI thread; the application owns it.
#pragma once

#include <QProxyStyle>

namespace kvatlas::ui {

class Appearance;
struct Theme;

class ProxyStyle final : public QProxyStyle {
    Q_OBJECT
public:
    explicit ProxyStyle(const Appearance& appearance);
    void forgetAppearance() { m_appearance = nullptr; } // when it goes before the application does

    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override;
    void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
    void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                            const QWidget* widget) const override;
    QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                         const QWidget* widget) const override;
    int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override;
    QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                           const QWidget* widget) const override;

private:
    const Appearance* m_appearance;
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/proxy_style.h"

#include "ui/theme/appearance.h"
#include "ui/theme/glyphs.h"

#include <QPainter>
#include <QStyleFactory>
#include <QStyleOption>
#include <QWidget>

namespace kvatlas::ui {

namespace {

constexpr int kTooltipDelayMs = 400;

struct Look {
    QColor fill, border;
};

// A button that is the one main action carries the property "primary".
bool isPrimary(const QWidget* widget) {
    return widget && widget->property("primary").toBool();
}

Look controlLook(const Theme& theme, QStyle::State state, bool field) {
    if (!(state & QStyle::State_Enabled))
        return {theme.raised, theme.line};
    if (!field && (state & QStyle::State_Sunken))
        return {theme.accentSoft, theme.lineStrong};
    if (!field && (state & QStyle::State_MouseOver))
        return {theme.hover, theme.lineStrong};
    return {field ? theme.panel : theme.raised, theme.lineStrong};
}

void drawBox(QPainter& painter, const QRect& rect, const Look& look, double radius) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(look.border, 1));
    painter.setBrush(look.fill);
    painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    painter.restore();
}

void drawIndicator(QPainter& painter, const Theme& theme, const QStyleOption& option, bool round) {
    const bool on = option.state & QStyle::State_On;
    const bool enabled = option.state & QStyle::State_Enabled;
    const int side = std::min({option.rect.width(), option.rect.height(), 16});
    QRectF box(0, 0, side - 1, side - 1);
    box.moveCenter(QRectF(option.rect).center());
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const QColor edge = !enabled ? theme.line : on ? theme.accent : theme.lineStrong;
    painter.setPen(QPen(edge, 1));
    if (round) {
        painter.setBrush(theme.panel);
        painter.drawEllipse(box);
        if (on) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(enabled ? theme.accent : theme.text3);
            painter.drawEllipse(box.center(), side * 0.25, side * 0.25);
        }
    } else {
        painter.setBrush(on && enabled ? theme.accent : theme.panel);
        painter.drawRoundedRect(box, 3, 3);
        if (on)
            drawGlyph(painter, Glyph::Check, box, enabled ? theme.accentText : theme.text3);
    }
    painter.restore();
}

} // namespace

ProxyStyle::ProxyStyle(const Appearance& appearance)
    : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion")))
    , m_appearance(&appearance) {}

void ProxyStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                               const QWidget* widget) const {
    if (!m_appearance)
        return QProxyStyle::drawPrimitive(element, option, painter, widget);
    const Theme& theme = m_appearance->theme();
    switch (element) {
    case PE_PanelButtonCommand: {
        Look look = controlLook(theme, option->state, false);
        if (isPrimary(widget) && (option->state & State_Enabled)) {
            const bool lit = option->state & (State_MouseOver | State_Sunken);
            look.fill = lit ? mixed(theme.accent, theme.text, 0.88) : theme.accent;
            look.border = look.fill;
        }
        drawBox(*painter, option->rect, look, theme.radiusControl);
        return;
    }
    case PE_PanelLineEdit:
    case PE_FrameLineEdit:
        if (widget && qobject_cast<const QWidget*>(widget->parent()) && widget->parent()->inherits("QAbstractSpinBox"))
            return;
        drawBox(*painter, option->rect, controlLook(theme, option->state, true), theme.radiusControl);
        return;
    case PE_Frame:
        if (widget && widget->property("field").toBool())
            drawBox(*painter, option->rect, controlLook(theme, option->state, true), theme.radiusControl);
        return;
    case PE_IndicatorCheckBox:
        drawIndicator(*painter, theme, *option, false);
        return;
    case PE_IndicatorRadioButton:
        drawIndicator(*painter, theme, *option, true);
        return;
    case PE_IndicatorArrowDown:
        drawGlyph(*painter, Glyph::ChevronDown, option->rect, theme.text2);
        return;
    case PE_IndicatorArrowUp:
        drawGlyph(*painter, Glyph::ChevronUp, option->rect, theme.text2);
        return;
    case PE_PanelScrollAreaCorner:
        painter->fillRect(option->rect, theme.panel);
        return;
    case PE_FrameFocusRect:
        return; // the focus frame shows it
    default:
        QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
}

void ProxyStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                             const QWidget* widget) const {
    if (!m_appearance)
        return QProxyStyle::drawControl(element, option, painter, widget);
    const Theme& theme = m_appearance->theme();
    if (element == CE_FocusFrame) {
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(theme.accent, 2));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(option->rect).adjusted(1, 1, -1, -1), 6, 6);
        painter->restore();
        return;
    }
    if (element == CE_PushButtonLabel) {
        if (const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option)) {
            QStyleOptionButton copy = *button;
            if (isPrimary(widget) && (option->state & State_Enabled))
                copy.palette.setColor(QPalette::ButtonText, theme.accentText);
            QProxyStyle::drawControl(element, &copy, painter, widget);
            return;
        }
    }
    if (element == CE_ItemViewItem) { // a selected row is soft, so that its hues stay readable
        if (const auto* item = qstyleoption_cast<const QStyleOptionViewItem*>(option)) {
            QStyleOptionViewItem copy = *item;
            copy.palette.setColor(QPalette::Highlight, theme.accentSoft);
            copy.palette.setColor(QPalette::HighlightedText, theme.text);
            QProxyStyle::drawControl(element, &copy, painter, widget);
            return;
        }
    }
    QProxyStyle::drawControl(element, option, painter, widget);
}

void ProxyStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                    const QWidget* widget) const {
    if (!m_appearance)
        return QProxyStyle::drawComplexControl(control, option, painter, widget);
    const Theme& theme = m_appearance->theme();
    const bool enabled = option->state & State_Enabled;
    if (control == CC_ComboBox) {
        drawBox(*painter, option->rect, controlLook(theme, option->state, false), theme.radiusControl);
        QRect arrow = option->rect;
        arrow.setLeft(arrow.right() - 23);
        QRectF box(0, 0, 16, 16);
        box.moveCenter(QRectF(arrow).center());
        drawGlyph(*painter, Glyph::ChevronDown, box, enabled ? theme.text2 : theme.text3);
        return;
    }
    if (control == CC_SpinBox) {
        drawBox(*painter, option->rect, controlLook(theme, option->state, true), theme.radiusControl);
        for (const auto& [part, glyph] :
             {std::pair{SC_SpinBoxUp, Glyph::ChevronUp}, std::pair{SC_SpinBoxDown, Glyph::ChevronDown}}) {
            const QRect rect = subControlRect(CC_SpinBox, option, part, widget);
            QRectF box(0, 0, 12, 12);
            box.moveCenter(QRectF(rect).center());
            drawGlyph(*painter, glyph, box, enabled ? theme.text2 : theme.text3);
        }
        return;
    }
    QProxyStyle::drawComplexControl(control, option, painter, widget);
}

QRect ProxyStyle::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                                 const QWidget* widget) const {
    if (control == CC_ComboBox && part == SC_ComboBoxEditField)
        return option->rect.adjusted(8, 1, -26, -1);
    if (control == CC_SpinBox && part == SC_SpinBoxEditField)
        return option->rect.adjusted(6, 1, -22, -1);
    return QProxyStyle::subControlRect(control, option, part, widget);
}

int ProxyStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
    switch (metric) {
    case PM_FocusFrameHMargin:
    case PM_FocusFrameVMargin:
        return 4;
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
    case PM_ExclusiveIndicatorWidth:
    case PM_ExclusiveIndicatorHeight:
        return 16;
    case PM_DefaultFrameWidth:
        return widget && widget->property("field").toBool() ? 5 : QProxyStyle::pixelMetric(metric, option, widget);
    case PM_ButtonIconSize:
    case PM_SmallIconSize:
        return 16;
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical:
        return 0;
    default:
        return QProxyStyle::pixelMetric(metric, option, widget);
    }
}

int ProxyStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                          QStyleHintReturn* data) const {
    switch (hint) {
    case SH_ToolTip_WakeUpDelay:
        return kTooltipDelayMs;
    case SH_FocusFrame_AboveWidget: // else its next parent cuts it
        return 1;
    case SH_ComboBox_Popup:
    case SH_UnderlineShortcut:
    case SH_EtchDisabledText:
    case SH_DitherDisabledText:
        return 0;
    default:
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
}

QSize ProxyStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                   const QWidget* widget) const {
    QSize result = QProxyStyle::sizeFromContents(type, option, size, widget);
    if (!m_appearance)
        return result;
    const int height = m_appearance->heights().control;
    switch (type) {
    case CT_PushButton:
        result += QSize(16, 0);
        result.setHeight(isPrimary(widget) ? height + 4 : height);
        break;
    case CT_ComboBox:
        result += QSize(16, 0);
        [[fallthrough]];
    case CT_LineEdit:
    case CT_SpinBox:
        result.setHeight(height);
        break;
    case CT_ItemViewItem: // of a combo box's list: a target to click
        if (widget && widget->inherits("QComboBoxListView"))
            result.setHeight(std::max(result.height(), 24));
        break;
    case CT_CheckBox:
    case CT_RadioButton:
        result.setHeight(std::max(result.height(), 24));
        break;
    default:
        break;
    }
    return result;
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Names that come from a file, shown as they are: Qt reads markup in tooltips and mnemonics in buttons and menus.
#pragma once

#include <QString>
#include <QTextDocument>

namespace kvatlas::ui {

// For buttons, menus and tabs: an ampersand stays one.
inline QString labelText(QString text) {
    return text.replace(QLatin1Char('&'), QLatin1String("&&"));
}

// For tooltips: no markup.
inline QString tipText(const QString& text) {
    return Qt::mightBeRichText(text)
               ? QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(text.toHtmlEscaped())
               : text;
}

} // namespace kvatlas::ui

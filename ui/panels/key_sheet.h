// SPDX-License-Identifier: Apache-2.0
// The list of keys that `?` shows; not modal. GUI thread.
#pragma once

#include "ui/theme/appearance.h"

#include <QDialog>

namespace kvatlas::ui {

class KeySheet : public QDialog {
    Q_OBJECT
public:
    KeySheet(const Appearance& appearance, QWidget* parent);
    static QList<std::pair<QString, QString>> keys(); // key, what it does
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// A widget that is painted in the theme's panel colour. Painted, not set as a palette: a style sheet on the application
// gives a widget its former palette back when it moves to another parent. GUI thread.
#pragma once

#include "ui/theme/appearance.h"

#include <QPainter>
#include <QWidget>

namespace kvatlas::ui {

class Surface : public QWidget {
public:
    Surface(const Appearance& appearance, QWidget* parent)
        : QWidget(parent)
        , m_appearance(appearance) {
        connect(&appearance, &Appearance::changed, this, qOverload<>(&QWidget::update));
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.fillRect(rect(), m_appearance.theme().panel);
    }

private:
    const Appearance& m_appearance;
};

} // namespace kvatlas::ui

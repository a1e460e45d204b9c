// SPDX-License-Identifier: Apache-2.0
// The 32 px strip that stands for the right panel in a narrow window; a click opens it over the centre. GUI thread.
#pragma once

#include "ui/theme/appearance.h"

#include <QAbstractButton>

namespace kvatlas::ui {

class Rail : public QAbstractButton {
    Q_OBJECT
public:
    Rail(const Appearance& appearance, const QString& name, QWidget* parent = nullptr);
    void setOn(bool on) { setChecked(on); }
    QSize sizeHint() const override { return {32, 120}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Appearance& m_appearance;
};

} // namespace kvatlas::ui

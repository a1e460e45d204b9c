// SPDX-License-Identifier: Apache-2.0
// What a view shows when it has nothing to show: one sentence in the middle and one button. GUI thread.
#pragma once

#include "ui/theme/appearance.h"

#include <QWidget>

class QLabel;
class QPushButton;

namespace kvatlas::ui {

class EmptyNote : public QWidget {
    Q_OBJECT
public:
    EmptyNote(const Appearance& appearance, QWidget* parent);
    void setText(const QString& sentence, const QString& button); // an empty button text: no button

signals:
    void triggered();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void restyle();
    const Appearance& m_appearance;
    QLabel* m_sentence;
    QPushButton* m_button;
};

} // namespace kvatlas::ui

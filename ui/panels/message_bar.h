// SPDX-License-Identifier: Apache-2.0
// One sentence above the views that stays until it is closed or replaced; never modal. GUI thread.
#pragma once

#include "ui/theme/appearance.h"

#include <QElapsedTimer>
#include <QFrame>

class QLabel;
class QToolButton;

namespace kvatlas::ui {

class MessageBar : public QFrame {
    Q_OBJECT
public:
    enum class Kind { Note, Problem };
    MessageBar(const Appearance& appearance, QWidget* parent = nullptr);
    void tell(Kind kind, const QString& sentence);
    void clearSeen();                       // hides a note, and a problem that could be read
    void withdraw(const QString& sentence); // hides it where it is the one shown
    QString sentence() const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void restyle();
    const Appearance& m_appearance;
    Kind m_kind = Kind::Note;
    QElapsedTimer m_told;
    QLabel* m_text;
    QToolButton* m_close;
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/key_sheet.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>

namespace kvatlas::ui {

QList<std::pair<QString, QString>> KeySheet::keys() {
    return {{tr("Space"), tr("play or pause")},
            {tr("← →"), tr("one step back or forward; in a view: move between cells")},
            {tr("Shift ← →"), tr("ten steps")},
            {tr("Home, End"), tr("first step, newest step")},
            {tr("[ ]"), tr("slower, faster")},
            {tr("F"), tr("follow the newest step")},
            {tr("1 2 3"), tr("memory map, block tables, timeline")},
            {tr("Tab, F6"), tr("next control, next pane")},
            {tr("Enter, Esc"), tr("inspect, clear the selection")},
            {tr("+ − 0"), tr("zoom the memory map, fit")},
            {tr("O"), tr("colour by owner, state, age, references")},
            {tr("I"), tr("dim the other requests, or not")},
            {tr("T"), tr("light or dark")},
            {tr("F11"), tr("full screen")},
            {tr("Ctrl+R"), tr("run the scenario")},
            {tr("Ctrl+O, Ctrl+E"), tr("open a session, export a picture")},
            {tr("?, F1"), tr("this list")}};
}

KeySheet::KeySheet(const Appearance& appearance, QWidget* parent)
    : QDialog(parent) {
    const Theme& theme = appearance.theme();
    setWindowTitle(tr("Keys"));
    setAccessibleName(tr("Keys"));
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(24, 20, 24, 16);
    grid->setHorizontalSpacing(24);
    grid->setVerticalSpacing(6);
    int row = 0;
    for (const auto& [key, what] : keys()) {
        auto* keyLabel = new QLabel(key, this);
        keyLabel->setFont(theme.monoFont(theme.type.body, QFont::Medium));
        grid->addWidget(keyLabel, row, 0);
        grid->addWidget(new QLabel(what, this), row++, 1);
    }
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    buttons->setAccessibleName(tr("Close the list"));
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
    grid->addWidget(buttons, row, 0, 1, 2);
}

} // namespace kvatlas::ui

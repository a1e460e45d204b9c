// SPDX-License-Identifier: Apache-2.0
// The window program's command line. Parsed before QApplication, since an export decides which platform is used.
// Errors: Usage, one sentence.
#pragma once

#include "core/base/ids.h"
#include "core/base/result.h"
#include "ui/theme/appearance.h"

#include <QSize>
#include <QString>
#include <QStringList>

#include <optional>

namespace kvatlas::app {

struct WindowOptions {
    QStringList files;
    QString model, scenario, strategy;
    std::optional<ui::ThemeChoice> theme;
    std::optional<QSize> size; // none: what fits the screen; of a picture 1600x1000
    bool run = false;
    QString exportView, out; // --export VIEW --out FILE
    std::optional<Step> step;
    QString message; // --help or --version: to print and leave
};

Result<WindowOptions> parseOptions(const QStringList& arguments);

} // namespace kvatlas::app

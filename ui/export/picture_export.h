// SPDX-License-Identifier: Apache-2.0
// Writes a picture to a PNG or SVG file: title, body, legend and a footer of model, strategy and step. With and without
// a display. GUI thread. Errors: a suffix that is neither, a file that cannot be written; one sentence each.
#pragma once

#include "core/base/result.h"
#include "ui/theme/theme.h"
#include "ui/views/picture.h"

#include <QSize>
#include <QString>

namespace kvatlas::ui {

Result<void> exportPicture(Picture& picture, const Theme& theme, const QString& footer, QSize size, const QString& file,
                           double pixelRatio = 2);
Result<void> exportWidget(QWidget& widget, const QString& file, double pixelRatio = 1);

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
#include "ui/export/picture_export.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QImage>
#include <QSaveFile>
#include <QSvgGenerator>
#include <QWidget>

#include <functional>

namespace kvatlas::ui {

namespace {

constexpr int kHeader = 40, kLegend = 28, kFooter = 28, kSide = 12;

using Paint = std::function<void(QPainter&, bool vector)>;

// Written whole or not at all.
Result<void> writeFile(const QString& file, QSize size, double pixelRatio, const QString& title, const Paint& paint) {
    const QString suffix = QFileInfo(file).suffix().toLower();
    QSaveFile out(file);
    const auto failed = [&]() -> Result<void> {
        return makeError(ErrorKind::Failed, "The picture cannot be written to {}: {}; choose another file.",
                         file.toStdString(), out.errorString().toStdString());
    };
    if (suffix != QLatin1String("png") && suffix != QLatin1String("svg"))
        return makeError(ErrorKind::Usage, "{} ends neither in .png nor in .svg; choose one of the two.",
                         file.toStdString());
    if (!out.open(QIODevice::WriteOnly))
        return failed();
    if (suffix == QLatin1String("png")) {
        QImage image(size * pixelRatio, QImage::Format_RGB32);
        image.setDevicePixelRatio(pixelRatio);
        QPainter painter(&image);
        paint(painter, false);
        painter.end();
        if (!image.save(&out, "PNG"))
            return failed();
    } else {
        QSvgGenerator generator;
        generator.setOutputDevice(&out);
        generator.setResolution(96);
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(), size));
        generator.setTitle(title);
        generator.setDescription(QStringLiteral("KVAtlas"));
        QPainter painter(&generator);
        paint(painter, true);
        painter.end();
    }
    if (!out.commit())
        return failed();
    return {};
}

} // namespace

Result<void> exportPicture(Picture& picture, const Theme& theme, const QString& footer, QSize size, const QString& file,
                           double pixelRatio) {
    return writeFile(file, size, pixelRatio, picture.pictureTitle(), [&](QPainter& painter, bool vector) {
        painter.fillRect(QRect(QPoint(), size), theme.panel);
        const QFont title = theme.textFont(theme.type.title, QFont::DemiBold),
                    words = theme.textFont(theme.type.body - 1);
        painter.setFont(title);
        painter.setPen(theme.text);
        const int titleWidth = QFontMetrics(title).horizontalAdvance(picture.pictureTitle());
        painter.drawText(QRect(kSide, 0, titleWidth + 4, kHeader), Qt::AlignVCenter, picture.pictureTitle());
        painter.setFont(words);
        painter.setPen(theme.text3);
        painter.drawText(QRect(kSide + titleWidth + 12, 0, size.width(), kHeader), Qt::AlignVCenter,
                         picture.pictureSubtitle());
        picture.paintPicture(painter, QRect(0, kHeader, size.width(), size.height() - kHeader - kLegend - kFooter),
                             vector);
        paintLegend(painter, QRect(kSide, size.height() - kFooter - kLegend, size.width() - 2 * kSide, kLegend), theme,
                    picture.legend(), vector);
        painter.fillRect(QRect(0, size.height() - kFooter, size.width(), 1), theme.line);
        painter.setFont(words);
        painter.setPen(theme.text3);
        painter.drawText(QRect(kSide, size.height() - kFooter, size.width() - 2 * kSide, kFooter), Qt::AlignVCenter,
                         footer);
    });
}

Result<void> exportWidget(QWidget& widget, const QString& file, double pixelRatio) {
    return writeFile(file, widget.size(), pixelRatio, widget.windowTitle(),
                     [&](QPainter& painter, bool) { widget.render(&painter); });
}

} // namespace kvatlas::ui

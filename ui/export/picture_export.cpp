// SPDX-License-Identifier: Apache-2.0
#include "ui/export/picture_export.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QImage>
#include <QSaveFile>
#include <QSvgGenerator>
#include <QWidget>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>

namespace kvatlas::ui {

namespace {

constexpr int kHeader = 40, kLegend = 28, kFooter = 28, kSide = 12;

using Paint = std::function<void(QPainter&, bool vector)>;

// Written whole or not at all.
Result<void> writeFile(const QString& file, QSize size, double pixelRatio, const QString& title, const Paint& paint) {
    const QString suffix = QFileInfo(file).suffix().toLower();
    QSaveFile out(file);
    const auto failed = [&]() -> Result<void> {
        // QSaveFile calls a full disk an unknown error.
        const std::string why = errno != 0 ? std::generic_category().message(errno) : out.errorString().toStdString();
        return makeError(ErrorKind::Failed, "The picture cannot be written to {}: {}; choose another file.",
                         file.toStdString(), why);
    };
    if (suffix != QLatin1String("png") && suffix != QLatin1String("svg"))
        return makeError(ErrorKind::Usage, "{} ends neither in .png nor in .svg; choose one of the two.",
                         file.toStdString());
    errno = 0;
    if (!out.open(QIODevice::WriteOnly))
        return failed();
    QBuffer picture; // the picture formats lose the reason when the file cannot be written
    picture.open(QIODevice::WriteOnly);
    if (suffix == QLatin1String("png")) {
        QImage image(size * pixelRatio, QImage::Format_RGB32);
        image.setDevicePixelRatio(pixelRatio);
        QPainter painter(&image);
        paint(painter, false);
        painter.end();
        if (!image.save(&picture, "PNG"))
            return makeError(ErrorKind::Failed, "The picture of {}x{} cannot be encoded; choose a smaller --size.",
                             image.width(), image.height());
    } else {
        QSvgGenerator generator;
        generator.setOutputDevice(&picture);
        generator.setResolution(96);
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(), size));
        generator.setTitle(title);
        generator.setDescription(QStringLiteral("KVAtlas"));
        QPainter painter(&generator);
        paint(painter, true);
        painter.end();
    }
    errno = 0;
    if (out.write(picture.data()) != picture.size() || !out.commit())
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
        painter.setPen(theme.text);
        // What has no room ends in an ellipsis.
        const auto line = [&](const QFont& font, int x, int y, int height, const QString& text) {
            const QFontMetrics metrics(font);
            const QString shown = metrics.elidedText(text, Qt::ElideRight, std::max(0, size.width() - kSide - x));
            painter.setFont(font);
            painter.drawText(QRect(x, y, size.width() - x, height), Qt::AlignVCenter, shown);
            return x + metrics.horizontalAdvance(shown);
        };
        const int titleEnd = line(title, kSide, 0, kHeader, picture.pictureTitle());
        painter.setPen(theme.text3);
        line(words, titleEnd + 12, 0, kHeader, picture.pictureSubtitle());
        picture.paintPicture(painter, QRect(0, kHeader, size.width(), size.height() - kHeader - kLegend - kFooter),
                             vector);
        paintLegend(painter, QRect(kSide, size.height() - kFooter - kLegend, size.width() - 2 * kSide, kLegend), theme,
                    picture.legend(), vector);
        painter.fillRect(QRect(0, size.height() - kFooter, size.width(), 1), theme.line);
        painter.setPen(theme.text3);
        line(words, kSide, size.height() - kFooter, kFooter, footer);
    });
}

Result<void> exportWidget(QWidget& widget, const QString& file, double pixelRatio) {
    return writeFile(file, widget.size(), pixelRatio, widget.windowTitle(),
                     [&](QPainter& painter, bool) { widget.render(&painter); });
}

} // namespace kvatlas::ui

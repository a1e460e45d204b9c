// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/colour_map.h"

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>

#include <cassert>

static void initColourResource() {
    Q_INIT_RESOURCE(kvatlas_ui);
}

namespace kvatlas::ui {

namespace {

ColourTable loadTable(const char* name) {
    initColourResource();
    QFile file(QStringLiteral(":/kvatlas/colour_maps.json"));
    const bool opened = file.open(QIODevice::ReadOnly);
    assert(opened);
    static_cast<void>(opened);
    const QString digits = QJsonDocument::fromJson(file.readAll()).object().value(QLatin1String(name)).toString();
    assert(digits.size() == 256 * 6);
    ColourTable table{};
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = 0xFF000000u | QStringView(digits).mid(static_cast<qsizetype>(i) * 6, 6).toUInt(nullptr, 16);
    return table;
}

} // namespace

const ColourTable& viridis() {
    static const ColourTable table = loadTable("viridis");
    return table;
}

const ColourTable& cividis() {
    static const ColourTable table = loadTable("cividis");
    return table;
}

} // namespace kvatlas::ui

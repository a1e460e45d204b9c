// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/number_text.h"

#include "core/query/number_text.h"

namespace kvatlas::ui {

using query::Thousands;

QString grouped(std::uint64_t number) {
    return QString::fromStdString(query::numberText(static_cast<std::int64_t>(number), Thousands::NoBreak));
}

QString bytesText(std::uint64_t bytes) {
    return QString::fromStdString(query::bytesText(bytes, Thousands::NoBreak));
}

QString percentText(double share) {
    return QString::fromStdString(query::percentText(share));
}

QString threeDigits(double number) {
    return QString::fromStdString(query::significantText(number, Thousands::NoBreak));
}

QString durationText(std::int64_t nanoseconds) {
    return QString::fromStdString(query::durationText(nanoseconds));
}

} // namespace kvatlas::ui

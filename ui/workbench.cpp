// SPDX-License-Identifier: Apache-2.0
#include "ui/workbench.h"

namespace kvatlas::ui {

QString visibleToken(const std::string& piece) {
    QString text = QString::fromUtf8(piece.data(), static_cast<qsizetype>(piece.size()));
    text.replace(QLatin1Char(' '), QChar(0x00B7));
    text.replace(QLatin1Char('\n'), QChar(0x21B5));
    text.replace(QLatin1Char('\t'), QChar(0x21E5));
    for (QChar& c : text)
        if (c.category() == QChar::Other_Control)
            c = QChar(0xFFFD);
    return text;
}

QString textOf(const Lane& lane, const std::vector<TokenId>& tokens) {
    std::string bytes;
    for (TokenId token : tokens)
        bytes += lane.piece(token);
    // Cut an unfinished UTF-8 sequence at the end.
    std::size_t tail = 0;
    while (tail < 3 && tail < bytes.size() &&
           (static_cast<unsigned char>(bytes[bytes.size() - 1 - tail]) & 0xC0) == 0x80)
        ++tail;
    if (tail < bytes.size()) {
        const auto lead = static_cast<unsigned char>(bytes[bytes.size() - 1 - tail]);
        const std::size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (wanted > tail + 1)
            bytes.resize(bytes.size() - 1 - tail);
    }
    return QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size()));
}

} // namespace kvatlas::ui

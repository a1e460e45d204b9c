// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/lane_header.h"

#include "core/strategy/strategy.h"
#include "ui/theme/glyphs.h"
#include "ui/theme/number_text.h"
#include "ui/theme/plain_text.h"

#include <QPainter>

namespace kvatlas::ui {

void paintLaneBadge(QPainter& painter, const Theme& theme, const QRect& box, std::size_t lane) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.lane[lane]);
    painter.drawRoundedRect(box, 4, 4);
    painter.setPen(labelOn(theme.lane[lane]));
    painter.setFont(theme.textFont(theme.type.small, QFont::DemiBold));
    painter.drawText(box, Qt::AlignCenter, QString(QLatin1Char(static_cast<char>('A' + lane))));
    painter.restore();
}

QString strategyName(const trace::RunStarted& run) {
    // A file of a later version may hold a strategy that this one does not know.
    const auto strategy = strategy::parse(run.strategyJson);
    if (!strategy)
        return LaneHeader::tr("Recorded strategy");
    if (!strategy->name.empty())
        return QString::fromStdString(strategy->name);
    const QString k = QString::fromStdString(std::string(kernels::nameOf(strategy->kFormat)));
    const QString v = QString::fromStdString(std::string(kernels::nameOf(strategy->vFormat)));
    return (strategy->layout == strategy::Layout::Paged ? LaneHeader::tr("Paged, %1")
                                                        : LaneHeader::tr("Contiguous, %1"))
        .arg(k == v ? k : k + QLatin1Char('/') + v);
}

LaneHeader::LaneHeader(const Workbench& bench, std::size_t laneIndex, QWidget* parent)
    : QWidget(parent)
    , m_bench(bench)
    , m_laneIndex(laneIndex) {
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &LaneHeader::refresh);
    connect(&bench.lanes, &LaneSet::shownChanged, this, &LaneHeader::refresh);
    connect(&bench.lanes, &LaneSet::infoChanged, this, &LaneHeader::refresh);
    connect(&bench.appearance, &Appearance::changed, this, [this] {
        setFixedHeight(m_bench.appearance.heights().laneHeader);
        update();
    });
    setFixedHeight(bench.appearance.heights().laneHeader);
    refresh();
}

void LaneHeader::refresh() {
    const Lane* lane = m_bench.lanes.lane(m_laneIndex);
    const auto run = lane ? lane->latest()->run : nullptr;
    const bool damaged = lane && !run && lane->damagedHere();
    if (run == m_run && m_known == std::optional(lane != nullptr) && damaged == m_damaged)
        return;
    m_damaged = damaged;
    m_run = run;
    m_known = lane != nullptr;
    m_name = damaged ? tr("This step cannot be shown") : lane ? tr("Starting…") : tr("No run");
    m_summary.clear();
    if (m_run) {
        m_name = strategyName(*m_run);
        QStringList pools;
        for (const trace::PoolShape& pool : m_run->pools)
            pools << bytesText(pool.blockBytes * pool.blocks);
        const QString capacity = pools.join(QLatin1String(" + "));
        if (const auto strategy = strategy::parse(m_run->strategyJson))
            m_summary = QString::fromStdString(strategy::describe(*strategy, capacity.toStdString()));
        if (!m_summary.contains(capacity))
            m_summary += (m_summary.isEmpty() ? QString() : QStringLiteral(" · ")) + capacity;
    }
    setAccessibleName(
        tr("Lane %1: %2, %3").arg(QLatin1Char(static_cast<char>('A' + m_laneIndex))).arg(m_name, m_summary));
    setToolTip(m_run ? tr("exact: blocks, layout and batches change no bit of what a cache in this format gives")
                     : QString());
    update();
}

void LaneHeader::paintEvent(QPaintEvent*) {
    const Theme& theme = m_bench.theme();
    QPainter painter(this);
    painter.fillRect(rect(), theme.panel);
    painter.fillRect(QRect(0, 0, width(), 2), theme.lane[m_laneIndex]);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.line);
    paintLaneBadge(painter, theme, QRect(12, (height() - 18) / 2 + 1, 18, 18), m_laneIndex);
    int x = 38;
    const QFont title = theme.textFont(theme.type.body, QFont::DemiBold), rest = theme.textFont(theme.type.body - 1);
    painter.setFont(title);
    painter.setPen(theme.text);
    const int titleWidth = QFontMetrics(title).horizontalAdvance(m_name);
    painter.drawText(QRect(x, 1, titleWidth + 2, height()), Qt::AlignVCenter, m_name);
    x += titleWidth + 12;
    int right = width() - 12;
    if (m_run) {
        // Every strategy there is so far stores what the model computes, bit for bit reproducible: exact.
        const QFont badgeFont = theme.textFont(theme.type.small, QFont::DemiBold);
        const QString word = tr("exact");
        const int badgeWidth = QFontMetrics(badgeFont).horizontalAdvance(word) + 28;
        const QRectF badge(right - badgeWidth + 0.5, (height() - 20) / 2.0 + 1.5, badgeWidth - 1, 19);
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme.good, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(badge, theme.radiusBadge, theme.radiusBadge);
        painter.restore();
        drawGlyph(painter, Glyph::Check, QRectF(badge.x() + 6, badge.y() + 3.5, 12, 12), theme.good);
        painter.setPen(theme.good);
        painter.setFont(badgeFont);
        painter.drawText(badge.adjusted(21, 0, 0, 0), Qt::AlignVCenter, word);
        right = static_cast<int>(badge.left()) - 8;
    }
    painter.setFont(rest);
    painter.setPen(theme.text3);
    painter.drawText(QRect(x, 1, std::max(0, right - x), height()), Qt::AlignVCenter,
                     QFontMetrics(rest).elidedText(m_summary, Qt::ElideRight, std::max(0, right - x)));
}

} // namespace kvatlas::ui

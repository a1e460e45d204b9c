// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/status_strip.h"

#include <QPainter>

#include <algorithm>

namespace kvatlas::ui {

namespace {
constexpr std::int64_t kRateWindowNs = 1'000'000'000;
} // namespace

void addRates(query::StatusFigures& figures, const source::HistoryAnswer& history, Step step) {
    const auto& rows = history.steps;
    auto end = std::upper_bound(rows.begin(), rows.end(), step,
                                [](Step at, const trace::StepRow& row) { return at < row.step; });
    if (end == rows.begin())
        return;
    const std::int64_t endNs = std::prev(end)->endNs;
    std::uint64_t prefill = 0, decode = 0;
    std::int64_t startNs = endNs;
    for (auto at = end; at != rows.begin();) {
        --at;
        prefill += at->prefillTokens;
        decode += at->decodeTokens;
        startNs = at->startNs;
        if (endNs - startNs >= kRateWindowNs)
            break;
    }
    if (endNs <= startNs)
        return;
    const double seconds = static_cast<double>(endNs - startNs) / 1e9;
    figures.prefillPerSecond = static_cast<double>(prefill) / seconds;
    figures.decodePerSecond = static_cast<double>(decode) / seconds;
}

StatusStrip::StatusStrip(const Workbench& bench, QWidget* parent)
    : QStatusBar(parent)
    , m_bench(bench) {
    setSizeGripEnabled(false);
    setAccessibleName(tr("Status"));
    connect(&bench.lanes, &LaneSet::shownChanged, this, &StatusStrip::refresh);
    connect(&bench.lanes, &LaneSet::historyChanged, this, &StatusStrip::refresh);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &StatusStrip::refresh);
    connect(&bench.lanes, &LaneSet::playingChanged, this, &StatusStrip::refresh);
    connect(&bench.lanes, &LaneSet::infoChanged, this, &StatusStrip::refresh);
    connect(&bench.appearance, &Appearance::changed, this, &StatusStrip::restyle);
    restyle();
}

void StatusStrip::restyle() {
    setFixedHeight(m_bench.appearance.heights().status);
    refresh();
    update();
}

void StatusStrip::refresh() {
    const Lane* lane = m_bench.lanes.lane(0);
    m_items.clear();
    if (!lane) {
        m_lead = tr("No run");
    } else if (!lane->shown()->run) { // no number is known
        m_lead = lane->damagedHere() ? tr("This step cannot be shown") : tr("Starting…");
    } else {
        query::StatusFigures figures = query::statusOf(*lane->shown(), nullptr);
        if (lane->shown()->step <= lane->recordedTo().value_or(lane->shown()->step))
            addRates(figures, *lane->history(), lane->shown()->step);
        m_items = query::statusItems(figures);
        m_measured = lane->shown()->run->backend != "synthetic";
        const bool newest = lane->shown() == lane->latest();
        m_lead = !newest           ? tr("Looking back,")
                 : lane->ended()   ? tr("Ended,")
                 : lane->idle()    ? tr("Idle,")
                 : lane->playing() ? (lane->capabilities().live ? tr("Running,") : tr("Playing,"))
                                   : tr("Paused,");
        // "step 476" becomes "step 476 of 896" where the end is known or later steps exist.
        if (!m_items.empty() && lane->lastStep() > lane->shown()->step)
            m_items.front().value += QString::fromUtf8(" of ").toStdString() + std::to_string(lane->lastStep());
    }
    QStringList words{m_lead};
    for (const query::StatusItem& item : m_items)
        words << QString::fromStdString(item.name) + QLatin1Char(' ') + QString::fromStdString(item.value);
    m_text = words.join(QLatin1Char(' '));
    setAccessibleDescription(m_text);
    update();
}

void StatusStrip::paintEvent(QPaintEvent*) {
    const Theme& theme = m_bench.theme();
    QPainter painter(this);
    painter.fillRect(rect(), theme.raised);
    painter.fillRect(QRect(0, 0, width(), 1), theme.line);
    const QFont words = theme.textFont(theme.type.body - 1),
                numbers = theme.monoFont(theme.type.body - 1, QFont::Medium);
    const QFontMetrics wordMetrics(words), numberMetrics(numbers);
    const QString promise = m_items.empty() ? QString()
                            : m_measured    ? tr("every number measured")
                                            : tr("made up for tests");
    const int right = width() - 12 - (promise.isEmpty() ? 0 : wordMetrics.horizontalAdvance(promise) + 16);
    int x = 12;
    const auto put = [&](const QString& text, const QFont& font, const QFontMetrics& metrics, const QColor& colour) {
        painter.setFont(font);
        painter.setPen(colour);
        const int advance = metrics.horizontalAdvance(text);
        painter.drawText(QRect(x, 0, advance + 2, height()), Qt::AlignVCenter, text);
        x += advance;
    };
    put(m_lead, words, wordMetrics, theme.text2);
    bool first = true;
    for (const query::StatusItem& item : m_items) {
        const QString name = QString::fromStdString(item.name), value = QString::fromStdString(item.value);
        const int need = wordMetrics.horizontalAdvance(name) + 6 + numberMetrics.horizontalAdvance(value) + 21;
        if (x + need > right)
            break; // in a narrow window the last ones give way; all are in the accessible description
        if (!first) {
            x += 10;
            painter.fillRect(QRect(x, height() / 2 - 6, 1, 13), theme.line);
            x += 11;
        } else {
            x += 5;
        }
        first = false;
        put(name, words, wordMetrics, theme.text2);
        x += 6;
        put(value, numbers, numberMetrics, theme.text);
    }
    painter.setFont(words);
    painter.setPen(theme.text3);
    painter.drawText(rect().adjusted(0, 0, -12, 0), Qt::AlignRight | Qt::AlignVCenter, promise);
}

} // namespace kvatlas::ui

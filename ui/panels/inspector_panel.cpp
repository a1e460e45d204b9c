// SPDX-License-Identifier: Apache-2.0
// Before any Qt header: it has a member called slots, which is a macro of Qt.
#include "core/query/inspector.h"

#include "ui/panels/inspector_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

#undef slots

namespace kvatlas::ui {

namespace {
using Facts = std::vector<std::pair<QString, QString>>;

Facts worded(const std::vector<query::Fact>& facts) {
    Facts out;
    for (const query::Fact& fact : facts)
        out.emplace_back(QString::fromStdString(fact.name), QString::fromStdString(fact.value));
    return out;
}

constexpr int kPadding = 16, kBigCell = 40, kFactRow = 22, kChipHeight = 18, kChipGap = 4;
} // namespace

InspectorBody::InspectorBody(const Workbench& bench, QWidget* parent)
    : QWidget(parent)
    , m_bench(bench) {
    setAccessibleName(tr("Selection"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
}

void InspectorBody::setContent(Content content) {
    m_content = std::move(content);
    QStringList words{m_content.title, m_content.subtitle};
    for (const auto& [name, value] : m_content.facts)
        words << name + QLatin1String(": ") + value;
    words << m_content.text << m_content.emptyText;
    words.removeAll(QString());
    setAccessibleDescription(words.join(QLatin1String("; ")));
    const int height = lay(nullptr, width());
    if (minimumHeight() != height)
        setMinimumHeight(height);
    update();
}

int InspectorBody::heightForWidth(int width) const {
    return lay(nullptr, width);
}

int InspectorBody::lay(QPainter* painter, int width) const {
    const Theme& theme = m_bench.theme();
    const int inner = width - 2 * kPadding;
    if (inner <= 0)
        return 0;
    m_chipRects.clear();
    if (m_content.title.isEmpty()) {
        const QRect box(kPadding, 24, inner, 80);
        if (painter) {
            painter->setFont(theme.textFont(theme.type.body));
            painter->setPen(theme.text2);
            painter->drawText(box, Qt::AlignHCenter | Qt::TextWordWrap, m_content.emptyText);
        }
        return box.bottom();
    }
    int y = kPadding;
    if (painter) {
        {
            DeviceSpace space(*painter);
            CellPainter cells;
            cells.begin(*painter, theme, space.scale(), false);
            const QRect device = space.rect(QRect(kPadding, y, kBigCell, kBigCell));
            cells.cell(device, m_content.cell);
            QFont font = theme.monoFont(theme.type.title, QFont::Medium);
            font.setPixelSize(space.px(font.pixelSize()));
            const QColor ground = m_content.cell.shape == CellShape::Solid ? m_content.cell.colour
                                  : m_content.cell.shape == CellShape::PartFilled
                                      ? mixed(m_content.cell.colour, theme.well, 0.34)
                                      : theme.well;
            cells.label(device, m_content.cellLabel, font, labelOn(ground));
        }
        const int left = kPadding + kBigCell + 12;
        painter->setFont(theme.textFont(theme.type.lessonHead, QFont::DemiBold));
        painter->setPen(theme.text);
        painter->drawText(QRect(left, y - 2, width - left - 8, 24), Qt::AlignVCenter, m_content.title);
        const QFont small = theme.textFont(theme.type.body - 1);
        painter->setFont(small);
        painter->setPen(theme.text2);
        painter->drawText(QRect(left, y + 21, width - left - 8, 18), Qt::AlignVCenter,
                          QFontMetrics(small).elidedText(m_content.subtitle, Qt::ElideRight, width - left - 8));
    }
    y += kBigCell + 14;
    const QFont nameFont = theme.textFont(theme.type.body - 1), valueFont = theme.monoFont(theme.type.body - 1),
                headFont = theme.textFont(theme.type.body - 1, QFont::DemiBold);
    const QFontMetrics names(nameFont), values(valueFont);
    for (const auto& [name, value] : m_content.facts) {
        if (values.horizontalAdvance(value) > inner) { // a sentence
            const QRect box =
                names.boundingRect(QRect(kPadding, y + kFactRow, inner, 1 << 20), Qt::TextWordWrap, value);
            if (painter) {
                painter->setFont(nameFont);
                painter->setPen(theme.text3);
                painter->drawText(QRect(kPadding, y, inner, kFactRow), Qt::AlignVCenter, name);
                painter->setPen(theme.text);
                painter->drawText(QRect(kPadding, y + kFactRow, inner, box.height() + 2), Qt::TextWordWrap, value);
            }
            y += kFactRow + box.height() + 4;
            continue;
        }
        const bool apart = names.horizontalAdvance(name) + 12 + values.horizontalAdvance(value) > inner;
        if (painter) {
            painter->setFont(nameFont);
            painter->setPen(theme.text3);
            painter->drawText(QRect(kPadding, y, inner, kFactRow), Qt::AlignVCenter, name);
            painter->setFont(valueFont);
            painter->setPen(theme.text);
            painter->drawText(QRect(kPadding, y + (apart ? kFactRow - 4 : 0), inner, kFactRow),
                              Qt::AlignRight | Qt::AlignVCenter, value);
        }
        y += apart ? 2 * kFactRow - 4 : kFactRow;
    }
    const auto head = [&](const QString& text) {
        y += 10;
        if (painter) {
            painter->fillRect(QRect(0, y, width, 1), theme.line);
            painter->setFont(headFont);
            painter->setPen(theme.text);
            painter->drawText(QRect(kPadding, y + 8, inner, 20), Qt::AlignVCenter, text);
        }
        y += 34;
    };
    if (!m_content.usedBy.empty()) {
        head(tr("Used by"));
        int x = kPadding;
        for (RequestId request : m_content.usedBy) {
            const QRect chip(x, y, 28, 20);
            if (chip.right() > width - kPadding)
                break;
            m_chipRects.emplace_back(chip, request);
            if (painter) {
                const QColor hue = theme.hueOf(request.value);
                painter->save();
                painter->setRenderHint(QPainter::Antialiasing);
                painter->setPen(Qt::NoPen);
                painter->setBrush(hue);
                painter->drawRoundedRect(chip, theme.radiusBadge, theme.radiusBadge);
                painter->restore();
                painter->setPen(labelOn(hue));
                painter->setFont(theme.monoFont(theme.type.small, QFont::Medium));
                painter->drawText(chip, Qt::AlignCenter, QString::number(request.value));
            }
            x += 34;
        }
        y += 24;
    }
    if (!m_content.chips.empty()) {
        head(m_content.slotsTitle);
        const QFont chipFont = theme.monoFont(theme.type.micro);
        const QFontMetrics metrics(chipFont);
        int x = kPadding;
        for (const Chip& chip : m_content.chips) {
            const QString text = metrics.elidedText(chip.text, Qt::ElideRight, inner - 10);
            const int chipWidth = std::max(14, metrics.horizontalAdvance(text) + 8);
            if (x + chipWidth > width - kPadding) {
                x = kPadding;
                y += kChipHeight + kChipGap;
            }
            if (painter) {
                painter->save();
                painter->setRenderHint(QPainter::Antialiasing);
                painter->setPen(QPen(chip.filled ? theme.line : theme.state.freeLine, 1,
                                     chip.filled ? Qt::SolidLine : Qt::DotLine));
                painter->setBrush(chip.filled ? theme.raised : theme.well);
                painter->drawRoundedRect(QRectF(x + 0.5, y + 0.5, chipWidth - 1, kChipHeight - 1), theme.radiusCell,
                                         theme.radiusCell);
                painter->restore();
                painter->setPen(theme.text2);
                painter->setFont(chipFont);
                painter->drawText(QRect(x, y, chipWidth, kChipHeight), Qt::AlignCenter, text);
            }
            x += chipWidth + kChipGap;
        }
        y += kChipHeight + 6;
    }
    if (!m_content.text.isEmpty()) {
        head(m_content.textTitle);
        const QFont body = theme.textFont(theme.type.body);
        const QRect box =
            QFontMetrics(body).boundingRect(QRect(kPadding, y, inner, 1 << 20), Qt::TextWordWrap, m_content.text);
        if (painter) {
            painter->setFont(body);
            painter->setPen(theme.text);
            painter->drawText(QRect(kPadding, y, inner, box.height() + 2), Qt::TextWordWrap, m_content.text);
        }
        y += box.height() + 8;
    }
    return y + kPadding;
}

void InspectorBody::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_bench.theme().panel);
    lay(&painter, width());
}

void InspectorBody::mousePressEvent(QMouseEvent* event) {
    for (const auto& [rect, request] : m_chipRects)
        if (rect.contains(event->position().toPoint()))
            emit requestClicked(request);
}

InspectorPanel::InspectorPanel(const Workbench& bench, QWidget* parent)
    : Surface(bench.appearance, parent)
    , m_bench(bench) {
    setAccessibleName(tr("Inspector"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* head = new QWidget(this);
    head->setObjectName(QStringLiteral("inspectorHead"));
    head->setAccessibleName(tr("Inspector header"));
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(16, 0, 10, 0);
    m_title = new QLabel(tr("Inspector"), head);
    m_title->setTextFormat(Qt::PlainText);
    row->addWidget(m_title, 1);
    m_lock = new QToolButton(head);
    m_lock->setText(tr("Lock"));
    m_lock->setAccessibleName(tr("Keep this selection in the inspector"));
    m_lock->setToolTip(tr("Keep showing this while something else is selected"));
    m_lock->setCheckable(true);
    row->addWidget(m_lock);
    column->addWidget(head);
    m_scroll = new QScrollArea(this);
    m_scroll->setAccessibleName(tr("Inspector body"));
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setWidgetResizable(true);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_body = new InspectorBody(bench, m_scroll);
    m_scroll->setWidget(m_body);
    m_scroll->viewport()->setAutoFillBackground(false);
    m_body->setAutoFillBackground(false);
    column->addWidget(m_scroll, 1);
    connect(m_lock, &QToolButton::toggled, this, [this](bool on) {
        if (!on)
            takeSelection();
    });
    connect(m_body, &InspectorBody::requestClicked, this, [this](RequestId request) {
        m_bench.linked.select({request, {}, {}});
    });
    connect(&bench.linked, &LinkedState::selectionChanged, this, &InspectorPanel::takeSelection);
    connect(&bench.lanes, &LaneSet::shownChanged, this, &InspectorPanel::refresh);
    connect(&bench.lanes, &LaneSet::historyChanged, this, &InspectorPanel::refresh);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &InspectorPanel::refresh);
    connect(&bench.lanes, &LaneSet::requestTextChanged, this, &InspectorPanel::refresh);
    connect(&bench.appearance, &Appearance::changed, this, &InspectorPanel::restyle);
    restyle();
}

void InspectorPanel::setLocked(bool locked) {
    m_lock->setChecked(locked);
}

void InspectorPanel::restyle() {
    const Theme& theme = m_bench.theme();
    m_title->setFont(theme.textFont(theme.type.body, QFont::DemiBold));
    m_title->parentWidget()->setFixedHeight(m_bench.appearance.heights().dockTab);
    refresh();
}

void InspectorPanel::takeSelection() {
    if (m_lock->isChecked())
        return;
    m_shown = m_bench.linked.selection();
    refresh();
}

void InspectorPanel::refresh() {
    InspectorBody::Content content;
    if (m_bench.lanes.lane(0) && m_shown.block)
        content = blockContent(*m_shown.block);
    else if (m_bench.lanes.lane(0) && m_shown.request != RequestId())
        content = requestContent(m_shown.request);
    if (content.title.isEmpty())
        content.emptyText = tr("Select a block or a request.");
    m_body->setContent(std::move(content));
}

InspectorBody::Content InspectorPanel::blockContent(BlockId id) const {
    InspectorBody::Content content;
    const Lane& lane = *m_bench.lanes.lane(0);
    const SnapshotPtr snapshot = lane.shown();
    auto facts = query::blockFacts(*snapshot, id);
    if (!facts)
        return content;
    const state::PoolState& pool = snapshot->pools[id.pool().value];
    content.cell = lookOf(m_bench.theme(), pool.block(id.index()), pool.shape.blockTokens);
    content.cellLabel = content.cell.label;
    content.title = QString::fromStdString(facts->title);
    content.subtitle = QString::fromStdString(facts->subtitle);
    content.facts = worded(facts->facts);
    content.usedBy = std::move(facts->usedBy);
    if (!facts->slots.empty()) {
        content.slotsTitle =
            tr("Slots, tokens %1–%2").arg(facts->slots.front().position).arg(facts->slots.back().position);
        for (const query::SlotToken& slot : facts->slots)
            content.chips.push_back({slot.token     ? visibleToken(lane.piece(*slot.token))
                                     : slot.written ? QStringLiteral("?")
                                                    : QStringLiteral(" "),
                                     slot.written});
    }
    return content;
}

InspectorBody::Content InspectorPanel::requestContent(RequestId request) const {
    InspectorBody::Content content;
    Lane& lane = *m_bench.lanes.lane(0);
    auto facts = query::requestFacts(*lane.shown(), request);
    if (!facts) {
        const auto& rows = lane.history()->requests;
        const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.request == request; });
        if (at == rows.end())
            return content;
        facts = query::requestFacts(*at, lane.shown()->step);
    }
    content.cell = {CellShape::Solid, m_bench.theme().hueOf(request.value), 1, {}, 0, false};
    content.cellLabel = QString::number(request.value);
    content.title = QString::fromStdString(facts->title);
    content.subtitle = QString::fromStdString(facts->subtitle);
    content.facts = worded(facts->facts);
    const Lane::Text tokens = lane.requestText(request);
    content.textTitle = tr("Answer so far");
    content.text = textOf(lane, tokens.outputTokens);
    return content;
}

} // namespace kvatlas::ui

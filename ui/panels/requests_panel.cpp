// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/requests_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace kvatlas::ui {

namespace {

constexpr int kRing = 4;                      // room for the focus ring around the list
constexpr int kMargin = 12 - kRing, kGap = 6; // before and after the chips
constexpr int kEndSlack = 4;                  // so near to the end of the text, in pixels or lines, is at the end

QTextCharFormat inked(const QColor& ink) {
    QTextCharFormat format;
    format.setForeground(ink);
    return format;
}

// The request's number as a chip in its hue.
class ChipDelegate final : public QStyledItemDelegate {
public:
    ChipDelegate(const Workbench& bench, QObject* parent)
        : QStyledItemDelegate(parent)
        , m_bench(bench) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const Theme& theme = m_bench.theme();
        if (option.state & QStyle::State_Selected)
            painter->fillRect(option.rect, theme.accentSoft);
        const QString number = index.data().toString();
        const QColor hue = theme.hueOf(number.toULongLong());
        QRect chip(0, 0, chipWidth(number), 18);
        chip.moveCenter(option.rect.center());
        chip.moveLeft(option.rect.left() + kMargin);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(Qt::NoPen);
        painter->setBrush(hue);
        painter->drawRoundedRect(chip, theme.radiusBadge, theme.radiusBadge);
        painter->setPen(labelOn(hue));
        painter->setFont(font());
        painter->drawText(chip, Qt::AlignCenter, number);
        painter->restore();
    }
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        return {kMargin + chipWidth(index.data().toString()) + kGap,
                QStyledItemDelegate::sizeHint(option, index).height()};
    }

private:
    QFont font() const { return m_bench.theme().monoFont(m_bench.theme().type.small, QFont::Medium); }
    int chipWidth(const QString& number) const {
        return std::max(22, QFontMetrics(font()).horizontalAdvance(number) + 8);
    }
    const Workbench m_bench;
};

// Words in the text face, narrower than that of the numbers.
class WordsDelegate final : public QStyledItemDelegate {
public:
    WordsDelegate(const Workbench& bench, QObject* parent)
        : QStyledItemDelegate(parent)
        , m_bench(bench) {}

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        option->font = m_bench.theme().textFont(m_bench.theme().type.small);
        option->fontMetrics = QFontMetrics(option->font);
    }

private:
    const Workbench m_bench;
};

// Letters are keys of the window, not a search.
class RequestTable : public QTableView {
public:
    using QTableView::QTableView;
    void keyboardSearch(const QString&) override {}
};

} // namespace

std::array<QWidget*, 2> RequestsPanel::readOnlyWidgets() const {
    return {m_table, m_text};
}

RequestsPanel::RequestsPanel(const Workbench& bench, QWidget* parent)
    : Surface(bench.appearance, parent)
    , m_bench(bench) {
    setAccessibleName(tr("Requests"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(kRing, 8, 0, 12);
    column->setSpacing(8);
    m_model = new RequestsModel(this);
    m_table = new RequestTable(this);
    m_table->setAccessibleName(tr("Requests"));
    m_table->setModel(m_model);
    m_table->setItemDelegateForColumn(RequestsModel::Number, new ChipDelegate(bench, m_table));
    m_table->setItemDelegateForColumn(RequestsModel::Status, new WordsDelegate(bench, m_table));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setShowGrid(false);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setTabKeyNavigation(false);
    m_table->setCornerButtonEnabled(false);
    m_table->verticalHeader()->hide();
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setAccessibleName(tr("Columns of the requests"));
    m_table->horizontalHeader()->setMinimumSectionSize(28);
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_table->horizontalHeader()->setSectionResizeMode(RequestsModel::Title, QHeaderView::Stretch);
    m_table->setColumnHidden(RequestsModel::Title, true); // the dock is narrow; the text below shows it
    m_table->horizontalHeader()->setSectionResizeMode(RequestsModel::Status, QHeaderView::Stretch);
    m_table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    column->addWidget(m_table);

    m_notRecorded = new QLabel(this);
    m_notRecorded->setContentsMargins(16 - kRing, 0, 16, 0);
    m_notRecorded->setWordWrap(true);
    m_notRecorded->hide();
    column->addWidget(m_notRecorded);
    m_head = new QLabel(this);
    m_head->setTextFormat(Qt::PlainText);
    m_head->setContentsMargins(16 - kRing, 0, 16, 0);
    m_head->setWordWrap(true);
    column->addWidget(m_head);
    m_text = new QPlainTextEdit(this);
    m_text->setAccessibleName(tr("Text of the request"));
    m_text->setReadOnly(true);
    m_text->setFrameShape(QFrame::NoFrame);
    m_text->setTabChangesFocus(true);
    m_text->document()->setDocumentMargin(16 - kRing);
    column->addWidget(m_text, 1);
    m_cancel = new QPushButton(tr("Cancel request"), this);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(16 - kRing, 0, 16, 0);
    row->addStretch(1);
    row->addWidget(m_cancel);
    column->addLayout(row);

    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (const trace::RequestRow* at = m_model->rowAt(now.row()))
            if (m_bench.linked.selection().request != at->request)
                m_bench.linked.select({at->request, {}, {}});
    });
    // The current row too, which a selected block of that request has made so.
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& now) {
        if (const trace::RequestRow* at = m_model->rowAt(now.row()))
            m_bench.linked.select({at->request, {}, {}});
    });
    // At its end it stays there while text comes and the panel changes its size; a reader who scrolled up is left
    // alone.
    QScrollBar* bar = m_text->verticalScrollBar();
    connect(bar, &QScrollBar::actionTriggered, this,
            [this, bar] { m_readsEnd = bar->sliderPosition() >= bar->maximum() - kEndSlack; });
    connect(bar, &QScrollBar::rangeChanged, this, [this, bar](int, int end) {
        if (m_readsEnd)
            bar->setValue(end);
    });
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        if (Lane* lane = m_bench.lanes.lane(0))
            lane->send(source::Cancel{shownRequest()});
    });
    connect(&bench.lanes, &LaneSet::historyChanged, this, &RequestsPanel::refreshRows);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &RequestsPanel::refreshRows);
    connect(&bench.lanes, &LaneSet::shownChanged, this, &RequestsPanel::refreshRows);
    connect(&bench.lanes, &LaneSet::requestTextChanged, this, &RequestsPanel::refreshText);
    connect(&bench.linked, &LinkedState::selectionChanged, this, &RequestsPanel::takeSelection);
    connect(&bench.appearance, &Appearance::changed, this, &RequestsPanel::restyle);
    restyle();
}

void RequestsPanel::restyle() {
    const Theme& theme = m_bench.theme();
    m_table->setFont(theme.monoFont(theme.type.small));
    m_table->horizontalHeader()->setFont(theme.textFont(theme.type.small));
    m_table->verticalHeader()->setDefaultSectionSize(m_bench.appearance.heights().row + 2);
    m_notRecorded->setFont(theme.textFont(theme.type.small));
    m_head->setFont(theme.textFont(theme.type.body, QFont::DemiBold));
    m_text->setFont(theme.textFont(theme.type.body));
    m_textOf = {}; // written anew, in the theme's colours
    refreshText();
    fitRows();
}

void RequestsPanel::resizeEvent(QResizeEvent* event) {
    Surface::resizeEvent(event);
    fitRows();
}

void RequestsPanel::fitRows() {
    constexpr int kLeast = 3, kRoomForAll = 290;
    m_table->setColumnHidden(RequestsModel::Interval, width() < kRoomForAll); // the inspector has it
    const int header = m_table->horizontalHeader()->sizeHint().height();
    const int row = m_table->verticalHeader()->defaultSectionSize();
    m_table->setFixedHeight(header + std::max(kLeast, (height() * 2 / 5 - header) / row) * row);
}

RequestId RequestsPanel::shownRequest() const {
    if (m_bench.linked.selection().request != RequestId())
        return m_bench.linked.selection().request;
    const trace::RequestRow* first = m_model->rowAt(0);
    return first ? first->request : RequestId();
}

void RequestsPanel::awaitNext() {
    m_awaitedAfter = newestRequest();
}

RequestId RequestsPanel::newestRequest() const {
    const Lane* lane = m_bench.lanes.lane(0);
    RequestId newest;
    if (lane && !lane->history()->requests.empty())
        newest = lane->history()->requests.back().request;
    if (lane && !lane->latest()->requests.empty())
        newest = std::max(newest, lane->latest()->requests.back().request);
    return newest;
}

void RequestsPanel::refreshRows() {
    const Lane* lane = m_bench.lanes.lane(0);
    if (!lane)
        m_awaitedAfter.reset();
    if (const RequestId newest = newestRequest(); m_awaitedAfter && *m_awaitedAfter < newest) {
        m_awaitedAfter.reset();
        m_bench.linked.select({newest, {}, {}});
    }
    if (lane)
        m_model->setRows(lane->history()->requests, lane->shown()->step, lane->shown());
    else
        m_model->setRows({}, 0);
    const auto recordedTo = lane ? lane->recordedTo() : std::nullopt;
    m_notRecorded->setVisible(recordedTo && lane->shown()->step > *recordedTo);
    if (recordedTo)
        m_notRecorded->setText(
            tr("Not recorded after step %1: later requests and answers are not kept.").arg(*recordedTo));
    takeSelection();
}

void RequestsPanel::takeSelection() {
    const int row = m_model->rowOf(m_bench.linked.selection().request);
    if (row >= 0 && m_table->currentIndex().row() != row)
        m_table->selectRow(row);
    else if (row < 0)
        m_table->clearSelection();
    refreshText();
}

void RequestsPanel::refreshText() {
    Lane* lane = m_bench.lanes.lane(0);
    const RequestId request = shownRequest();
    const trace::RequestRow* row = m_model->rowAt(m_model->rowOf(request));
    m_cancel->setVisible(lane && lane->capabilities().submit);
    const bool cancels = lane && lane->alive(request) && !lane->ended();
    if (!cancels && m_cancel->hasFocus())
        m_table->setFocus(Qt::OtherFocusReason); // else it goes wherever the next control is
    m_cancel->setEnabled(cancels);
    if (!lane || request == RequestId()) {
        m_head->setText(tr("No request yet"));
        m_text->clear();
        m_textOf = {};
        return;
    }
    m_head->setText(row ? tr("Request %1: %2").arg(request.value).arg(QString::fromStdString(row->title))
                        : tr("Request %1").arg(request.value));
    const Lane::Text tokens = lane->requestText(request);
    const std::pair counts(tokens.promptTokens.size(), tokens.outputTokens.size());
    if (m_textOf == request && counts == m_textTokens)
        return;
    m_textTokens = counts;
    const QString prompt = textOf(*lane, tokens.promptTokens), output = textOf(*lane, tokens.outputTokens);
    if (m_textOf == request && prompt == m_prompt && output.startsWith(m_output)) { // streams on
        QTextCursor cursor(m_text->document());
        cursor.movePosition(QTextCursor::End);
        cursor.insertText(output.mid(m_output.size()), inked(m_bench.theme().text));
    } else {
        m_text->clear();
        QTextCursor cursor(m_text->document());
        const QTextCharFormat quiet = inked(m_bench.theme().text3), plain = inked(m_bench.theme().text);
        cursor.insertText(prompt, quiet);
        if (!prompt.isEmpty() && !prompt.endsWith(QLatin1Char('\n')))
            cursor.insertText(QStringLiteral("\n"), quiet);
        cursor.insertText(output, plain);
    }
    if (m_textOf != request)
        m_readsEnd = true;
    if (m_readsEnd)
        m_text->verticalScrollBar()->setValue(m_text->verticalScrollBar()->maximum());
    m_textOf = request;
    m_prompt = prompt;
    m_output = output;
}

QString RequestsPanel::shownText() const {
    return m_text->toPlainText();
}

} // namespace kvatlas::ui

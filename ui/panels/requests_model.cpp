// SPDX-License-Identifier: Apache-2.0
// Before Qt, whose `slots` is a macro.
#include "core/query/inspector.h"

#include "ui/panels/requests_model.h"

#include "ui/theme/number_text.h"
#include "ui/theme/plain_text.h"

#include <algorithm>

namespace kvatlas::ui {

void RequestsModel::setRows(std::vector<trace::RequestRow> rows, Step cursor,
                            std::shared_ptr<const state::Snapshot> shown) {
    m_cursor = cursor;
    m_shown = std::move(shown);
    for (trace::RequestRow& row : rows)
        if (row.arrivedStep > cursor)
            row.outputTokens = 0;
    if (m_shown)
        for (const state::RequestState& living : m_shown->requests) {
            const auto at =
                std::lower_bound(rows.begin(), rows.end(), living.request,
                                 [](const trace::RequestRow& row, RequestId id) { return row.request < id; });
            if (at == rows.end() || at->request != living.request) { // it came after the history was asked
                trace::RequestRow row;
                row.request = living.request;
                row.title = living.title;
                row.promptTokens = living.promptTokens;
                row.outputTokens = living.outputTokens;
                row.arrivedStep = living.arrivedStep;
                row.arrivedNs = living.arrivedNs;
                rows.insert(at, std::move(row));
            } else {
                at->outputTokens = living.outputTokens;
            }
        }
    const bool same =
        rows.size() == m_rows.size() && std::equal(rows.begin(), rows.end(), m_rows.begin(),
                                                   [](const auto& a, const auto& b) { return a.request == b.request; });
    if (same) {
        m_rows = std::move(rows);
        if (!m_rows.empty())
            emit dataChanged(index(0, 0), index(rowCount() - 1, Columns - 1));
        return;
    }
    const bool grown =
        rows.size() > m_rows.size() && std::equal(m_rows.begin(), m_rows.end(), rows.begin(),
                                                  [](const auto& a, const auto& b) { return a.request == b.request; });
    if (grown) { // appended: a selection stays
        beginInsertRows({}, static_cast<int>(m_rows.size()), static_cast<int>(rows.size()) - 1);
        m_rows = std::move(rows);
        endInsertRows();
        emit dataChanged(index(0, 0), index(rowCount() - 1, Columns - 1));
        return;
    }
    beginResetModel();
    m_rows = std::move(rows);
    endResetModel();
}

const trace::RequestRow* RequestsModel::rowAt(int row) const {
    return row >= 0 && row < static_cast<int>(m_rows.size()) ? &m_rows[static_cast<std::size_t>(row)] : nullptr;
}

int RequestsModel::rowOf(RequestId request) const {
    const auto at = std::lower_bound(m_rows.begin(), m_rows.end(), request,
                                     [](const trace::RequestRow& row, RequestId id) { return row.request < id; });
    return at != m_rows.end() && at->request == request ? static_cast<int>(at - m_rows.begin()) : -1;
}

int RequestsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int RequestsModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(Columns);
}

const state::RequestState* RequestsModel::alive(RequestId request) const {
    return m_shown ? state::findRequest(*m_shown, request) : nullptr;
}

QString RequestsModel::statusText(const trace::RequestRow& row) const {
    if (m_shown && !m_shown->run)
        return tr("not known");
    if (const state::RequestState* living = alive(row.request)) {
        if (living->status == state::RequestStatus::Waiting)
            return tr("waiting");
        if (living->status == state::RequestStatus::Preempted)
            return tr("preempted");
        return living->outputTokens > 0 ? tr("decode") : tr("prefill");
    }
    if (m_shown && row.arrivedStep <= m_cursor && (!row.finishedStep || *row.finishedStep > m_cursor))
        return tr("finished"); // why is not in the history yet
    if (row.finishedStep && *row.finishedStep <= m_cursor)
        return row.finishReason ? QString::fromStdString(query::finishText(*row.finishReason)) : tr("finished");
    if (row.firstTokenStep && *row.firstTokenStep <= m_cursor)
        return tr("decode");
    if (row.admittedStep && *row.admittedStep <= m_cursor)
        return tr("prefill");
    return row.arrivedStep <= m_cursor ? tr("waiting") : tr("to come");
}

QString RequestsModel::text(const trace::RequestRow& row, int column) const {
    QString unknown = QStringLiteral("–");
    if (m_shown && !m_shown->run && column > Status)
        return unknown; // nothing is known of this moment
    switch (column) {
    case Number:
        return QString::number(row.request.value);
    case Title:
        return QString::fromStdString(row.title);
    case Status:
        return statusText(row);
    case Tokens:
        return QStringLiteral("%1 + %2").arg(row.promptTokens).arg(row.outputTokens);
    case FirstToken:
        return row.firstTokenNs && row.firstTokenStep && *row.firstTokenStep <= m_cursor
                   ? durationText(*row.firstTokenNs - row.arrivedNs)
                   : unknown;
    case Interval:
        if (row.firstTokenNs && row.finishedNs && row.finishedStep && *row.finishedStep <= m_cursor &&
            row.outputTokens > 1)
            return durationText((*row.finishedNs - *row.firstTokenNs) / (row.outputTokens - 1));
        return unknown;
    default:
        return {};
    }
}

QVariant RequestsModel::data(const QModelIndex& index, int role) const {
    const trace::RequestRow* row = rowAt(index.row());
    if (!row || index.column() < 0 || index.column() >= Columns)
        return {};
    if (role == Qt::DisplayRole)
        return text(*row, index.column());
    if (role == Qt::ToolTipRole)
        return tipText(QString::fromStdString(row->detail.empty() ? row->title : row->detail));
    if (role == Qt::TextAlignmentRole && index.column() != Title && index.column() != Status)
        return int(Qt::AlignRight | Qt::AlignVCenter);
    return {};
}

QVariant RequestsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal)
        return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
    static const char* const names[] = {"#", "Request", "State", "Tokens", "First", "Each"};
    static const char* const tips[] = {"Request number",     "Its own title",           "At the cursor",
                                       "Prompt + generated", "Time to the first token", "Mean time between tokens"};
    if (section < 0 || section >= Columns)
        return {};
    if (role == Qt::DisplayRole)
        return tr(names[section]);
    if (role == Qt::ToolTipRole)
        return tr(tips[section]);
    if (role == Qt::TextAlignmentRole)
        return section == Title || section == Status ? int(Qt::AlignLeft | Qt::AlignVCenter)
                                                     : int(Qt::AlignRight | Qt::AlignVCenter);
    return {};
}

} // namespace kvatlas::ui

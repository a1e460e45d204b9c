// SPDX-License-Identifier: Apache-2.0
// The requests of a lane as a table: the rows of its history, which lags while it runs, set right by the state that the
// other views show. GUI thread.
#pragma once

#include "core/state/snapshot.h"
#include "core/trace/rows.h"

#include <QAbstractTableModel>

#include <memory>
#include <vector>

namespace kvatlas::ui {

class RequestsModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Number, Title, Status, Tokens, FirstToken, Interval, Columns };
    using QAbstractTableModel::QAbstractTableModel;

    // `cursor`: what finished or began later is shown as it was at this step. `shown`: the state there, if it is known.
    void setRows(std::vector<trace::RequestRow> rows, Step cursor,
                 std::shared_ptr<const state::Snapshot> shown = nullptr);
    const trace::RequestRow* rowAt(int row) const;
    int rowOf(RequestId request) const; // -1: not here

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString statusText(const trace::RequestRow& row) const;
    QString text(const trace::RequestRow& row, int column) const;
    const state::RequestState* alive(RequestId request) const;
    std::vector<trace::RequestRow> m_rows; // by id
    std::shared_ptr<const state::Snapshot> m_shown;
    Step m_cursor = 0;
};

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Paints block tables: a row per sequence, physical ids in logical order, joined cells, a token ruler on top; below a
// hairline the requests that wait. Only what is visible is touched. GUI thread.
#pragma once

#include "core/query/block_tables.h"
#include "core/state/snapshot.h"
#include "ui/bridge/linked_state.h"
#include "ui/theme/theme.h"
#include "ui/views/cell_painter.h"

#include <memory>
#include <optional>
#include <vector>

namespace kvatlas::ui {

struct TableRow {
    RequestId request;
    SequenceId sequence; // 0: the request holds no block
    std::uint32_t tokens = 0;
    std::shared_ptr<const std::vector<BlockId>> table; // null without a sequence
    state::RequestStatus status = state::RequestStatus::Waiting;
    Step arrivedStep = 0;
    QString title;
};

// Sequences in this order, then the requests that wait, by arrival.
std::vector<TableRow> laneRows(const state::Snapshot& snapshot, query::TableOrder order);

struct TableCell {
    std::size_t row = 0;
    std::uint32_t logical = 0;
    friend bool operator==(const TableCell&, const TableCell&) = default;
};

struct TableScene {
    const Theme* theme = nullptr;
    std::shared_ptr<const state::Snapshot> snapshot;
    const std::vector<TableRow>* rows = nullptr;
    Selection selection;
    bool isolate = true;
    std::optional<BlockId> hovered;
    std::optional<TableCell> focused;
};

class BlockTablePainter {
public:
    // Logical pixels; painting scales them.
    static constexpr int kPadding = 12, kRuler = 20, kRowPitch = 24, kCellWidth = 24, kCellHeight = 22, kCellsLeft = 78,
                         kWaitingGap = 26;

    static QSize contentSize(const std::vector<TableRow>& rows);
    static QRect cellRect(const std::vector<TableRow>& rows, TableCell cell); // logical, before scrolling
    static std::optional<TableCell> cellAt(const std::vector<TableRow>& rows, QPoint point);
    static std::optional<std::size_t> rowAt(const std::vector<TableRow>& rows, QPoint point);

    // `view` in device pixels of the painter's DeviceSpace; `scroll` in logical pixels.
    void paint(QPainter& painter, const QRect& view, double scale, QPoint scroll, const TableScene& scene, bool vector);

private:
    void paintRow(QPainter& painter, const QRect& view, QPoint scroll, const TableScene& scene, std::size_t index);
    void paintRuler(QPainter& painter, const QRect& view, QPoint scroll, const TableScene& scene);
    QRect device(const QRect& logical, const QRect& view, QPoint scroll) const;

    CellPainter m_cells;
    double m_scale = 1;
};

} // namespace kvatlas::ui

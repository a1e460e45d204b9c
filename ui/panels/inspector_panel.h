// SPDX-License-Identifier: Apache-2.0
// One selection in full: a block (state, size, owner, its slots as token chips) or a request (facts, blocks, text).
// The lock keeps it while something else is selected. GUI thread.
#pragma once

#include "ui/panels/surface.h"
#include "ui/views/cell_painter.h"
#include "ui/workbench.h"

#include <QScrollArea>

class QLabel;
class QToolButton;

namespace kvatlas::ui {

// The painted body; its words are its accessible description too.
class InspectorBody : public QWidget {
    Q_OBJECT
public:
    InspectorBody(const Workbench& bench, QWidget* parent);

    struct Chip {
        QString text;
        bool filled = true;
    };
    struct Content {
        CellLook cell; // the big one
        QString cellLabel, title, subtitle;
        std::vector<std::pair<QString, QString>> facts; // name, value
        std::vector<RequestId> usedBy;
        QString slotsTitle;
        std::vector<Chip> chips;
        QString textTitle, text;
        QString emptyText; // nothing selected
    };
    void setContent(Content content);
    const Content& content() const { return m_content; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override { return {280, heightForWidth(width())}; }

signals:
    void requestClicked(kvatlas::RequestId request);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;

private:
    int lay(QPainter* painter, int width) const; // paints when there is a painter; returns the height
    const Workbench m_bench;
    Content m_content;
    mutable std::vector<std::pair<QRect, RequestId>> m_chipRects;
};

class InspectorPanel : public Surface {
    Q_OBJECT
public:
    explicit InspectorPanel(const Workbench& bench, QWidget* parent = nullptr);
    const InspectorBody& body() const { return *m_body; }
    void setLocked(bool locked);

private:
    void restyle();
    void takeSelection();
    void refresh();
    InspectorBody::Content blockContent(BlockId id) const;
    InspectorBody::Content requestContent(RequestId request) const;

    const Workbench m_bench;
    QLabel* m_title;
    QToolButton* m_lock;
    QScrollArea* m_scroll;
    InspectorBody* m_body;
    Selection m_shown;
};

} // namespace kvatlas::ui

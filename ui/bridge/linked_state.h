// SPDX-License-Identifier: Apache-2.0
// What all views and lanes share: one cursor (a step), one selection, one hovered block, how cells are coloured.
// GUI thread; owned by the main window.
#pragma once

#include "core/base/ids.h"

#include <QObject>

#include <optional>

namespace kvatlas::ui {

struct Selection {
    RequestId request;             // 0: none
    std::optional<BlockId> block;  // a physical block
    std::optional<Position> token; // of the request

    bool empty() const { return request == RequestId() && !block && !token; }
    friend bool operator==(const Selection&, const Selection&) = default;
};

enum class ColourBy { Owner, State, Age, References };

class LinkedState : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    // Following: the cursor is the newest step. Moving the cursor stops following.
    bool following() const { return m_following; }
    void setFollowing(bool on);
    Step cursor() const { return m_cursor; }
    void scrubTo(Step step);  // by the user: stops following
    void followTo(Step step); // by the stream, while following

    const Selection& selection() const { return m_selection; }
    void select(const Selection& selection);
    void clearSelection() { select({}); }

    std::optional<BlockId> hovered() const { return m_hovered; }
    void hover(std::optional<BlockId> block);

    ColourBy colourBy() const { return m_colourBy; }
    void setColourBy(ColourBy colourBy);
    bool isolating() const { return m_isolating; } // dims all but the selected request
    void setIsolating(bool on);

signals:
    void cursorMoved(kvatlas::Step step, bool byUser);
    void followingChanged(bool on);
    void selectionChanged();
    void hoverChanged();
    void colourByChanged();

private:
    bool m_following = true, m_isolating = true;
    Step m_cursor = 0;
    Selection m_selection;
    std::optional<BlockId> m_hovered;
    ColourBy m_colourBy = ColourBy::Owner;
};

} // namespace kvatlas::ui

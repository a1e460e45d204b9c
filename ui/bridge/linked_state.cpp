// SPDX-License-Identifier: Apache-2.0
#include "ui/bridge/linked_state.h"

namespace kvatlas::ui {

void LinkedState::setFollowing(bool on) {
    if (m_following == on)
        return;
    m_following = on;
    emit followingChanged(on);
}

void LinkedState::scrubTo(Step step) {
    setFollowing(false);
    if (m_cursor == step)
        return;
    m_cursor = step;
    emit cursorMoved(step, true);
}

void LinkedState::followTo(Step step) {
    if (m_cursor == step)
        return;
    m_cursor = step;
    emit cursorMoved(step, false);
}

void LinkedState::select(const Selection& selection) {
    if (m_selection == selection)
        return;
    m_selection = selection;
    emit selectionChanged();
}

void LinkedState::hover(std::optional<BlockId> block) {
    if (m_hovered == block)
        return;
    m_hovered = block;
    emit hoverChanged();
}

void LinkedState::setColourBy(ColourBy colourBy) {
    if (m_colourBy == colourBy)
        return;
    m_colourBy = colourBy;
    emit colourByChanged();
}

void LinkedState::setIsolating(bool on) {
    if (m_isolating == on)
        return;
    m_isolating = on;
    emit selectionChanged();
}

} // namespace kvatlas::ui

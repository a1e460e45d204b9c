// SPDX-License-Identifier: Apache-2.0
// What every view and panel is given: the theme, the lanes, the shared cursor and selection. References to objects of
// the main window that outlive the views. GUI thread.
#pragma once

#include "ui/bridge/lane_set.h"
#include "ui/bridge/linked_state.h"
#include "ui/theme/appearance.h"

namespace kvatlas::ui {

struct Workbench {
    Appearance& appearance;
    LinkedState& linked;
    LaneSet& lanes;

    const Theme& theme() const { return appearance.theme(); }
};

// A token's text as views show it: leading and inner spaces as middle dots, line ends as signs.
QString visibleToken(const std::string& piece);

// The text of several tokens; a character that is not complete yet is left out.
QString textOf(const Lane& lane, const std::vector<TokenId>& tokens);

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// Perceptual colour tables from resources/colour_maps.json: low is dark, high is bright, in every theme.
// Loaded once, then immutable; any thread.
#pragma once

#include <QColor>

#include <array>

namespace kvatlas::ui {

using ColourTable = std::array<QRgb, 256>;

const ColourTable& viridis();
const ColourTable& cividis();

} // namespace kvatlas::ui

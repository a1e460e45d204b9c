// SPDX-License-Identifier: Apache-2.0
// kvatlas --export: opens a session, goes to a step, writes one picture. GUI thread; no display needed with Qt's
// offscreen platform. Errors: one sentence each; a session that does not answer within a minute is one.
#pragma once

#include "app/window/options.h"
#include "ui/main_window.h"

namespace kvatlas::app {

Result<void> exportHeadless(ui::MainWindow& window, const WindowOptions& options);

} // namespace kvatlas::app

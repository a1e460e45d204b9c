// SPDX-License-Identifier: Apache-2.0
// How both programs end (README, "Command line").
#pragma once

#include "core/base/result.h"

namespace kvatlas::app {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitRefused = 3;
constexpr int kExitOutOfMemory = 4; // memory or blocks; also when one request of several was refused
constexpr int kExitHungUp = 129;
constexpr int kExitInterrupted = 130;
constexpr int kExitTerminated = 143;

int exitStatusOf(ErrorKind kind);

} // namespace kvatlas::app

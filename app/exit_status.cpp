// SPDX-License-Identifier: Apache-2.0
#include "app/exit_status.h"

namespace kvatlas::app {

int exitStatusOf(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::Failed:
        return kExitFailed;
    case ErrorKind::Usage:
        return kExitUsage;
    case ErrorKind::Refused:
        return kExitRefused;
    case ErrorKind::OutOfMemory:
        return kExitOutOfMemory;
    }
    return kExitFailed;
}

} // namespace kvatlas::app

// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a wish to end properly. From construction to destruction the first such signal is noted; a
// second one ends the program at once. Main thread; one at a time.
#pragma once

#include <csignal>

namespace kvatlas::app {

class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    bool wanted() const;
    int exitStatus() const; // 130 or 143; kExitOk when none was wanted

private:
    struct sigaction m_beforeInt {
    }, m_beforeTerm{};
};

} // namespace kvatlas::app

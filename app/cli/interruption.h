// SPDX-License-Identifier: Apache-2.0
// SIGHUP, SIGINT and SIGTERM as a wish to end properly. From construction to destruction the first such signal is
// noted; a second one ends the program at once. Main thread; one at a time.
#pragma once

#include <array>
#include <csignal>

namespace kvatlas::app {

class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    bool wanted() const;
    int exitStatus() const; // 129, 130 or 143; kExitOk when none was wanted

private:
    static constexpr std::array kSignals{SIGHUP, SIGINT, SIGTERM};
    std::array<struct sigaction, kSignals.size()> m_before{};
};

} // namespace kvatlas::app

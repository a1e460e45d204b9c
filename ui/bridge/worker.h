// SPDX-License-Identifier: Apache-2.0
// One thread for slow work (files, models): runs jobs in the order given. GUI thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kvatlas::ui {

class Worker {
public:
    Worker();
    void run(std::function<void()> job); // nothing after finish()
    // Drops the jobs that have not begun and waits for the one that has. The destructor does so too.
    void finish();

private:
    void work(const std::stop_token& stop);

    std::mutex m_mutex;
    std::condition_variable_any m_came;
    std::deque<std::function<void()>> m_jobs;
    std::jthread m_thread; // last: joined before the rest goes
};

} // namespace kvatlas::ui

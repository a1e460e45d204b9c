// SPDX-License-Identifier: Apache-2.0
#include "ui/bridge/worker.h"

namespace kvatlas::ui {

Worker::Worker()
    : m_thread([this](std::stop_token stop) { work(std::move(stop)); }) {}

void Worker::run(std::function<void()> job) {
    const std::scoped_lock lock(m_mutex);
    m_jobs.push_back(std::move(job));
    m_came.notify_one();
}

void Worker::finish() {
    m_thread.request_stop();
    if (m_thread.joinable())
        m_thread.join();
}

void Worker::work(const std::stop_token& stop) {
    for (;;) {
        std::function<void()> job;
        {
            std::unique_lock lock(m_mutex);
            if (!m_came.wait(lock, stop, [this] { return !m_jobs.empty(); }) || stop.stop_requested())
                return;
            job = std::move(m_jobs.front());
            m_jobs.pop_front();
        }
        job();
    }
}

} // namespace kvatlas::ui

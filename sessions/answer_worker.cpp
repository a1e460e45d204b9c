// SPDX-License-Identifier: Apache-2.0
#include "sessions/answer_worker.h"

#include <algorithm>

namespace kvatlas::sessions {

AnswerWorker::AnswerWorker(std::function<AnswerBody(const source::Question&)> answer)
    : m_answer(std::move(answer))
    , m_thread([this] { run(); }) {}

AnswerWorker::~AnswerWorker() {
    stop();
}

void AnswerWorker::ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler) {
    {
        const std::lock_guard lock(m_mutex);
        if (m_stopping)
            return;
        std::erase_if(m_jobs, [&](const Job& job) { return job.handler && job.question.index() == question.index(); });
        m_jobs.push_back({tag, question, std::move(handler), {}});
    }
    m_wake.notify_one();
}

void AnswerWorker::post(std::function<void()> task) {
    {
        const std::lock_guard lock(m_mutex);
        if (m_stopping)
            return;
        m_jobs.push_back({0, {}, {}, std::move(task)});
    }
    m_wake.notify_one();
}

void AnswerWorker::stop() {
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
        m_jobs.clear();
    }
    m_wake.notify_one();
    if (m_thread.joinable())
        m_thread.join();
}

void AnswerWorker::run() {
    std::unique_lock lock(m_mutex);
    while (true) {
        m_wake.wait(lock, [&] { return m_stopping || !m_jobs.empty(); });
        if (m_stopping)
            return;
        const Job job = std::move(m_jobs.front());
        m_jobs.pop_front();
        lock.unlock();
        if (job.handler)
            job.handler({job.tag, m_answer(job.question)});
        else
            job.task();
        lock.lock();
    }
}

} // namespace kvatlas::sessions

// SPDX-License-Identifier: Apache-2.0
// Answers questions one after the other on a thread of its own. Of each kind only the newest question waits: an older
// one that has not begun is dropped and its handler never called. ask() and post() on any thread; handlers, tasks and
// `answer` on the worker's.
#pragma once

#include "core/source/event_source.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kvatlas::sessions {

using AnswerBody = decltype(source::Answer::body);

// An error becomes an answer that holds it.
template <class T> AnswerBody answerOf(Result<T>&& result) {
    if (result)
        return std::move(*result);
    return std::move(result.error());
}

class AnswerWorker {
public:
    explicit AnswerWorker(std::function<AnswerBody(const source::Question&)> answer);
    ~AnswerWorker(); // stops

    void ask(std::uint64_t tag, source::Question question, source::AnswerHandler handler);
    void post(std::function<void()> task); // in turn with the questions; never dropped before stop()

    // Drops what waits, returns after the last handler; nothing is called afterwards. Not on the worker's thread.
    void stop();

private:
    struct Job {
        std::uint64_t tag = 0;
        source::Question question;
        source::AnswerHandler handler; // empty: a task
        std::function<void()> task;
    };
    void run();

    std::function<AnswerBody(const source::Question&)> m_answer;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<Job> m_jobs;
    bool m_stopping = false;
    std::thread m_thread;
};

} // namespace kvatlas::sessions

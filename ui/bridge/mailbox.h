// SPDX-License-Identifier: Apache-2.0
// Work handed to the thread that the mailbox lives in (the GUI's): run there, in the order posted, by its event loop.
// The hand-over is under a lock of our own, so that ThreadSanitizer sees it: the distribution's Qt is not instrumented.
#pragma once

#include <QObject>

#include <deque>
#include <functional>
#include <mutex>

namespace kvatlas::ui {

class Mailbox : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    // Any thread, until the destructor begins. What has not run by then never does.
    void post(std::function<void()> work);

private:
    Q_INVOKABLE void runWaiting();

    std::mutex m_mutex;
    std::deque<std::function<void()>> m_waiting;
};

} // namespace kvatlas::ui

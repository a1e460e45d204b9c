// SPDX-License-Identifier: Apache-2.0
#include "ui/bridge/mailbox.h"

#include <QPointer>

namespace kvatlas::ui {

void Mailbox::post(std::function<void()> work) {
    {
        const std::scoped_lock lock(m_mutex);
        m_waiting.push_back(std::move(work));
        if (m_waiting.size() > 1)
            return; // runWaiting is on its way, or will take this one as well
    }
    QMetaObject::invokeMethod(this, "runWaiting", Qt::QueuedConnection);
}

void Mailbox::runWaiting() {
    const QPointer<Mailbox> alive(this); // work may delete the receiver, and this with it
    while (alive) {
        std::function<void()> work;
        {
            const std::scoped_lock lock(m_mutex);
            if (m_waiting.empty())
                return;
            work = std::move(m_waiting.front());
            m_waiting.pop_front();
        }
        work();
    }
}

} // namespace kvatlas::ui

// SPDX-License-Identifier: Apache-2.0
// What crosses threads on its way to the window: order, completeness, and nothing after the end.
#include "ui/bridge/lane_set.h"
#include "ui/bridge/mailbox.h"
#include "ui/bridge/worker.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace kvatlas::ui {

namespace {

// Keeps what it is told.
class NotingSource final : public source::EventSource {
public:
    explicit NotingSource(std::vector<source::Command>& commands)
        : m_commands(commands) {}
    source::SourceInfo info() const override { return {"noting", "", "", {.control = true, .seek = true}}; }
    Result<void> start(trace::EventSink&) override { return {}; }
    void stop() override {}
    void send(source::Command command) override { m_commands.push_back(std::move(command)); }
    void ask(std::uint64_t, source::Question, source::AnswerHandler) override {}
    std::string piece(TokenId) const override { return {}; }

private:
    std::vector<source::Command>& m_commands;
};

} // namespace

class BridgeTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void mailRunsOnTheReceiversThreadInEachSendersOrder() {
        constexpr int kSenders = 4, kLetters = 5'000;
        Mailbox mailbox;
        std::array<std::vector<int>, kSenders> got;
        bool elsewhere = false;
        const auto home = std::this_thread::get_id();
        {
            std::vector<std::jthread> senders;
            for (int sender = 0; sender < kSenders; ++sender)
                senders.emplace_back([&, sender] {
                    for (int letter = 0; letter < kLetters; ++letter)
                        mailbox.post([&, sender, letter] {
                            elsewhere = elsewhere || std::this_thread::get_id() != home;
                            got[static_cast<std::size_t>(sender)].push_back(letter);
                        });
                });
            const auto all = [&] {
                return std::all_of(got.begin(), got.end(),
                                   [](const auto& letters) { return letters.size() == kLetters; });
            };
            QVERIFY(QTest::qWaitFor(all, 20'000));
        }
        QVERIFY(!elsewhere);
        for (const std::vector<int>& letters : got)
            QVERIFY(std::is_sorted(letters.begin(), letters.end()));
    }

    void mailForAReceiverThatIsGoneIsDropped() {
        auto receiver = std::make_unique<Mailbox>();
        int ran = 0;
        receiver->post([&] {
            ++ran;
            receiver.reset();
        });
        receiver->post([&] { ++ran; });
        QTest::qWait(20);
        QCOMPARE(ran, 1);
        auto unread = std::make_unique<Mailbox>();
        unread->post([&] { ++ran; });
        unread.reset();
        QTest::qWait(20);
        QCOMPARE(ran, 1);
    }

    void mailPostedWhileMailRunsComesAfterIt() {
        Mailbox mailbox;
        std::vector<int> order;
        mailbox.post([&] {
            mailbox.post([&] { order.push_back(2); });
            order.push_back(1);
        });
        QVERIFY(QTest::qWaitFor([&] { return order.size() == 2; }));
        QCOMPARE(order, (std::vector{1, 2}));
    }

    void aLaneKeepsItsOwnPaceUntilAnotherIsChosen() {
        std::vector<source::Command> commands;
        LinkedState linked;
        LaneSet lanes(linked);
        QVERIFY(lanes.replaceAll({std::make_unique<NotingSource>(commands), "", "", true}));
        const auto speed = [&] { return std::get<source::SetSpeed>(commands.back()).stepsPerSecond; };
        QVERIFY(!speed()); // a replay: as recorded
        lanes.setSpeed(8);
        QCOMPARE(speed(), std::optional(8.0));
        lanes.setSpeed({});
        QVERIFY(!speed());
    }

    void aWorkerRunsJobsInOrderAndDropsWhatHasNotBegun() {
        Worker worker;
        std::vector<int> order; // the worker's, until it has finished
        std::latch begun(1), mayEnd(1);
        for (int job = 0; job < 3; ++job)
            worker.run([&order, job] { order.push_back(job); });
        worker.run([&] {
            begun.count_down();
            mayEnd.wait();
            order.push_back(3);
        });
        worker.run([&] { order.push_back(4); });
        begun.wait();
        std::jthread opener([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50)); // finish() is waiting by then
            mayEnd.count_down();
        });
        worker.finish();
        QCOMPARE(order, (std::vector{0, 1, 2, 3}));
        worker.run([&] { order.push_back(5); });
        worker.finish();
        QCOMPARE(order.size(), std::size_t(4));
    }
};

} // namespace kvatlas::ui

QTEST_GUILESS_MAIN(kvatlas::ui::BridgeTest)
#include "bridge_test.moc"

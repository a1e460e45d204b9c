// SPDX-License-Identifier: Apache-2.0
// The lanes of the window (one today; nothing assumes one), polled at 60 Hz, and the rules that tie them to the shared
// cursor. GUI thread; owned by the main window.
#pragma once

#include "ui/bridge/lane.h"
#include "ui/bridge/linked_state.h"

#include <QElapsedTimer>
#include <QTimer>

#include <memory>
#include <vector>

namespace kvatlas::ui {

class LaneSet : public QObject {
    Q_OBJECT
public:
    static constexpr std::size_t kMaxLanes = 4;

    explicit LaneSet(LinkedState& linked, QObject* parent = nullptr);
    ~LaneSet() override;

    std::size_t size() const { return m_lanes.size(); }
    bool empty() const { return m_lanes.empty(); }
    Lane* lane(std::size_t index) const { return index < m_lanes.size() ? m_lanes[index].get() : nullptr; }

    // Starts the run; then closes what is open and shows this one alone. When it does not start, all stays as it was.
    Result<void> replaceAll(OpenedRun run);
    void closeAll(); // stops every source

    Step lastStep() const;
    bool playing() const;
    // While looking back into a live run that has nothing more to do: moves the cursor through what was recorded.
    void setPlaying(bool on);
    bool canReplay() const; // there is such a run, and steps after the cursor
    bool replaying() const { return m_sinceReplay.isValid(); }
    void stepBy(int steps); // forward or back from the cursor
    void goTo(Step step);
    void setFollowing(bool on);
    void setSpeed(std::optional<double> stepsPerSecond); // none: each at its own pace
    std::optional<double> speed() const { return m_stepsPerSecond; }
    void poll(); // the timer calls it; tests too

signals:
    void lanesChanged();
    void shownChanged();
    void historyChanged();
    void requestTextChanged();
    void playingChanged();
    void infoChanged();
    void problemFound(const QString& sentence);
    void problemPassed(const QString& sentence);

private:
    void showCursor(Step step, bool byUser);
    void trackShown();
    void stopReplay();
    void replay(); // as many steps as are due
    std::int64_t nsToNext(Step step) const;

    LinkedState& m_linked;
    std::vector<std::unique_ptr<Lane>> m_lanes;
    QTimer m_timer;
    std::optional<double> m_stepsPerSecond;
    QElapsedTimer m_sinceReplay;   // valid while a live run's past is played
    std::int64_t m_replayedNs = 0; // of it, spent on steps already shown
};

} // namespace kvatlas::ui

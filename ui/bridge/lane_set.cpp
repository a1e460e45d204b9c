// SPDX-License-Identifier: Apache-2.0
#include "ui/bridge/lane_set.h"

#include <algorithm>

namespace kvatlas::ui {

namespace {
constexpr int kPollIntervalMs = 16;
constexpr std::int64_t kLongestStepNs = 1'000'000'000;
} // namespace

LaneSet::LaneSet(LinkedState& linked, QObject* parent)
    : QObject(parent)
    , m_linked(linked) {
    m_timer.setInterval(kPollIntervalMs);
    m_timer.setTimerType(Qt::PreciseTimer);
    connect(&m_timer, &QTimer::timeout, this, &LaneSet::poll);
    connect(&m_linked, &LinkedState::cursorMoved, this, &LaneSet::showCursor);
    connect(&m_linked, &LinkedState::followingChanged, this, [this](bool on) {
        if (!on)
            return;
        for (auto& lane : m_lanes)
            lane->follow();
        trackShown();
    });
}

LaneSet::~LaneSet() {
    for (auto& lane : m_lanes)
        lane->stop();
}

Result<void> LaneSet::replaceAll(OpenedRun run) {
    auto lane = std::make_unique<Lane>(QLatin1Char('A'), std::move(run));
    if (auto started = lane->start(); !started)
        return started;
    closeAll();
    m_sinceReplay.invalidate();
    connect(lane.get(), &Lane::shownChanged, this, &LaneSet::trackShown);
    connect(lane.get(), &Lane::historyChanged, this, &LaneSet::historyChanged);
    connect(lane.get(), &Lane::requestTextChanged, this, &LaneSet::requestTextChanged);
    connect(lane.get(), &Lane::playingChanged, this, &LaneSet::playingChanged);
    connect(lane.get(), &Lane::infoChanged, this, &LaneSet::infoChanged);
    connect(lane.get(), &Lane::problemFound, this, &LaneSet::problemFound);
    connect(lane.get(), &Lane::problemPassed, this, &LaneSet::problemPassed);
    m_linked.clearSelection();
    m_linked.hover({});
    m_linked.setFollowing(true);
    m_linked.followTo(0);
    m_lanes.push_back(std::move(lane));
    m_lanes.back()->setSpeed(m_stepsPerSecond);
    m_timer.start();
    emit lanesChanged();
    return {};
}

void LaneSet::closeAll() {
    m_timer.stop();
    if (m_lanes.empty())
        return;
    for (auto& lane : m_lanes)
        lane->stop();
    m_lanes.clear();
    emit lanesChanged();
}

Step LaneSet::lastStep() const {
    Step last = 0;
    for (const auto& lane : m_lanes)
        last = std::max(last, lane->lastStep());
    return last;
}

bool LaneSet::playing() const {
    return replaying() || std::any_of(m_lanes.begin(), m_lanes.end(), [](const auto& lane) { return lane->playing(); });
}

bool LaneSet::canReplay() const {
    return !m_linked.following() && m_linked.cursor() < lastStep() &&
           std::any_of(m_lanes.begin(), m_lanes.end(), [](const auto& lane) {
               return lane->capabilities().live && (lane->idle() || lane->ended()) && !lane->history()->steps.empty();
           });
}

void LaneSet::setPlaying(bool on) {
    if (replaying()) {
        stopReplay();
        return;
    }
    if (on && canReplay()) {
        m_sinceReplay.start();
        m_replayedNs = 0;
        emit playingChanged();
        return;
    }
    for (auto& lane : m_lanes)
        lane->setPlaying(on);
    if (on)
        m_linked.setFollowing(true);
}

void LaneSet::stepBy(int steps) {
    const bool atNewest =
        std::all_of(m_lanes.begin(), m_lanes.end(), [](const auto& lane) { return lane->shown() == lane->latest(); });
    if (steps > 0 && atNewest) {
        m_linked.setFollowing(true);
        for (auto& lane : m_lanes)
            lane->stepForward(static_cast<std::uint32_t>(steps));
        return;
    }
    const std::int64_t target = std::int64_t{m_linked.cursor()} + steps;
    goTo(static_cast<Step>(std::clamp<std::int64_t>(target, 0, lastStep())));
}

void LaneSet::stopReplay() {
    if (!replaying())
        return;
    m_sinceReplay.invalidate();
    emit playingChanged();
}

void LaneSet::replay() {
    if (!replaying() || m_lanes.empty())
        return;
    const bool answered = m_lanes.front()->shown()->step == m_linked.cursor() || m_lanes.front()->damagedHere();
    if (!answered)
        return; // no step is left out for being late
    const Step last = lastStep();
    Step step = m_linked.cursor();
    while (step < last && m_sinceReplay.nsecsElapsed() - m_replayedNs >= nsToNext(step))
        m_replayedNs += nsToNext(step++);
    if (step != m_linked.cursor())
        m_linked.scrubTo(step);
    if (step < last)
        return;
    stopReplay();
    m_linked.setFollowing(true);
}

// How long the step is looked at: by the chosen speed, else as long as the next one took.
std::int64_t LaneSet::nsToNext(Step step) const {
    if (m_stepsPerSecond && *m_stepsPerSecond > 0)
        return static_cast<std::int64_t>(1e9 / *m_stepsPerSecond);
    const auto& rows = m_lanes.front()->history()->steps;
    const auto next = std::upper_bound(rows.begin(), rows.end(), step,
                                       [](Step at, const trace::StepRow& row) { return at < row.step; });
    if (next == rows.begin() || next == rows.end())
        return 0;
    const auto before = std::prev(next);
    return std::clamp<std::int64_t>((next->endNs - before->endNs) / (next->step - before->step), 0, kLongestStepNs);
}

void LaneSet::goTo(Step step) {
    stopReplay();
    for (auto& lane : m_lanes)
        if (lane->capabilities().seek)
            lane->setPlaying(false);
    m_linked.scrubTo(std::min(step, lastStep()));
}

void LaneSet::setFollowing(bool on) {
    stopReplay();
    m_linked.setFollowing(on);
}

void LaneSet::setSpeed(std::optional<double> stepsPerSecond) {
    m_stepsPerSecond = stepsPerSecond;
    for (auto& lane : m_lanes)
        lane->setSpeed(stepsPerSecond);
}

void LaneSet::poll() {
    for (auto& lane : m_lanes)
        lane->poll();
    replay();
}

void LaneSet::showCursor(Step step, bool byUser) {
    if (!byUser)
        return;
    for (auto& lane : m_lanes)
        lane->showStep(step);
}

void LaneSet::trackShown() {
    if (m_linked.following() && !m_lanes.empty())
        m_linked.followTo(m_lanes.front()->shown()->step);
    emit shownChanged();
}

} // namespace kvatlas::ui

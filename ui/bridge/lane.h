// SPDX-License-Identifier: Apache-2.0
// One lane: one source, one StateStore, what the views show of it. Everything public is GUI thread and returns at once;
// the source's answers arrive on its threads, are folded there and posted here. The destructor stops the source.
// Errors: a refused event, a question that failed, a recording that stopped: problemFound, one sentence each, once.
#pragma once

#include "core/source/event_source.h"
#include "core/state/snapshot.h"
#include "core/state/state_store.h"
#include "ui/bridge/mailbox.h"
#include "ui/run_launcher.h"

#include <QElapsedTimer>
#include <QHash>
#include <QObject>
#include <QString>

#include <memory>
#include <optional>

namespace kvatlas::ui {

using SnapshotPtr = std::shared_ptr<const state::Snapshot>;
using HistoryPtr = std::shared_ptr<const source::HistoryAnswer>;

class Lane : public QObject {
    Q_OBJECT
public:
    Lane(QChar letter, OpenedRun run, QObject* parent = nullptr);
    ~Lane() override;

    Result<void> start();
    void stop(); // returns after the last delivery

    QChar letter() const { return m_letter; }
    const source::SourceInfo& info() const { return m_info; }
    const source::Capabilities& capabilities() const { return m_info.capabilities; }
    QString modelName() const;

    // Never null, and replaced by poll(): a copy keeps what it points to.
    const SnapshotPtr& shown() const { return m_shown; }   // at the cursor
    const SnapshotPtr& latest() const { return m_latest; } // newest delivered
    const HistoryPtr& history() const { return m_history; }
    Step lastStep() const; // newest step that can be shown
    bool ended() const { return m_latest->ended; }
    bool alive(RequestId request) const; // in the newest state, not at the cursor
    // The run as last seen: also where the cursor's step cannot be shown. Null before it started.
    std::shared_ptr<const trace::RunStarted> run() const { return m_lastRun; }
    // The cursor's step cannot be shown: shown() is empty, and the source said why.
    bool damagedHere() const { return !m_shown->run && (!m_unanswered.isEmpty() || !m_info.recording.empty()); }
    std::optional<Step> recordedTo() const; // of a run that goes on without being recorded; else none
    bool playing() const { return m_playing; }
    bool idle() const; // a run that has nothing to do until a prompt comes

    // Cursor. Following shows the newest; elsewhere a source that seeks is told to, one that is live is asked.
    void follow();
    void showStep(Step step);

    void setPlaying(bool on);
    void stepForward(std::uint32_t steps);
    void setSpeed(std::optional<double> stepsPerSecond); // as source::SetSpeed
    void send(source::Command command);

    std::string piece(TokenId token) const { return m_run.source->piece(token); }
    // Text of a request, up to the shown step while it is alive; asked for when it is unknown (requestTextChanged).
    struct Text {
        std::vector<TokenId> promptTokens, outputTokens;
    };
    Text requestText(RequestId request);

    void poll(); // 60 Hz: takes a new snapshot when there is one; 5 Hz: asks for the history

signals:
    void shownChanged();
    void historyChanged();
    void requestTextChanged();
    void playingChanged();
    void infoChanged();
    void problemFound(const QString& sentence);
    void problemPassed(const QString& sentence); // it is not about what is shown now

private:
    void refreshInfo();
    void show(SnapshotPtr snapshot);
    void askHistory();
    void takeHistory(std::uint64_t tag, std::variant<Error, source::HistoryAnswer> body);
    void askState(Step step);
    void takeState(std::uint64_t tag, std::variant<Error, SnapshotPtr> body);
    void askText(RequestId request);
    void report(const QString& sentence);
    void withdraw(const QString& sentence);

    QChar m_letter;
    Mailbox m_mailbox; // what the source's thread delivers; before the source, which posts until it is stopped
    OpenedRun m_run;
    state::StateStore m_store;
    source::SourceInfo m_info;
    const QString m_foundAtOpening; // what the source said of its recording before anything was shown
    SnapshotPtr m_latest, m_shown;
    std::shared_ptr<const trace::RunStarted> m_lastRun;
    HistoryPtr m_history;
    std::optional<Step> m_pinned; // looking back: the step that was asked for
    QString m_unanswered;         // why the state at that step could not be had; empty: it could
    bool m_playing = false, m_started = false, m_stopped = false;
    std::uint64_t m_tag = 0, m_historyTag = 0, m_stateTag = 0;
    bool m_historyAsked = false;
    std::pair<Step, bool> m_historyOf{0, false}; // the latest (step, ended) that the history was asked after
    bool m_historyFresh = false;
    QElapsedTimer m_sinceHistory, m_sinceInfo;
    QHash<quint64, source::RequestTextAnswer> m_texts; // of requests that have left the state
    QHash<quint64, qint64> m_textsAsked;
    QString m_lastProblem, m_lastRecording;
};

} // namespace kvatlas::ui

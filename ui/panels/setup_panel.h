// SPDX-License-Identifier: Apache-2.0
// What to run: model, strategy, scenario or own prompts, threads, arithmetic, recording; and the Run button, which
// stays in sight while the fields scroll. Knows nothing of engines: it says what was chosen. GUI thread.
#pragma once

#include "ui/panels/surface.h"
#include "ui/run_launcher.h"
#include "ui/workbench.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace kvatlas::ui {

class SetupPanel : public Surface {
    Q_OBJECT
public:
    explicit SetupPanel(const Workbench& bench, QWidget* parent = nullptr);

    void setChoices(const Choices& choices);
    const Choices& choices() const { return m_choices; }
    void chooseModel(const QString& file); // one that is not listed is added
    bool chooseStrategy(const QString& idOrName);
    bool chooseScenario(const QString& idOrName);
    // What a recording was made from, where such presets exist.
    void adopt(const QString& scenarioName, const std::string& strategyJson);
    int modelIndex() const;
    int scenarioIndex() const;
    QString modelName() const;
    QString scenarioName() const;
    QString strategyName() const;

    RunOrder order() const;
    QString blockedBy() const;                  // why Run is not possible; empty when it is
    void setBusy(const QString& what);          // empty: idle
    void setRecordingName(const QString& file); // of the run that is shown; empty: none is

signals:
    void runRequested();
    void promptAdded(const QString& requestJson); // for the run that goes on
    void browseForModel();
    void choiceChanged();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QWidget* section(const QString& name, QWidget* field, QWidget* about = nullptr);
    void restyle();
    void refresh();
    QString promptJson(const QString& prompt) const;

    const Workbench m_bench;
    Choices m_choices;
    QString m_busy, m_recordingName;
    QComboBox *m_model, *m_strategy, *m_scenario, *m_arithmetic;
    QLabel *m_modelAbout, *m_strategyAbout, *m_scenarioAbout, *m_recordAbout;
    QPlainTextEdit* m_prompt;
    QSpinBox *m_maxTokens, *m_threads;
    QCheckBox* m_record;
    QPushButton *m_add, *m_run, *m_browse;
    std::vector<QLabel*> m_names, m_abouts;
};

} // namespace kvatlas::ui

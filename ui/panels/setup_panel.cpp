// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/setup_panel.h"

#include "core/strategy/strategy.h"
#include "core/workload/request.h"
#include "ui/theme/glyphs.h"
#include "ui/theme/number_text.h"
#include "ui/theme/plain_text.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

namespace kvatlas::ui {

namespace {

constexpr int kOwnPrompts = -1; // the scenario that is none

QString fromPath(const std::filesystem::path& path) {
    return QString::fromStdString(path.string());
}

// A combo box is as wide as its panel; its list is as wide as what it lists.
void fitList(QComboBox& combo) {
    combo.view()->setMinimumWidth(combo.view()->sizeHintForColumn(0) + 16);
}

QString strategySummary(const std::string& json) {
    const auto strategy = strategy::parse(json);
    return QString::fromStdString(strategy ? strategy::describe(*strategy) : strategy.error().message);
}

} // namespace

SetupPanel::SetupPanel(const Workbench& bench, QWidget* parent)
    : Surface(bench.appearance, parent)
    , m_bench(bench) {
    setAccessibleName(tr("Setup"));
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->setSpacing(0);
    auto* scroll = new QScrollArea(this);
    scroll->setAccessibleName(tr("Setup fields, scrolling"));
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    whole->addWidget(scroll, 1);
    auto* body = new Surface(bench.appearance, scroll->viewport());
    body->setAccessibleName(tr("Setup fields"));
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(16, 14, 16, 16);
    column->setSpacing(14);

    const auto makeCombo = [&](const QString& name) {
        auto* combo = new QComboBox(body);
        combo->setAccessibleName(name);
        combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        combo->setMinimumContentsLength(10);
        return combo;
    };
    const auto makeAbout = [&] {
        auto* label = new QLabel(body);
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        m_abouts.push_back(label);
        return label;
    };
    m_model = makeCombo(tr("Model"));
    m_modelAbout = makeAbout();
    m_browse = new QPushButton(tr("Choose a file…"), body);
    m_browse->setAccessibleName(tr("Choose a model file"));
    column->addWidget(section(tr("Model"), m_model, m_modelAbout));
    column->addWidget(m_browse, 0, Qt::AlignLeft);
    m_strategy = makeCombo(tr("Strategy"));
    m_strategyAbout = makeAbout();
    column->addWidget(section(tr("Strategy"), m_strategy, m_strategyAbout));
    m_scenario = makeCombo(tr("Scenario"));
    m_scenarioAbout = makeAbout();
    column->addWidget(section(tr("Scenario"), m_scenario, m_scenarioAbout));

    m_prompt = new QPlainTextEdit(body);
    m_prompt->setAccessibleName(tr("Own prompt"));
    m_prompt->setPlaceholderText(tr("A question of your own"));
    m_prompt->setTabChangesFocus(true);
    m_prompt->setFixedHeight(64);
    m_prompt->setProperty("field", true);
    column->addWidget(section(tr("Own prompt"), m_prompt));
    auto* promptRow = new QHBoxLayout;
    promptRow->setSpacing(8);
    m_maxTokens = new QSpinBox(body);
    m_maxTokens->setAccessibleName(tr("Tokens to generate at most"));
    m_maxTokens->setRange(1, 4096);
    m_maxTokens->setValue(128);
    m_maxTokens->setSuffix(tr(" tokens"));
    m_add = new QPushButton(tr("Add prompt"), body);
    m_add->setToolTip(tr("Send this prompt to the run that goes on"));
    promptRow->addWidget(m_maxTokens);
    promptRow->addStretch(1);
    promptRow->addWidget(m_add);
    column->addLayout(promptRow);

    m_threads = new QSpinBox(body);
    m_threads->setAccessibleName(tr("Threads"));
    m_threads->setRange(1, 256);
    m_arithmetic = makeCombo(tr("Arithmetic"));
    m_arithmetic->addItem(tr("fast (int8 products)"), QStringLiteral("fast"));
    m_arithmetic->addItem(tr("exact (float products)"), QStringLiteral("exact"));
    auto* computeRow = new QHBoxLayout;
    computeRow->setSpacing(12);
    computeRow->addWidget(section(tr("Threads"), m_threads), 1);
    computeRow->addWidget(section(tr("Arithmetic"), m_arithmetic), 2);
    column->addLayout(computeRow);

    m_record = new QCheckBox(tr("Record the run"), body);
    m_record->setChecked(true);
    m_recordAbout = makeAbout();
    m_recordAbout->setAccessibleName(tr("File of the recording"));
    auto* recordColumn = new QVBoxLayout;
    recordColumn->setSpacing(2);
    recordColumn->addWidget(m_record);
    recordColumn->addWidget(m_recordAbout);
    column->addLayout(recordColumn);
    column->addStretch(1);
    scroll->setWidget(body);
    scroll->viewport()->setAutoFillBackground(false);
    body->setAutoFillBackground(false);
    m_run = new QPushButton(tr("Run"), this);
    m_run->setProperty("primary", true);
    m_run->setObjectName(QStringLiteral("runButton"));
    auto* foot = new QVBoxLayout;
    foot->setContentsMargins(16, 8, 16, 12);
    foot->addWidget(m_run);
    whole->addLayout(foot);

    const auto changed = [this] {
        refresh();
        emit choiceChanged();
    };
    for (QComboBox* combo : {m_model, m_strategy, m_scenario, m_arithmetic})
        connect(combo, qOverload<int>(&QComboBox::currentIndexChanged), this, changed);
    connect(m_record, &QCheckBox::toggled, this, changed);
    connect(m_prompt, &QPlainTextEdit::textChanged, this, &SetupPanel::refresh);
    connect(m_run, &QPushButton::clicked, this, &SetupPanel::runRequested);
    connect(m_browse, &QPushButton::clicked, this, &SetupPanel::browseForModel);
    connect(m_add, &QPushButton::clicked, this, [this] {
        emit promptAdded(promptJson(m_prompt->toPlainText()));
        m_prompt->clear();
    });
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &SetupPanel::refresh);
    connect(&bench.lanes, &LaneSet::shownChanged, this, [this] {
        const Lane* lane = m_bench.lanes.lane(0);
        if (lane && m_add->isEnabled() && lane->ended())
            refresh();
    });
    connect(&bench.appearance, &Appearance::changed, this, &SetupPanel::restyle);
    restyle();
    setChoices({});
}

QWidget* SetupPanel::section(const QString& name, QWidget* field, QWidget* about) {
    auto* box = new QWidget(this);
    box->setAccessibleName(name);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    auto* label = new QLabel(name, box);
    label->setBuddy(field);
    m_names.push_back(label);
    column->addWidget(label);
    column->addWidget(field);
    if (about)
        column->addWidget(about);
    return box;
}

void SetupPanel::paintEvent(QPaintEvent* event) {
    Surface::paintEvent(event);
    constexpr int kFootTop = 8; // its margin above the button
    QPainter(this).fillRect(0, m_run->y() - kFootTop, width(), 1, m_bench.theme().line);
}

void SetupPanel::restyle() {
    const Theme& theme = m_bench.theme();
    const auto colour = [](QLabel* label, const QColor& ink) {
        QPalette palette = label->palette();
        palette.setColor(QPalette::WindowText, ink);
        label->setPalette(palette);
    };
    for (QLabel* label : m_names) {
        label->setFont(theme.textFont(theme.type.body - 1, QFont::Medium));
        colour(label, theme.text2);
    }
    for (QLabel* label : m_abouts) {
        label->setFont(theme.textFont(theme.type.small));
        colour(label, theme.text3);
    }
    m_recordAbout->setFont(theme.monoFont(theme.type.small));
    for (QComboBox* combo : {m_model, m_strategy, m_scenario, m_arithmetic})
        fitList(*combo);
    for (QWidget* field : {static_cast<QWidget*>(m_threads), static_cast<QWidget*>(m_maxTokens)})
        field->setFixedHeight(m_bench.appearance.heights().control);
    m_run->setFont(theme.textFont(theme.type.body, QFont::DemiBold));
    m_run->setIcon(glyphIcon(Glyph::Play, theme.accentText, theme.text3));
}

void SetupPanel::setChoices(const Choices& choices) {
    // What was chosen stays chosen; before the first list nothing was.
    const QString model = m_model->currentData().toString(), strategy = strategyName();
    const QString scenario = m_choices.scenarios.empty() ? QString() : scenarioName();
    m_choices = choices;
    const QSignalBlocker blockers[] = {QSignalBlocker(m_model), QSignalBlocker(m_strategy), QSignalBlocker(m_scenario)};
    m_model->clear();
    for (const ModelChoice& choice : m_choices.models)
        m_model->addItem(QString::fromStdString(choice.name), fromPath(choice.file));
    if (m_choices.models.empty())
        m_model->addItem(tr("No model found"));
    m_model->setEnabled(!m_choices.models.empty());
    m_strategy->clear();
    for (const FileChoice& choice : m_choices.strategies)
        m_strategy->addItem(QString::fromStdString(choice.name), QString::fromStdString(choice.id));
    m_scenario->clear();
    for (const FileChoice& choice : m_choices.scenarios)
        m_scenario->addItem(QString::fromStdString(choice.name), QString::fromStdString(choice.id));
    m_scenario->addItem(tr("Own prompts"));
    m_threads->setRange(1, static_cast<int>(std::max(1u, m_choices.processors)));
    m_threads->setValue(static_cast<int>(m_choices.defaultThreads));
    if (!model.isEmpty())
        chooseModel(model);
    chooseStrategy(strategy);
    if (!scenario.isEmpty())
        chooseScenario(scenario);
    for (QComboBox* combo : {m_model, m_strategy, m_scenario})
        fitList(*combo);
    refresh();
    emit choiceChanged();
}

void SetupPanel::chooseModel(const QString& file) {
    int index = m_model->findData(file);
    if (index < 0) {
        const QFileInfo info(file);
        m_choices.models.push_back(
            {info.completeBaseName().toStdString(), file.toStdString(), static_cast<std::uint64_t>(info.size())});
        if (m_choices.models.size() == 1)
            m_model->clear();
        m_model->addItem(info.completeBaseName(), file);
        m_model->setEnabled(true);
        fitList(*m_model);
        index = m_model->count() - 1;
    }
    m_model->setCurrentIndex(index);
    refresh();
}

namespace {
bool chooseIn(QComboBox& combo, const QString& idOrName) {
    int index = combo.findData(idOrName);
    if (index < 0)
        index = combo.findText(idOrName);
    if (index >= 0)
        combo.setCurrentIndex(index);
    return index >= 0;
}
} // namespace

bool SetupPanel::chooseStrategy(const QString& idOrName) {
    return chooseIn(*m_strategy, idOrName);
}

bool SetupPanel::chooseScenario(const QString& idOrName) {
    return chooseIn(*m_scenario, idOrName);
}

void SetupPanel::adopt(const QString& scenarioName, const std::string& strategyJson) {
    const auto nameless = [](const std::string& json) {
        auto strategy = strategy::parse(json);
        if (!strategy)
            return std::string();
        strategy->name.clear();
        return strategy::toJson(*strategy);
    };
    const std::string recorded = nameless(strategyJson);
    for (const FileChoice& choice : m_choices.strategies)
        if (!recorded.empty() && nameless(choice.json) == recorded) {
            chooseStrategy(QString::fromStdString(choice.id));
            break;
        }
    chooseScenario(scenarioName);
}

int SetupPanel::modelIndex() const {
    const int index = m_model->currentIndex();
    return index >= 0 && index < static_cast<int>(m_choices.models.size()) ? index : -1;
}

int SetupPanel::scenarioIndex() const {
    const int index = m_scenario->currentIndex();
    return index >= 0 && index < static_cast<int>(m_choices.scenarios.size()) ? index : kOwnPrompts;
}

QString SetupPanel::modelName() const {
    return m_model->currentText();
}

QString SetupPanel::scenarioName() const {
    return m_scenario->currentText();
}

QString SetupPanel::strategyName() const {
    return m_strategy->currentText();
}

QString SetupPanel::promptJson(const QString& prompt) const {
    workload::Request request;
    request.kind = workload::PromptKind::Text;
    request.prompt = prompt.toStdString();
    request.maxTokens = static_cast<std::uint32_t>(m_maxTokens->value());
    return QString::fromStdString(workload::toJson(request));
}

RunOrder SetupPanel::order() const {
    RunOrder order;
    if (const int index = modelIndex(); index >= 0)
        order.model = m_choices.models[static_cast<std::size_t>(index)].file;
    const int strategy = m_strategy->currentIndex();
    if (strategy >= 0 && strategy < static_cast<int>(m_choices.strategies.size()))
        order.strategyJson = m_choices.strategies[static_cast<std::size_t>(strategy)].json;
    else
        order.strategyJson = "{}";
    if (const int index = scenarioIndex(); index >= 0)
        order.scenarioJson = m_choices.scenarios[static_cast<std::size_t>(index)].json;
    order.threads = static_cast<std::uint32_t>(m_threads->value());
    order.arithmetic = m_arithmetic->currentData().toString().toStdString();
    order.record = m_record->isChecked();
    return order;
}

QString SetupPanel::blockedBy() const {
    if (!m_busy.isEmpty())
        return m_busy;
    if (modelIndex() < 0)
        return m_choices.modelHelp.empty() ? tr("Choose a model file (.gguf) to run.")
                                           : QString::fromStdString(m_choices.modelHelp);
    return {};
}

void SetupPanel::setBusy(const QString& what) {
    m_busy = what;
    refresh();
}

void SetupPanel::setRecordingName(const QString& file) {
    m_recordingName = file;
    refresh();
}

void SetupPanel::refresh() {
    if (const int index = modelIndex(); index >= 0) {
        const ModelChoice& model = m_choices.models[static_cast<std::size_t>(index)];
        m_modelAbout->setText(tr("%1, %2").arg(fromPath(model.file.filename()), bytesText(model.fileBytes)));
        m_modelAbout->setToolTip(tipText(fromPath(model.file)));
    } else {
        m_modelAbout->setText(QString::fromStdString(m_choices.modelHelp));
    }
    m_modelAbout->setVisible(!m_modelAbout->text().isEmpty());
    const int strategy = m_strategy->currentIndex();
    if (strategy >= 0 && strategy < static_cast<int>(m_choices.strategies.size())) {
        const FileChoice& choice = m_choices.strategies[static_cast<std::size_t>(strategy)];
        m_strategyAbout->setText(strategySummary(choice.json));
        m_strategyAbout->setToolTip(tipText(QString::fromStdString(choice.json)));
    }
    const int scenario = scenarioIndex();
    m_scenarioAbout->setText(
        scenario >= 0 ? QString::fromStdString(m_choices.scenarios[static_cast<std::size_t>(scenario)].description)
                      : tr("Starts empty; add prompts below while it runs."));
    m_scenarioAbout->setVisible(!m_scenarioAbout->text().isEmpty());
    const Lane* lane = m_bench.lanes.lane(0);
    const bool live = lane && lane->capabilities().submit && !lane->ended();
    m_add->setEnabled(live && !m_prompt->toPlainText().trimmed().isEmpty());
    m_add->setToolTip(live ? tr("Send this prompt to the run that goes on") : tr("Start a run first"));
    m_recordAbout->setText(!m_record->isChecked()      ? tr("to a temporary file, gone afterwards")
                           : m_recordingName.isEmpty() ? tr("to a file named after time and scenario")
                                                       : tr("this run: %1").arg(m_recordingName));
    m_run->setEnabled(blockedBy().isEmpty());
    m_run->setText(m_busy.isEmpty() ? tr("Run") : m_busy);
    m_run->setToolTip(blockedBy());
    m_run->setAccessibleName(m_busy.isEmpty() ? tr("Run the scenario") : m_busy);
}

} // namespace kvatlas::ui

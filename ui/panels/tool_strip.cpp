// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/tool_strip.h"

#include "core/strategy/strategy.h"
#include "ui/panels/lane_header.h"
#include "ui/panels/setup_panel.h"
#include "ui/theme/glyphs.h"
#include "ui/theme/plain_text.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QToolButton>

#include <array>

namespace kvatlas::ui {

namespace {

// Steps per second; none = the source's own pace.
constexpr std::array<std::optional<double>, 8> kSpeeds{1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, std::nullopt};

QString speedText(std::optional<double> speed, bool recorded) {
    if (!speed)
        return recorded ? ToolStrip::tr("recorded pace") : ToolStrip::tr("full speed");
    return *speed == 1 ? ToolStrip::tr("1 step/s") : ToolStrip::tr("%1 steps/s").arg(*speed);
}

} // namespace

// The lane's letter and strategy in a box; shows what runs, or what would run.
class ToolStrip::LaneChip : public QWidget {
public:
    LaneChip(const Workbench& bench, QWidget* parent)
        : QWidget(parent)
        , m_bench(bench) {}
    void setText(const QString& text) {
        m_text = text;
        setAccessibleName(ToolStrip::tr("Lane A: %1").arg(text));
        setToolTip(tipText(accessibleName()));
        const QFont font = m_bench.theme().textFont(m_bench.theme().type.body, QFont::Medium);
        setFixedWidth(std::min(220, 42 + QFontMetrics(font).horizontalAdvance(text)));
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const Theme& theme = m_bench.theme();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme.lineStrong, 1));
        painter.setBrush(theme.panel);
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.radiusControl,
                                theme.radiusControl);
        paintLaneBadge(painter, theme, QRect(5, (height() - 18) / 2, 18, 18), 0);
        const QFont font = theme.textFont(theme.type.body, QFont::Medium);
        painter.setFont(font);
        painter.setPen(theme.text);
        painter.drawText(QRect(30, 0, width() - 38, height()), Qt::AlignVCenter,
                         QFontMetrics(font).elidedText(m_text, Qt::ElideRight, width() - 38));
    }

private:
    const Workbench m_bench;
    QString m_text;
};

ToolStrip::ToolStrip(const Workbench& bench, SetupPanel& setup, QWidget* parent)
    : QWidget(parent)
    , m_bench(bench)
    , m_setup(setup)
    , m_speedIndex(kSpeeds.size() - 1) {
    setAccessibleName(tr("Toolbar"));
    setMinimumWidth(1); // the texts give way, not the window
    m_row = new QHBoxLayout(this);
    m_row->setContentsMargins(8, 0, 12, 1);
    m_row->setSpacing(4);
    const auto picker = [this](const QString& name, QMenu*& menu) {
        QToolButton* button = addButton(name, name);
        button->setPopupMode(QToolButton::InstantPopup);
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        button->setLayoutDirection(Qt::RightToLeft);
        menu = new QMenu(button);
        button->setMenu(menu);
        return button;
    };
    m_model = picker(tr("Model"), m_modelMenu);
    m_scenario = picker(tr("Scenario"), m_scenarioMenu);
    addSeparator();
    m_chip = new LaneChip(bench, this);
    m_row->addWidget(m_chip);
    addSeparator();
    m_back = addButton(tr("Step back"), tr("One step back (←)"));
    m_play = addButton(tr("Play"), tr("Play or pause (Space)"));
    m_play->setObjectName(QStringLiteral("primary"));
    m_step = addButton(tr("Step forward"), tr("One step forward (→)"));
    QMenu* speedMenu = nullptr;
    m_speed = picker(tr("Speed"), speedMenu);
    for (std::size_t i = 0; i < kSpeeds.size(); ++i)
        speedMenu->addAction(speedText(kSpeeds[i], false), this, [this, i] {
            m_speedIndex = i;
            changeSpeed(0);
        });
    m_follow = addButton(tr("Follow"), tr("Follow the newest step (F)"));
    m_follow->setText(tr("Follow"));
    m_follow->setCheckable(true);
    m_follow->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_row->addStretch(1);
    m_backend = new QLabel(this);
    m_backend->setAccessibleName(tr("Backend"));
    m_row->addWidget(m_backend);

    connect(m_back, &QToolButton::clicked, this, [this] { m_bench.lanes.stepBy(-1); });
    connect(m_step, &QToolButton::clicked, this, [this] { m_bench.lanes.stepBy(1); });
    connect(m_play, &QToolButton::clicked, this, &ToolStrip::togglePlay);
    connect(m_follow, &QToolButton::clicked, this, [this](bool on) { m_bench.lanes.setFollowing(on); });
    connect(&bench.linked, &LinkedState::followingChanged, this, &ToolStrip::refresh);
    connect(&bench.lanes, &LaneSet::playingChanged, this, &ToolStrip::refresh);
    connect(&bench.lanes, &LaneSet::lanesChanged, this, &ToolStrip::refresh);
    connect(&bench.lanes, &LaneSet::shownChanged, this, [this] { // 60 times a second, mostly nothing new
        const Lane* lane = m_bench.lanes.lane(0);
        const auto now = std::tuple(lane ? lane->run() : nullptr, lane && lane->ended(), m_bench.linked.cursor() > 0,
                                    m_bench.lanes.canReplay());
        if (now != m_seen) {
            m_seen = now;
            refresh();
        }
    });
    connect(&setup, &SetupPanel::choiceChanged, this, &ToolStrip::refreshPickers);
    connect(&bench.appearance, &Appearance::changed, this, &ToolStrip::restyle);
    restyle();
    refreshPickers();
}

QToolButton* ToolStrip::addButton(const QString& name, const QString& tip) {
    auto* button = new QToolButton(this);
    button->setAccessibleName(name);
    button->setToolTip(tip);
    button->setFocusPolicy(Qt::TabFocus);
    m_row->addWidget(button);
    return button;
}

void ToolStrip::addSeparator() {
    m_row->addSpacing(21); // paintEvent draws the line into every such gap
}

void ToolStrip::paintEvent(QPaintEvent*) {
    const Theme& theme = m_bench.theme();
    QPainter painter(this);
    painter.fillRect(rect(), theme.raised);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.line);
    for (int i = 0; i < m_row->count(); ++i)
        if (const QSpacerItem* gap = m_row->itemAt(i)->spacerItem(); gap && gap->sizeHint().width() == 21)
            painter.fillRect(QRect(gap->geometry().center().x(), height() / 2 - 13, 1, 26), theme.line);
}

void ToolStrip::togglePlay() {
    if (m_bench.lanes.empty())
        emit playRequested();
    else
        m_bench.lanes.setPlaying(!m_bench.lanes.replaying() && (m_bench.lanes.canReplay() || !m_bench.lanes.playing()));
}

void ToolStrip::changeSpeed(int by) {
    const auto last = static_cast<int>(kSpeeds.size()) - 1;
    m_speedIndex = static_cast<std::size_t>(std::clamp(static_cast<int>(m_speedIndex) + by, 0, last));
    m_bench.lanes.setSpeed(kSpeeds[m_speedIndex]);
    refresh();
}

void ToolStrip::setCompact(bool compact) {
    m_compact = compact;
    m_follow->setToolButtonStyle(compact ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
    refresh();
}

void ToolStrip::restyle() {
    const Theme& theme = m_bench.theme();
    setFixedHeight(m_bench.appearance.heights().toolbar);
    const QFont medium = theme.textFont(theme.type.body, QFont::Medium);
    for (QToolButton* button : {m_model, m_scenario, m_speed}) {
        button->setFont(medium);
        button->setIcon(glyphIcon(Glyph::ChevronDown, theme.text2, theme.text3));
    }
    m_follow->setFont(medium);
    const int side = m_bench.appearance.heights().control;
    for (QToolButton* button : {m_model, m_scenario, m_speed, m_follow})
        button->setFixedHeight(side);
    m_chip->setFixedHeight(side);
    m_backend->setFixedHeight(side);
    for (QToolButton* button : {m_back, m_step})
        button->setFixedSize(side, side);
    m_play->setFixedSize(40, side);
    m_back->setIcon(glyphIcon(Glyph::StepBack, theme.text, theme.text3));
    m_step->setIcon(glyphIcon(Glyph::StepForward, theme.text, theme.text3));
    m_follow->setIcon(glyphIcon(Glyph::Follow, theme.text, theme.text3));
    m_backend->setFont(theme.textFont(theme.type.body - 1, QFont::Medium));
    refresh();
}

void ToolStrip::refreshPickers() {
    const Choices& choices = m_setup.choices();
    m_modelMenu->clear();
    for (const ModelChoice& model : choices.models) {
        const QString file = QString::fromStdString(model.file.string());
        m_modelMenu->addAction(labelText(QString::fromStdString(model.name)), this,
                               [this, file] { m_setup.chooseModel(file); });
    }
    m_modelMenu->addAction(tr("Choose a file…"), &m_setup, &SetupPanel::browseForModel);
    m_scenarioMenu->clear();
    for (const FileChoice& scenario : choices.scenarios) {
        const QString id = QString::fromStdString(scenario.id);
        m_scenarioMenu->addAction(labelText(QString::fromStdString(scenario.name)), this,
                                  [this, id] { m_setup.chooseScenario(id); });
    }
    refresh();
}

void ToolStrip::refresh() {
    const Theme& theme = m_bench.theme();
    const Lane* lane = m_bench.lanes.lane(0);
    const auto run = lane ? lane->run() : nullptr;
    const auto name = [](QToolButton* button, const QString& what, const QString& text) {
        button->setAccessibleName(what + QLatin1String(": ") + text);
    };
    // What runs is named by what it says of itself; only without a run is it what would run.
    m_modelText = !lane ? m_setup.modelName() : lane->modelName().isEmpty() ? tr("Model") : lane->modelName();
    name(m_model, tr("Model"), m_modelText);
    const QString title = lane ? QString::fromStdString(lane->info().title) : m_setup.scenarioName();
    m_scenarioText = title.isEmpty() ? tr("Scenario") : title;
    name(m_scenario, tr("Scenario"), m_scenarioText);
    m_chip->setText(run ? strategyName(*run) : lane ? tr("Strategy") : m_setup.strategyName());

    const bool control = lane && lane->capabilities().control;
    const bool idle = lane && lane->idle(); // nothing to pause, nothing to play
    const bool replays = m_bench.lanes.replaying(), playing = replays || (lane && lane->playing() && !idle);
    m_play->setIcon(glyphIcon(playing ? Glyph::Pause : Glyph::Play, theme.accentText, theme.text3));
    m_play->setAccessibleName(playing ? tr("Pause") : lane ? tr("Play") : tr("Run"));
    const bool over = lane && lane->ended() && !lane->capabilities().seek;
    const bool goesOn = control && ((!over && !idle) || replays || m_bench.lanes.canReplay());
    m_play->setEnabled(lane ? goesOn : m_setup.blockedBy().isEmpty());
    m_step->setEnabled(control && (!over || !m_bench.linked.following()));
    m_back->setEnabled(lane && m_bench.linked.cursor() > 0);
    m_speed->setEnabled(!lane || control);
    const bool recorded = lane && !lane->capabilities().live;
    m_speed->setText(speedText(kSpeeds[m_speedIndex], recorded));
    name(m_speed, tr("Speed"), m_speed->text());
    m_speed->menu()->actions().back()->setText(speedText(kSpeeds.back(), recorded));
    m_follow->setVisible(true);
    m_follow->setEnabled(lane && lane->capabilities().live);
    m_follow->setChecked(lane && lane->capabilities().live && m_bench.linked.following());

    m_backendText.clear();
    if (run) {
        m_backendText = QString::fromStdString(run->backend);
        if (!m_compact)
            m_backendText += run->threads == 1 ? tr(" · 1 thread") : tr(" · %1 threads").arg(run->threads);
        if (!lane->capabilities().live)
            m_backendText = tr("recorded · ") + m_backendText;
    }
    m_backend->setAccessibleDescription(m_backendText);
    m_backend->setToolTip(tipText(m_backendText));
    fitTexts();
}

void ToolStrip::showBackend(const QString& text) {
    m_backend->setText(text.isEmpty() ? QString()
                                      : QStringLiteral("<span style='color:%1'>●</span> %2")
                                            .arg(m_bench.theme().good.name(), text.toHtmlEscaped()));
}

// Model and scenario give way first, then the backend.
void ToolStrip::fitTexts() {
    showBackend(m_backendText);
    m_model->setText(labelText(m_modelText));
    m_scenario->setText(labelText(m_scenarioText));
    const int excess = m_row->sizeHint().width() - width();
    if (excess <= 0)
        return;
    const QFontMetrics metrics(m_model->font());
    const int model = metrics.horizontalAdvance(m_modelText), scenario = metrics.horizontalAdvance(m_scenarioText);
    const int room = std::max(0, model + scenario - excess), half = room / 2;
    const int forModel = model <= half ? model : std::max(half, room - scenario);
    m_model->setText(labelText(metrics.elidedText(m_modelText, Qt::ElideRight, forModel)));
    m_scenario->setText(labelText(metrics.elidedText(m_scenarioText, Qt::ElideRight, room - forModel)));
    const QFontMetrics small(m_backend->font());
    if (const int over = m_row->sizeHint().width() - width(); over > 0)
        showBackend(small.elidedText(m_backendText, Qt::ElideRight,
                                     std::max(0, small.horizontalAdvance(m_backendText) - over)));
}

void ToolStrip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitTexts();
}

} // namespace kvatlas::ui

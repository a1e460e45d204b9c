// SPDX-License-Identifier: Apache-2.0
// What the window runs, opens and writes. Slow work is the worker's.
#include "ui/main_window.h"

#include "ui/export/picture_export.h"
#include "ui/panels/lane_header.h"
#include "ui/panels/requests_panel.h"
#include "ui/panels/setup_panel.h"
#include "ui/theme/plain_text.h"
#include "ui/views/memory_map_view.h"

#include <QDragEnterEvent>
#include <QFileDialog>
#include <QMenu>
#include <QMimeData>

namespace kvatlas::ui {

// Runs `job` on the worker, then what it returns on the GUI thread.
void MainWindow::work(const QString& what, std::function<std::function<void()>()> job) {
    ++m_working;
    if (!what.isEmpty())
        m_setup->setBusy(what);
    refreshEmpty();
    m_worker.run([this, job = std::move(job)] {
        m_mailbox.post([this, done = job()] {
            --m_working;
            if (m_working == 0)
                m_setup->setBusy({});
            if (!m_closing)
                done();
            refreshEmpty();
            if (m_working == 0)
                emit workFinished();
        });
    });
}

void MainWindow::loadChoices() {
    work({}, [this]() -> std::function<void()> {
        auto choices = std::make_shared<Choices>(m_launcher.choices());
        return [this, choices] {
            m_setup->setChoices(*choices);
            m_samplesMenu->clear();
            for (const FileChoice& sample : choices->samples) {
                const QString path = QString::fromStdString(sample.json);
                m_samplesMenu->addAction(labelText(QString::fromStdString(sample.name)), this,
                                         [this, path] { openSession(path); });
            }
            m_samplesMenu->setEnabled(!choices->samples.empty());
        };
    });
}

void MainWindow::run() {
    if (const QString why = m_setup->blockedBy(); !why.isEmpty()) {
        m_messages->tell(MessageBar::Kind::Note, why);
        return;
    }
    m_messages->clearSeen();
    const bool went = m_lanes.playing();
    m_lanes.setPlaying(false); // it stays until the next is there, but does not compete with it
    const RunOrder order = m_setup->order();
    work(tr("Loading %1…").arg(m_setup->modelName()), [this, order, went]() -> std::function<void()> {
        auto run = std::make_shared<Result<OpenedRun>>(m_launcher.launch(order));
        return [this, run, went] {
            const bool refused = !*run;
            takeRun(std::move(*run));
            if (refused && went)
                m_lanes.setPlaying(true);
        };
    });
}

bool MainWindow::isModelFile(const QString& file) {
    return file.endsWith(QLatin1String(".gguf"), Qt::CaseInsensitive);
}

void MainWindow::openFile(const QString& file) {
    if (isModelFile(file)) {
        takeModel(file);
    } else {
        openSession(file);
    }
}

void MainWindow::openSession(const QString& file) {
    m_messages->clearSeen();
    work(tr("Opening %1…").arg(file.section(QLatin1Char('/'), -1)), [this, file]() -> std::function<void()> {
        auto run = std::make_shared<Result<OpenedRun>>(m_launcher.openSession(file.toStdString()));
        return [this, run] { takeRun(std::move(*run)); };
    });
}

void MainWindow::takeRun(Result<OpenedRun> run) {
    if (!run) {
        m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(run.error().message));
        return;
    }
    const QString note = QString::fromStdString(run->reportText);
    if (auto started = m_lanes.replaceAll(std::move(*run)); !started) {
        m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(started.error().message));
        return;
    }
    if (!note.isEmpty())
        m_messages->tell(MessageBar::Kind::Note, note);
    showLeftPanel(1);
    m_map->focusTarget()->setFocus(Qt::OtherFocusReason);
}

// Looked into first: a file that cannot be used is not chosen.
void MainWindow::takeModel(const QString& file) {
    m_messages->clearSeen();
    work(tr("Checking %1…").arg(file.section(QLatin1Char('/'), -1)), [this, file]() -> std::function<void()> {
        auto checked = std::make_shared<Result<void>>(m_launcher.checkModel(file.toStdString()));
        return [this, file, checked] {
            if (!*checked) {
                m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(checked->error().message));
                return;
            }
            m_setup->chooseModel(file);
            showLeftPanel(0);
        };
    });
}

void MainWindow::browseSession() {
    auto* dialog =
        new QFileDialog(this, tr("Open session"), QString(), tr("KVAtlas sessions (*.kvatlas);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openSession);
    dialog->open();
}

void MainWindow::browseModel() {
    auto* dialog = new QFileDialog(this, tr("Choose a model"), QString(), tr("Models (*.gguf);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::takeModel);
    dialog->open();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile())
            event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) {
            openFile(url.toLocalFile());
            event->acceptProposedAction();
            return;
        }
}

void MainWindow::askExport(const QString& name) {
    auto* dialog = new QFileDialog(this, tr("Export picture"), name + QStringLiteral(".png"),
                                   tr("PNG picture (*.png);;SVG picture (*.svg)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("png"));
    connect(dialog, &QFileDialog::fileSelected, this, [this, name](const QString& file) {
        if (auto done = exportView(name, file, QSize(1600, 1000)); !done)
            m_messages->tell(MessageBar::Kind::Problem, QString::fromStdString(done.error().message));
        else
            m_messages->tell(MessageBar::Kind::Note, tr("Wrote %1.").arg(file));
    });
    dialog->open();
}

QStringList MainWindow::exportNames() {
    return {QStringLiteral("memory-map"), QStringLiteral("block-tables"), QStringLiteral("memory-over-time"),
            QStringLiteral("requests"), QStringLiteral("window")};
}

QString MainWindow::footer() const {
    const Lane* lane = m_lanes.lane(0);
    if (!lane || !lane->shown()->run)
        return tr("KVAtlas · no run");
    const trace::RunStarted& run = *lane->shown()->run;
    return tr("%1 · %2 · step %3 · %4, %5 arithmetic · %6")
        .arg(QString::fromStdString(run.model.name), strategyName(run))
        .arg(lane->shown()->step)
        .arg(QString::fromStdString(run.backend), QString::fromStdString(run.arithmetic),
             QString::fromStdString(run.programVersion));
}

Result<void> MainWindow::exportView(const QString& name, const QString& file, QSize size) {
    if (name == QLatin1String("window"))
        return exportWidget(*this, file);
    const auto at = m_pictures.find(name);
    if (at == m_pictures.end())
        return makeError(ErrorKind::Usage, "There is no view {}; choose one of {}.", name.toStdString(),
                         exportNames().join(QStringLiteral(", ")).toStdString());
    return exportPicture(*at->second, m_appearance.theme(), footer(), size, file);
}

} // namespace kvatlas::ui

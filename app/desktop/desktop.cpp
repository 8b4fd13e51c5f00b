// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/desktop.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QSaveFile>
#include <chrono>
#include <cstdio>
#include <utility>

#include "engine/api/memory_probe.h"
#include "engine/api/model_probe.h"
#include "ui/chat/chat_panel.h"
#include "ui/models/format.h"

namespace kvscope::desktop {
namespace {

constexpr int kFrameMs = 33; // three of them make a repaint of the chat; prefill and errors show with the next
constexpr int kIdleMs = 100;
constexpr int kHiddenMs = 250;
constexpr Nanos kClosePatience = 2'000'000'000;
constexpr const char* kProgram = "kvscope " KVSCOPE_VERSION;

std::int64_t wallMillis() {
    return store::systemWallClock()();
}

store::StoreOptions storeOptions(const store::DataFolder& folder) {
    store::StoreOptions options;
    options.database.path = folder.databasePath();
    if (!folder.locked())
        options.folder = folder.path(); // the banner offers what helps
    options.programVersion = KVSCOPE_VERSION;
    return options;
}

metrics::RecorderOptions recorderOptions(const store::DataFolder& folder) {
    metrics::RecorderOptions options;
    if (folder.locked())
        options.folder = folder.sessionsPath(); // else it is another program's, or cannot be written
    return options;
}

metrics::LogFormat formatOf(const QString& path) {
    return path.endsWith(QLatin1StringView(".csv"), Qt::CaseInsensitive)       ? metrics::LogFormat::Csv
           : path.endsWith(QLatin1StringView(".kvscope"), Qt::CaseInsensitive) ? metrics::LogFormat::Kvscope
                                                                               : metrics::LogFormat::JsonLines;
}

} // namespace

Desktop::Desktop(const store::DataFolder& folder, const std::string& modelsFolder, api::EngineConfig engine)
    : m_settings(QString::fromStdString(folder.path()) + QStringLiteral("/window.ini"), QSettings::IniFormat)
    , m_config(std::move(engine))
    , m_recorder(recorderOptions(folder))
    , m_sessionRecorder(m_recorder, kProgram, wallMillis)
    , m_store(m_clock, storeOptions(folder))
    , m_bridge(m_store)
    , m_engine(m_clock, &m_sessionRecorder)
    , m_appearance(m_settings)
    , m_models(QString::fromStdString(modelsFolder), [this](const std::string& path) { return probe(path); })
    , m_chat(m_engine, m_bridge, m_clock, wallMillis)
    , m_cockpit(m_clock, [this](OwnerId owner) { return m_chat.titleOf(owner); }) {
    m_cockpit.setSource(&m_engine);
    m_window = std::make_unique<ui::MainWindow>(ui::WindowParts{m_chat, m_cockpit, m_models, m_appearance, m_settings,
                                                                [this](BlockId block) {
                                                                    m_engine.queryBlock(block);
                                                                    retime();
                                                                },
                                                                [this](OwnerId owner) { m_engine.queryOwner(owner); },
                                                                &m_bridge});
    connectWindow();
    m_frame.setTimerType(Qt::PreciseTimer);
    connect(&m_frame, &QTimer::timeout, this, &Desktop::frame);
    m_frame.start(kIdleMs);
}

Desktop::~Desktop() {
    m_frame.stop();
    m_window.reset();
    m_chat.savePartials(); // what runs is cut off now, and shown as interrupted at the next start
    m_cockpit.setSource(nullptr);
    const int unsaved = m_store.close(kClosePatience);
    if (unsaved > 0)
        std::fprintf(stderr, "%d changes could not be saved: the database does not take them.\n", unsaved);
}

void Desktop::connectWindow() {
    ui::MainWindow& w = *m_window;
    connect(&w, &ui::MainWindow::loadModelRequested, this, &Desktop::loadModel);
    connect(&w, &ui::MainWindow::restartEngineRequested, this, [this] {
        m_loading = true;
        m_engine.restart();
        retime();
    });
    connect(&w, &ui::MainWindow::saveSessionRequested, this, &Desktop::saveSession);
    connect(&w, &ui::MainWindow::saveReportRequested, this, &Desktop::saveReport);
    connect(&w, &ui::MainWindow::templateChosen, this, &Desktop::chooseTemplate);
    connect(&w, &ui::MainWindow::promptTokensRequested, this,
            [this](qint64 key, const api::DialogPrompt& dialog, qint64 maxTokens) {
                m_engine.queryPrompt(key, dialog, maxTokens);
                retime();
            });
    connect(&w, &ui::MainWindow::storeRetryRequested, this, [this] { m_store.retry(); });
    connect(&w, &ui::MainWindow::shownChanged, this, [this](bool shown) {
        m_shown = shown;
        retime();
    });
    connect(&m_chat, &ui::ChatController::reloadWanted, this, [this](qint64 window, qint64 blocks, bool unloadFirst) {
        api::setWindow(m_config, window);
        if (blocks > 0) {
            m_config.numBlocks = blocks;
            m_config.kvCacheMemoryBytes = 0;
            m_config.memoryUtilization.reset();
        }
        m_loading = true;
        if (unloadFirst)
            m_engine.unload();
        m_engine.load(m_config);
        retime();
    });
    connect(&m_chat, &ui::ChatController::stateChanged, this, &Desktop::retime);
    connect(&m_chat, &ui::ChatController::currentChanged, this, &Desktop::retime);
    connectStore();
}

void Desktop::connectStore() {
    ui::MainWindow& w = *m_window;
    connect(&w, &ui::MainWindow::storeOtherRequested, &m_bridge, &StoreBridge::openOther);
    connect(&w, &ui::MainWindow::storeMemoryRequested, &m_bridge, &StoreBridge::continueWithoutSaving);
    connect(&m_bridge, &StoreBridge::opened, this, &Desktop::storeOpened);
    connect(&m_bridge, &StoreBridge::reopened, this, [this](const QString& path, bool inMemory, bool sameChats) {
        m_window->setInMemory(inMemory, path);
        if (sameChats) {
            m_chat.start();
        } else { // its ids name other chats
            m_chat.reread();
            m_window->forgetRemoved();
            m_window->chatPanel()->forgetDrafts(); // after: those of what was shown are put away when it goes
        }
        m_window->loadFromStore();
    });
    connect(&m_bridge, &StoreBridge::trouble, this, [this](const ui::StoreTrouble& trouble) {
        QStringList detail;
        const int waiting = trouble.waitingWrites;
        if (!trouble.path.isEmpty() && !trouble.sentence.contains(trouble.path))
            detail << trouble.path + QLatin1Char('.');
        using Reason = ui::StoreTrouble::Reason;
        const bool untilAsked = m_bridge.inMemory() || trouble.reason == Reason::Newer ||
                                trouble.reason == Reason::Foreign || trouble.reason == Reason::Damaged;
        if (waiting > 0 && untilAsked)
            detail << (waiting == 1 ? tr("1 change is not saved; it is kept while the program runs.")
                                    : tr("%1 changes are not saved; they are kept while the program runs.")
                                          .arg(ui::formatNumber(waiting)));
        else if (waiting > 0)
            detail << (waiting == 1 ? tr("1 change waits and is tried again by itself; nothing is lost while the "
                                         "program runs.")
                                    : tr("%1 changes wait and are tried again by themselves; nothing is lost while "
                                         "the program runs.")
                                          .arg(ui::formatNumber(waiting)));
        m_window->setStoreTrouble(trouble.sentence, detail.join(QLatin1Char(' ')));
        if (trouble.opening) {
            m_storeClosed = true;
        } else if (trouble.sentence.isEmpty() && std::exchange(m_storeClosed, false)) {
            m_chat.start(); // what was asked before could not be read
            m_window->loadFromStore();
        }
    });
}

void Desktop::start() {
    m_chat.start();
    readTemplateChoices();
    m_window->loadFromStore();
    m_models.rescan();
    m_window->show();
    const QString model = modelToLoad();
    if (!model.isEmpty())
        loadModel(model);
}

void Desktop::raiseWindow() {
    if (m_window->isMinimized())
        m_window->showNormal();
    m_window->show();
    m_window->raise();
    m_window->activateWindow();
}

QString Desktop::modelToLoad() const {
    if (!m_config.modelPath.empty())
        return QString::fromStdString(m_config.modelPath);
    const QString last = m_settings.value(QStringLiteral("model/last")).toString();
    if (QFileInfo::exists(last))
        return last;
    return m_models.rowCount() == 1 ? m_models.at(0).path : QString();
}

void Desktop::loadModel(const QString& path) {
    m_models.addFile(path);
    m_config.modelPath = QFileInfo(path).absoluteFilePath().toStdString();
    m_config.chatTemplate = m_templates.value(QString::fromStdString(m_config.modelPath)).toStdString();
    m_loading = true;
    m_engine.load(m_config);
    retime();
}

Result<api::ModelProbe> Desktop::probe(const std::string& path) const {
    return api::probeModel(path, m_config, api::availableMemory() + m_engineBytes);
}

// ---- frames ----

void Desktop::frame() {
    m_bridge.drain();
    while (std::optional<api::Event> event = m_engine.nextEvent())
        dispatch(*event);
    if (m_chat.tick())
        m_cockpit.drain(); // with the words, so that the window is repainted once for both
    takeRecorderResults();
    retime();
}

/// Forty looks a second at what the other threads have to say, only while something is under way.
void Desktop::retime() {
    const bool busy = m_loading || m_saves > 0 || m_chat.anyRunning() || m_chat.answering() || m_bridge.waiting();
    const int wanted = !m_shown ? kHiddenMs : busy ? kFrameMs : kIdleMs;
    if (m_frame.interval() != wanted)
        m_frame.setInterval(wanted);
}

void Desktop::dispatch(const api::Event& event) {
    if (const auto* detail = std::get_if<api::BlockDetailEvent>(&event))
        m_cockpit.setBlockDetail(*detail);
    m_chat.handleEvent(event);
    m_window->handleEvent(event);
    if (const auto* info = std::get_if<api::LoadedEvent>(&event)) {
        onLoaded(info->info);
    } else if (const auto* failed = std::get_if<api::LoadFailedEvent>(&event)) {
        m_loading = false;
        emit loadFailed(QString::fromStdString(failed->error.message));
    } else if (std::holds_alternative<api::FaultedEvent>(event)) {
        m_bridge.noteEvent("engine_faulted", "{}");
    }
}

void Desktop::onLoaded(const api::ModelInfo& info) {
    m_loading = false;
    m_engineBytes = info.weightsBytes + info.poolBytes();
    m_bridge.setTokenizer(info.fingerprint);
    const QFileInfo file(QString::fromStdString(info.path));
    m_settings.setValue(QStringLiteral("model/last"), file.absoluteFilePath());
    m_model = info;
    noteModel();
    emit loaded(info);
}

// ---- templates ----

void Desktop::noteModel() {
    store::StoredModel model;
    model.path = m_model.path;
    model.size = m_model.fileBytes;
    model.modified = QFileInfo(QString::fromStdString(m_model.path)).lastModified().toSecsSinceEpoch();
    model.fingerprint = m_model.fingerprint;
    model.templateChoice = m_templates.value(QString::fromStdString(m_model.path)).toStdString();
    m_store.noteModel(std::move(model));
}

/// The first model may be loaded before the database has answered: then its template follows.
void Desktop::readTemplateChoices() {
    m_bridge.listModels([this](Result<std::vector<store::StoredModel>> models) {
        if (!models)
            return; // said by the store; without it nothing is remembered
        for (const store::StoredModel& model : *models) {
            const QString path = QString::fromStdString(model.path);
            if (model.templateChoice.empty() || m_templates.contains(path))
                continue;
            m_templates.insert(path, QString::fromStdString(model.templateChoice));
            if (m_config.modelPath == model.path)
                m_engine.useTemplate(model.templateChoice);
            if (m_model.path == model.path)
                noteModel(); // it was noted without
        }
    });
}

void Desktop::chooseTemplate(const QString& name) {
    m_templates.insert(QString::fromStdString(m_model.path), name);
    m_config.chatTemplate = name.toStdString();
    m_engine.useTemplate(name.toStdString());
    noteModel();
    retime();
}

// ---- files ----

void Desktop::saveSession(const QString& path) {
    metrics::Recorder::SaveRequest request;
    request.path = path.toStdString();
    request.format = formatOf(path);
    m_recorder.save(std::move(request));
    ++m_saves;
    retime();
}

void Desktop::takeRecorderResults() {
    while (std::optional<metrics::Recorder::SaveResult> result = m_recorder.nextResult()) {
        if (result->job > 0)
            --m_saves;
        if (result->error)
            m_window->say(QString::fromStdString(result->error->message));
        else if (result->job > 0)
            m_window->say(tr("Session saved: %1, %2 records")
                              .arg(QFileInfo(QString::fromStdString(result->path)).fileName(),
                                   ui::formatNumber(std::int64_t(result->records))));
    }
}

void Desktop::saveReport(const QString& path, const QString& sentence) {
    QSaveFile file(path);
    QString text = QStringLiteral("%1\n\n%2\n\nModel: %3\n")
                       .arg(QLatin1StringView(kProgram), sentence, QString::fromStdString(m_config.modelPath));
    if (const metrics::StepSample* sample = m_cockpit.latest())
        text += QStringLiteral("Steps: %1\nBlocks: %2 of %3 tokens\nRunning: %4, waiting: %5\nPreemptions: %6, "
                               "evictions: %7, copies: %8\n")
                    .arg(sample->step)
                    .arg(sample->numBlocks)
                    .arg(sample->blockSize)
                    .arg(sample->running)
                    .arg(sample->waiting)
                    .arg(sample->totalPreemptions)
                    .arg(sample->totalEvictions)
                    .arg(sample->totalCopies);
    if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0 || !file.commit())
        m_window->say(tr("The report could not be written: %1").arg(file.errorString()));
}

} // namespace kvscope::desktop

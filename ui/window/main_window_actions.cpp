// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: menu, model loading, status, notices.
#include <QApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>

#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/conversation_panel.h"
#include "ui/chat/model_picker.h"
#include "ui/chat/token_view.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/models/chat_controller.h"
#include "ui/models/format.h"
#include "ui/models/model_list_model.h"
#include "ui/window/appearance.h"
#include "ui/window/dock_area.h"
#include "ui/window/main_window.h"
#include "ui/window/status_bar.h"
#include "ui/window/top_bar.h"

namespace kvscope::ui {
namespace {

constexpr int kSaidMs = 10000;

} // namespace

// ---- dialogs ----

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About KVScope"),
                       tr("<b>KVScope %1</b><p>Chat with a model on your own machine and watch what its KV cache does."
                          "<p>Free software under the GNU General Public License, version 3 or later.")
                           .arg(QCoreApplication::applicationVersion()));
}

void MainWindow::saveSession() {
    const QString path =
        QFileDialog::getSaveFileName(this, tr("Save session"), QStringLiteral("session.kvscope"),
                                     tr("KVScope session (*.kvscope);;JSON lines (*.jsonl);;CSV (*.csv)"));
    if (!path.isEmpty())
        emit saveSessionRequested(path);
}

// ---- models ----

void MainWindow::openModelFile() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open a GGUF file"), m_parts.models.folder(),
                                                      tr("Models (*.gguf);;All files (*)"));
    if (path.isEmpty())
        return;
    m_parts.models.addFile(path);
    emit loadModelRequested(path);
}

void MainWindow::openModelPicker() {
    auto* picker = new ModelPicker(&m_parts.models, Theme::load(m_parts.appearance.kind()), this);
    picker->setAttribute(Qt::WA_DeleteOnClose);
    connect(picker, &ModelPicker::chosen, this, &MainWindow::loadModelRequested);
    connect(picker, &ModelPicker::openRequested, this, &MainWindow::openModelFile);
    picker->popupBelow(m_top->model());
}

void MainWindow::onLoading(const api::LoadingEvent& event) {
    const QString name = modelDisplayName(QString::fromStdString(event.path));
    if (!m_hasModel)
        m_top->model()->setModelName(name, {});
    m_top->model()->setLoading(event.fraction);
    m_top->setNarrow(m_class == WindowClass::Minimum);
    m_chatPanel->clearNotice(QStringLiteral("model"));
    m_chatPanel->clearNotice(QStringLiteral("engine"));
    m_chatPanel->setEngineStopped(false);
    m_chatPanel->setLoading(event.fraction, name);
}

void MainWindow::onLoaded(const api::ModelInfo& info) {
    m_model = info;
    m_hasModel = true;
    m_top->model()->setLoading(-1);
    m_top->model()->setModelName(modelDisplayName(QString::fromStdString(info.path)),
                                 QString::fromStdString(info.quantization));
    m_top->setBackend(QString::fromStdString(info.backend));
    m_parts.models.setCurrent(QString::fromStdString(info.path));
    m_chatPanel->setLoading(-1, {});
    m_chatPanel->clearNotice(QStringLiteral("model"));
    m_chatPanel->clearNotice(QStringLiteral("engine"));
    m_chatPanel->setEngineStopped(false);
    m_chatPanel->setTemplate(info.chatTemplate, true);
    if (!info.hasChatTemplate)
        m_chatPanel->notice(QStringLiteral("model"), MessageBox::Kind::Warn,
                            tr("This model has no chat template: it continues text, it does not answer"),
                            tr("Choose an instruct model to chat."),
                            {{tr("Close"), false, [this] { m_chatPanel->clearNotice(QStringLiteral("model")); }}});
    refreshStatus();
}

void MainWindow::onLoadFailed(const api::LoadFailedEvent& event) {
    m_top->model()->setLoading(-1);
    if (!m_hasModel)
        m_top->model()->setModelName({}, {});
    m_top->setNarrow(m_class == WindowClass::Minimum);
    m_chatPanel->setLoading(-1, {});
    const QString path = QString::fromStdString(event.path);
    m_chatPanel->notice(QStringLiteral("model"), MessageBox::Kind::Danger,
                        tr("%1 cannot be loaded").arg(QFileInfo(path).fileName()),
                        QString::fromStdString(event.error.message),
                        {{tr("Try again"), false, [this, path] { emit loadModelRequested(path); }},
                         {tr("Close"), false, [this] { m_chatPanel->clearNotice(QStringLiteral("model")); }}});
}

void MainWindow::onFaulted(const api::FaultedEvent& event) {
    const QString sentence = QString::fromStdString(event.message);
    m_chatPanel->setEngineStopped(true);
    m_chatPanel->notice(QStringLiteral("engine"), MessageBox::Kind::Danger, tr("The engine stopped: %1").arg(sentence),
                        (m_inMemory || m_storeTrouble ? QString() : tr("All chats are saved.") + QLatin1Char(' ')) +
                            tr("Restarting takes about as long as loading did, %1, and reads open chats again.")
                                .arg(formatSeconds(m_model.loadMs / 1000)),
                        {{tr("Save report"), false,
                          [this, sentence] {
                              const QString path = QFileDialog::getSaveFileName(this, tr("Save report"),
                                                                                QStringLiteral("kvscope-report.txt"));
                              if (!path.isEmpty())
                                  emit saveReportRequested(path, sentence);
                          }},
                         {tr("Restart"), true, [this] { emit restartEngineRequested(); }}});
}

void MainWindow::showPromptTokens() {
    if (!m_tokens)
        m_tokens = new TokenView(Theme::load(m_parts.appearance.kind()), this);
    const QString title = m_parts.chat.current().conversation.title;
    m_tokens->showFor(title.isEmpty() ? tr("Prompt of the newest answer")
                                      : tr("Prompt of the newest answer in “%1”").arg(title));
    emit promptTokensRequested(++m_tokensKey, m_parts.chat.shownPrompt(),
                               m_parts.chat.current().conversation.settings.maxTokens);
}

// ---- notices ----

void MainWindow::setStoreTrouble(const QString& sentence, const QString& detail) {
    m_storeTrouble = !sentence.isEmpty();
    if (sentence.isEmpty()) {
        m_chatPanel->clearNotice(QStringLiteral("store"));
        return;
    }
    m_chatPanel->notice(QStringLiteral("store"), MessageBox::Kind::Danger, sentence, detail,
                        {{tr("Retry"), true, [this] { emit storeRetryRequested(); }},
                         {tr("Open another…"), false, [this] { openOtherStore(); }},
                         {tr("Continue without saving"), false, [this] { emit storeMemoryRequested(); }}});
}

void MainWindow::setInMemory(bool inMemory, const QString& path) {
    const QString subject = QStringLiteral("memory");
    m_inMemory = inMemory;
    m_parts.chat.setUnsaved(inMemory);
    if (!inMemory) {
        m_chatPanel->clearNotice(subject);
        return;
    }
    m_chatPanel->notice(subject, MessageBox::Kind::Warn, tr("Chats are not being saved"),
                        tr("%1 cannot be used. What is written from now on is only in memory, and gone when the "
                           "program ends, unless the file can be used again.")
                            .arg(path),
                        {{tr("Try the file again"), true, [this] { emit storeRetryRequested(); }},
                         {tr("Open another…"), false, [this] { openOtherStore(); }},
                         {tr("Export as Markdown…"), false, [this] { exportChats({}); }}});
}

void MainWindow::openOtherStore() {
    // A file that is not there yet is made.
    QFileDialog dialog(this, tr("Open another database"), m_exportFolder, tr("Databases (*.db);;All files (*)"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setOption(QFileDialog::DontConfirmOverwrite);
    dialog.setLabelText(QFileDialog::Accept, tr("Open"));
    dialog.setDefaultSuffix(QStringLiteral("db"));
    if (dialog.exec() == QDialog::Accepted && !dialog.selectedFiles().isEmpty())
        emit storeOtherRequested(dialog.selectedFiles().constFirst());
}

void MainWindow::say(const QString& sentence) {
    const QString subject = QStringLiteral("said");
    m_chatPanel->notice(subject, MessageBox::Kind::Neutral, sentence, {},
                        {{tr("Close"), false, [this, subject] { m_chatPanel->clearNotice(subject); }}});
    QTimer::singleShot(kSaidMs, this, [this, subject] { m_chatPanel->clearNotice(subject); });
}

void MainWindow::confirmRemoved(qint64 id, const QString& title) {
    m_removed.emplace_back(id, title);
    m_chatPanel->notice(QStringLiteral("removed"), MessageBox::Kind::Neutral, tr("“%1” is deleted").arg(title), {},
                        {{tr("Undo"), true, [this] { undoRemove(); }}});
    m_removedNotice.start();
}

void MainWindow::forgetRemoved() {
    m_removed.clear();
    m_chatPanel->clearNotice(QStringLiteral("removed"));
}

/// The notice goes away after a while; the command brings everything back until the program ends.
void MainWindow::undoRemove() {
    m_chatPanel->clearNotice(QStringLiteral("removed"));
    if (m_removed.empty())
        return;
    const qint64 id = m_removed.back().first;
    m_removed.pop_back();
    m_parts.chat.undoRemove(id);
}

// ---- what is shown ----

void MainWindow::applyAppearance() {
    const Theme theme = Theme::load(m_parts.appearance.kind());
    applyTheme(*qApp, theme);
    handDown(*this, theme);
}

void MainWindow::refreshTitle() {
    const QString title = m_parts.chat.current().conversation.title;
    setWindowTitle(title.isEmpty() ? QStringLiteral("KVScope") : tr("%1 – KVScope").arg(title));
}

void MainWindow::refreshStatus() {
    StatusBar::Facts facts;
    if (m_hasModel) {
        facts.model = modelDisplayName(QString::fromStdString(m_model.path));
        const QString backend = QString::fromStdString(m_model.backend);
        const QString reason = QString::fromStdString(m_model.backendReason);
        facts.backend = reason.isEmpty() ? backend : tr("%1: %2").arg(backend.section(QLatin1Char(','), 0, 0), reason);
        facts.backendDetail = backend;
        facts.context = m_parts.chat.context();
    } else {
        facts.model = tr("No model");
    }
    facts.tokensPerSecond = m_parts.chat.tokensPerSecond();
    if (const metrics::StepSample* sample = m_parts.cockpit.latest()) {
        if ((sample->presence & metrics::kHasPrefix) && sample->hitRate() >= 0)
            facts.hitRate = sample->hitRate();
        facts.droppedSamples = m_parts.cockpit.droppedSamples();
    }
    m_status->setFacts(facts);
}

} // namespace kvscope::ui

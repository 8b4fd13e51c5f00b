// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: menu, model loading, status, notices.
#include <QActionGroup>
#include <QApplication>
#include <QDialog>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QMenu>
#include <QMessageBox>
#include <QVBoxLayout>

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

// ---- menu ----

QMenu* MainWindow::makeMenu() {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Open a GGUF file…\tCtrl+O"), this, &MainWindow::openModelFile);
    menu->addAction(tr("Save session…\tCtrl+S"), this, &MainWindow::saveSession);
    menu->addSeparator();
    QMenu* theme = menu->addMenu(tr("Theme"));
    auto* group = new QActionGroup(theme);
    const std::pair<QString, ThemeChoice> choices[] = {{tr("As the desktop"), ThemeChoice::System},
                                                       {tr("Light"), ThemeChoice::Light},
                                                       {tr("Dark"), ThemeChoice::Dark}};
    for (const auto& [name, choice] : choices) {
        QAction* action =
            theme->addAction(name, this, [this, choice = choice] { m_parts.appearance.setChoice(choice); });
        action->setCheckable(true);
        action->setChecked(m_parts.appearance.choice() == choice);
        group->addAction(action);
    }
    QMenu* text = menu->addMenu(tr("Text size"));
    text->addAction(tr("Larger\tCtrl++"), this,
                    [this] { m_parts.appearance.setTextSize(m_parts.appearance.textSize() + 1); });
    text->addAction(tr("Smaller\tCtrl+-"), this,
                    [this] { m_parts.appearance.setTextSize(m_parts.appearance.textSize() - 1); });
    text->addAction(tr("Normal\tCtrl+0"), this, [this] { m_parts.appearance.setTextSize(Appearance::kNormalText); });
    QMenu* panels = menu->addMenu(tr("Panels"));
    const QStringList ids = m_docks->panelIds();
    const QStringList names = m_docks->panelNames();
    for (qsizetype i = 0; i < ids.size(); ++i) {
        QAction* action = panels->addAction(names[i]);
        action->setCheckable(true);
        action->setChecked(m_docks->isShown(ids[i]));
        connect(action, &QAction::toggled, this, [this, id = ids[i]](bool on) { m_docks->setShown(id, on); });
    }
    menu->addAction(tr("Reset layout"), this, &MainWindow::resetLayout);
    menu->addSeparator();
    menu->addAction(tr("Keys\tF1"), this, &MainWindow::showShortcuts);
    menu->addAction(tr("About KVScope"), this, &MainWindow::showAbout);
    menu->addSeparator();
    menu->addAction(tr("Quit\tCtrl+Q"), this, &QWidget::close);
    return menu;
}

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About KVScope"),
                       tr("<b>KVScope %1</b><p>Chat with a model on your own machine and watch what its KV cache does."
                          "<p>Free software under the GNU General Public License, version 3 or later.")
                           .arg(QCoreApplication::applicationVersion()));
}

void MainWindow::showShortcuts() {
    const std::pair<QString, QString> keys[] = {
        {tr("Send"), tr("Enter")},
        {tr("New line"), tr("Shift+Enter")},
        {tr("Stop the answer"), tr("Esc")},
        {tr("New chat"), tr("Ctrl+N")},
        {tr("Chats on and off"), tr("Ctrl+B")},
        {tr("Rename, delete the chosen chat"), tr("F2, Del")},
        {tr("To the composer"), tr("Ctrl+L")},
        {tr("Workspace Chat, Observe"), tr("Ctrl+1, Ctrl+2")},
        {tr("Models"), tr("Ctrl+M")},
        {tr("Open a GGUF file"), tr("Ctrl+O")},
        {tr("Settings of this chat"), tr("Ctrl+,")},
        {tr("Save session"), tr("Ctrl+S")},
        {tr("Text size"), tr("Ctrl++, Ctrl+-, Ctrl+0")},
        {tr("In the chat: from message to message"), tr("Ctrl+Up, Ctrl+Down")},
        {tr("In the chat: receipt, blocks, copy"), tr("Enter, B, Ctrl+C")},
        {tr("In the map: move, choose, zoom, dim"), tr("Arrows, Enter, + - 0, D")},
        {tr("Menu"), tr("F10")},
    };
    QDialog dialog(this);
    dialog.setWindowTitle(tr("Keys"));
    auto* grid = new QGridLayout(&dialog);
    grid->setContentsMargins(24, 20, 24, 20);
    grid->setHorizontalSpacing(32);
    grid->setVerticalSpacing(8);
    int row = 0;
    for (const auto& [what, key] : keys) {
        auto* name = new QLabel(what, &dialog);
        name->setFont(textFont(TextRole::Control));
        auto* value = new QLabel(key, &dialog);
        value->setFont(monoFont(TextRole::Table));
        value->setObjectName(QStringLiteral("quiet"));
        grid->addWidget(name, row, 0);
        grid->addWidget(value, row++, 1);
    }
    dialog.exec();
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
    m_chatPanel->notice(
        QStringLiteral("engine"), MessageBox::Kind::Danger, tr("The engine stopped: %1").arg(sentence),
        tr("All chats are saved. Restarting takes about as long as loading did, %1, and reads open chats again.")
            .arg(formatSeconds(m_model.loadMs / 1000)),
        {{tr("Save report"), false,
          [this, sentence] {
              const QString path =
                  QFileDialog::getSaveFileName(this, tr("Save report"), QStringLiteral("kvscope-report.txt"));
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
    emit promptTokensRequested(++m_tokensKey, m_parts.chat.shownPrompt());
}

// ---- notices ----

void MainWindow::setStoreTrouble(const QString& sentence, const QString& detail) {
    if (sentence.isEmpty()) {
        m_chatPanel->clearNotice(QStringLiteral("store"));
        return;
    }
    m_chatPanel->notice(QStringLiteral("store"), MessageBox::Kind::Danger, sentence, detail,
                        {{tr("Retry"), true, [this] { emit storeRetryRequested(); }}});
}

void MainWindow::say(const QString& sentence) {
    const QString subject = QStringLiteral("said");
    m_chatPanel->notice(subject, MessageBox::Kind::Neutral, sentence, {},
                        {{tr("Close"), false, [this, subject] { m_chatPanel->clearNotice(subject); }}});
    QTimer::singleShot(kSaidMs, this, [this, subject] { m_chatPanel->clearNotice(subject); });
}

void MainWindow::confirmRemoved(const QString& title) {
    const QString subject = QStringLiteral("removed");
    m_chatPanel->notice(subject, MessageBox::Kind::Neutral, tr("“%1” is deleted").arg(title), {},
                        {{tr("Undo"), true, [this, subject] {
                              m_chatPanel->clearNotice(subject);
                              m_parts.chat.undoRemove();
                          }}});
    m_removedNotice.start();
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

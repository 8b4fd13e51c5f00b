// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: what it is made of and how its parts are tied. Sizes and arrangements: main_window_layout.cpp; what the
// menu does: main_window_actions.cpp.
#include "ui/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDateTime>
#include <QMenu>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QVBoxLayout>

#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/chat/conversation_panel.h"
#include "ui/chat/template_banner.h"
#include "ui/chat/token_view.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/sequences_panel.h"
#include "ui/models/chat_controller.h"
#include "ui/models/model_list_model.h"
#include "ui/models/preset_model.h"
#include "ui/models/search_model.h"
#include "ui/window/appearance.h"
#include "ui/window/block_link.h"
#include "ui/window/dock_area.h"
#include "ui/window/status_bar.h"
#include "ui/window/top_bar.h"

namespace kvscope::ui {
namespace {

constexpr QSize kMinimum(960, 600); // below it the window scrolls
constexpr int kStatusMs = 250;
constexpr int kSaveLayoutMs = 500;
constexpr int kUndoMs = 10000;

} // namespace

MainWindow::MainWindow(WindowParts parts) : m_parts(parts) {
    const Theme theme = Theme::load(m_parts.appearance.kind());
    applyTheme(*qApp, theme);
    setWindowTitle(QStringLiteral("KVScope"));
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    auto* content = new QWidget(scroll);
    content->setMinimumSize(kMinimum);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_top = new TopBar(theme, content);
    m_body = new QSplitter(Qt::Horizontal, content);
    if (m_parts.store)
        m_search = new SearchModel(QDateTime::currentMSecsSinceEpoch, this);
    m_presets = new PresetModel(m_parts.store, this);
    m_side = new ConversationPanel(m_parts.chat.conversations(), m_search, theme);
    m_chatPanel = new ChatPanel(&m_parts.chat, &m_parts.models, theme, m_presets);
    m_docks = new DockArea(theme);
    m_status = new StatusBar(theme, content);
    column->addWidget(m_top);
    column->addWidget(m_body, 1);
    column->addWidget(m_status);
    scroll->setWidget(content);
    setCentralWidget(scroll);
    setMinimumSize(480, 360);
    buildBody();
    buildCommands();
    buildShortcuts();
    connectParts();
    connectStore();
    connectTimers();

    m_workspace = m_parts.settings.value(QStringLiteral("window/workspace"), int(TopBar::Observe)).toInt();
    m_sideShown = m_parts.settings.value(QStringLiteral("window/side"), true).toBool();
    resize(m_parts.settings.value(QStringLiteral("window/size"), QSize(1600, 1000)).toSize());
    m_class = classOfWidth(width());
    loadArrangement();
    m_top->setWorkspace(m_workspace);
    m_chatPanel->setTextSize(m_parts.appearance.textSize());
    m_chatPanel->composer()->setSendKey(m_parts.appearance.sendKey());
    refreshTitle();
    refreshStatus();
    m_chatPanel->composer()->edit()->setFocus();
}

MainWindow::~MainWindow() {
    m_chatPanel->flushDraft();
}

void MainWindow::buildBody() {
    const Theme theme = Theme::load(m_parts.appearance.kind());
    m_map = new BlockMapPanel(m_parts.cockpit, theme);
    m_docks->addPanel(QStringLiteral("map"), m_map);
    m_docks->addPanel(QStringLiteral("curves"), new CurvesPanel(m_parts.cockpit, theme));
    m_docks->addPanel(QStringLiteral("sequences"), new SequencesPanel(m_parts.cockpit, theme));
    m_body->setHandleWidth(1);
    m_body->setChildrenCollapsible(false);
    m_body->addWidget(m_side);
    m_body->addWidget(m_chatPanel);
    m_body->addWidget(m_docks);
    m_side->setMinimumWidth(180);
    m_docks->setMinimumWidth(320);
    m_body->setStretchFactor(0, 0);
    m_body->setStretchFactor(1, 1);
    m_body->setStretchFactor(2, 0);
    m_body->installEventFilter(this);
}

void MainWindow::connectParts() {
    ChatController& chat = m_parts.chat;
    connect(m_top, &TopBar::sideToggled, this, &MainWindow::toggleSide);
    connect(m_top, &TopBar::modelRequested, this, &MainWindow::openModelPicker);
    connect(m_top, &TopBar::workspaceChanged, this, &MainWindow::setWorkspace);
    connect(m_top, &TopBar::themeToggled, this, [this] {
        m_parts.appearance.setChoice(m_parts.appearance.kind() == ThemeKind::Dark ? ThemeChoice::Light
                                                                                  : ThemeChoice::Dark);
    });
    connect(m_top, &TopBar::menuRequested, this, [this] {
        QMenu* menu = makeMenu();
        QWidget* button = m_top->menuButton();
        menu->popup(button->mapToGlobal(QPoint(button->width() - menu->sizeHint().width(), button->height() + 4)));
    });
    connect(m_side, &ConversationPanel::selected, this, [this](qint64 id) {
        m_parts.chat.select(id);
        showSideOverlay(false);
    });
    connect(m_side, &ConversationPanel::newRequested, this, [this] {
        m_parts.chat.newConversation();
        showSideOverlay(false);
        m_chatPanel->composer()->edit()->setFocus();
    });
    connect(m_side, &ConversationPanel::deleteRequested, &chat, &ChatController::remove);
    connect(m_side, &ConversationPanel::hitChosen, this, &MainWindow::showHit);
    connect(m_side, &ConversationPanel::entered, this, [this] {
        showSideOverlay(false);
        m_chatPanel->composer()->edit()->setFocus();
    });
    connect(m_top, &TopBar::findRequested, this, &MainWindow::openPalette);
    connectChat();
}

void MainWindow::connectChat() {
    ChatController& chat = m_parts.chat;
    connect(m_chatPanel, &ChatPanel::deleteRequested, this,
            [this] { m_parts.chat.remove(m_parts.chat.current().conversation.id); });
    connect(m_chatPanel, &ChatPanel::promptTokensRequested, this, &MainWindow::showPromptTokens);
    connect(m_chatPanel->templateBanner(), &TemplateBanner::chosen, this, &MainWindow::templateChosen);
    connect(m_chatPanel, &ChatPanel::renameRequested, this, [this] {
        if (!m_side->isVisible())
            toggleSide();
        m_side->renameCurrent();
    });
    connect(m_chatPanel, &ChatPanel::modelChosen, this, &MainWindow::loadModelRequested);
    connect(m_chatPanel, &ChatPanel::openModelRequested, this, &MainWindow::openModelFile);
    connect(&chat, &ChatController::currentChanged, this, [this] {
        m_side->setCurrent(m_parts.chat.current().conversation.id);
        refreshTitle();
        refreshStatus();
    });
    connect(&chat, &ChatController::stateChanged, this, [this] {
        m_side->setCurrent(m_parts.chat.current().conversation.id);
        refreshTitle();
        m_parts.cockpit.refreshTitles();
        showPendingHit(); // not with currentChanged, which puts out what is lit
    });
    connect(&chat, &ChatController::removed, this, &MainWindow::confirmRemoved);
    connect(&chat, &ChatController::storeFailed, this, [this](const QString& sentence) {
        m_chatPanel->notice(
            QStringLiteral("store-failed"), MessageBox::Kind::Warn, sentence, {},
            {{tr("Close"), false, [this] { m_chatPanel->clearNotice(QStringLiteral("store-failed")); }}});
    });
    connect(&m_parts.appearance, &Appearance::themeChanged, this, &MainWindow::applyAppearance);
    connect(&m_parts.appearance, &Appearance::textSizeChanged, m_chatPanel, &ChatPanel::setTextSize);
    connect(&m_parts.appearance, &Appearance::sendKeyChanged, m_chatPanel->composer(), &Composer::setSendKey);
    connect(&m_parts.appearance, &Appearance::motionChanged, m_map, &BlockMapPanel::setReducedMotion);
    m_link =
        new BlockLink(chat, m_parts.cockpit, *m_chatPanel->view(), *m_map, {m_parts.askBlock, m_parts.askOwner}, this);
}

void MainWindow::connectTimers() {
    connect(m_docks, &DockArea::changed, &m_saveLayoutTimer, qOverload<>(&QTimer::start));
    connect(m_body, &QSplitter::splitterMoved, this, &MainWindow::bodyDragged);
    m_saveLayoutTimer.setSingleShot(true);
    m_saveLayoutTimer.setInterval(kSaveLayoutMs);
    connect(&m_saveLayoutTimer, &QTimer::timeout, this, &MainWindow::saveArrangement);
    m_removedNotice.setSingleShot(true);
    m_removedNotice.setInterval(kUndoMs);
    connect(&m_removedNotice, &QTimer::timeout, this, [this] { m_chatPanel->clearNotice(QStringLiteral("removed")); });
    m_statusTimer.setInterval(kStatusMs);
    connect(&m_statusTimer, &QTimer::timeout, this, &MainWindow::refreshStatus);
}

void MainWindow::handleEvent(const api::Event& event) {
    m_link->handleEvent(event);
    if (const auto* loading = std::get_if<api::LoadingEvent>(&event))
        onLoading(*loading);
    else if (const auto* loaded = std::get_if<api::LoadedEvent>(&event))
        onLoaded(loaded->info);
    else if (const auto* failed = std::get_if<api::LoadFailedEvent>(&event))
        onLoadFailed(*failed);
    else if (const auto* faulted = std::get_if<api::FaultedEvent>(&event))
        onFaulted(*faulted);
    else if (const auto* changed = std::get_if<api::FileChangedEvent>(&event))
        m_chatPanel->notice(QStringLiteral("file"), MessageBox::Kind::Warn, QString::fromStdString(changed->message),
                            tr("Answers are not affected: the model is in memory."),
                            {{tr("Close"), false, [this] { m_chatPanel->clearNotice(QStringLiteral("file")); }}});
    else if (const auto* chosen = std::get_if<api::TemplateEvent>(&event))
        m_chatPanel->setTemplate(chosen->info, false);
    else if (const auto* tokens = std::get_if<api::PromptTokensEvent>(&event)) {
        if (m_tokens && tokens->key == m_tokensKey)
            m_tokens->setTokens(*tokens);
    } else if (std::holds_alternative<api::UnloadedEvent>(event)) {
        m_chatPanel->setTemplate({}, false);
        m_hasModel = false;
        m_model = {};
        m_top->model()->setModelName({}, {});
        m_top->setBackend({});
        m_parts.models.setCurrent({});
        refreshStatus();
    }
}

void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    if (event->spontaneous())
        return;
    applyBodySizes();
    m_statusTimer.start();
    m_parts.cockpit.setActive(m_workspace == TopBar::Observe);
    emit shownChanged(true);
}

void MainWindow::hideEvent(QHideEvent* event) {
    QMainWindow::hideEvent(event);
    m_statusTimer.stop();
    m_parts.cockpit.setActive(false);
    emit shownChanged(false);
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() != QEvent::WindowStateChange)
        return;
    const bool shown = !isMinimized();
    shown ? m_statusTimer.start() : m_statusTimer.stop();
    m_parts.cockpit.setActive(shown && m_workspace == TopBar::Observe);
    emit shownChanged(shown);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    m_chatPanel->keepQueued();
    m_chatPanel->flushDraft();
    saveArrangement();
    QMainWindow::closeEvent(event);
}

/// Esc, after an input method and an open popup have had it: overlay, search, then Stop, then lit blocks and selection.
void MainWindow::escape() {
    if (m_sideOverlay) {
        m_side->clearSearch();
        showSideOverlay(false);
        return;
    }
    if (m_chatPanel->cancelTooLong())
        return;
    if (m_side->clearSearch()) {
        m_side->list()->setFocus();
        return;
    }
    if (m_parts.chat.answering()) {
        m_parts.chat.stop();
        return;
    }
    m_link->clear();
    m_chatPanel->view()->clearSelection();
    m_chatPanel->composer()->edit()->setFocus();
}

} // namespace kvscope::ui

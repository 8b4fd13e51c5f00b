// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/chat_panel.h"

#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QMenu>
#include <QMimeData>
#include <QPainter>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <utility>

#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/chat/model_picker.h"
#include "ui/chat/settings_panel.h"
#include "ui/chat/template_banner.h"
#include "ui/models/chat_settings.h"
#include "ui/models/format.h"
#include "ui/models/preset_model.h"
#include "ui/widgets/button.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {

constexpr int kHead = 44;
constexpr int kComposerAtMost = 812; // the column of the messages and its margins
constexpr int kPresetAtMost = 160;
constexpr int kDeletedMs = 10'000; // Ctrl+Z brings a deleted message back also after that

/// Every chat that the database does not know yet is "the new chat": its draft waits for the next one.
qint64 draftKey(const ChatSession& session) {
    return session.conversation.id;
}

bool isModel(const QString& path) {
    return path.endsWith(QLatin1StringView(".gguf"), Qt::CaseInsensitive);
}

} // namespace

ChatPanel::ChatPanel(ChatController* controller, ModelListModel* models, const Theme& theme, PresetModel* presets,
                     QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_controller(controller)
    , m_models(models)
    , m_title(new ElidedLabel(this))
    , m_settingsButton(new Button(QString(), Button::Kind::Ghost, theme, this))
    , m_more(new IconButton(Icon::More, tr("More"), theme, this, 20))
    , m_notices(new QVBoxLayout)
    , m_template(new TemplateBanner(theme, this))
    , m_stack(new QStackedWidget(this))
    , m_view(new ChatView(theme, this))
    , m_emptyPage(new QWidget(this))
    , m_empty(new EmptyState(Icon::Grid, tr("Send a message and watch its blocks appear"), theme, m_emptyPage))
    , m_firstStart(new FirstStart(models, theme, this))
    , m_composer(new Composer(theme, this))
    , m_settings(new SettingsPanel(theme, this, presets && presets->available() ? presets : nullptr))
    , m_presets(presets) {
    setAcceptDrops(true);
    setMinimumWidth(420);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    buildHead(column);
    m_notices->setContentsMargins(16, 0, 16, 0);
    m_notices->setSpacing(8);
    m_notices->addWidget(m_template);
    column->addLayout(m_notices);
    auto* center = new QVBoxLayout(m_emptyPage);
    center->setContentsMargins(40, 0, 40, 24);
    center->addStretch(1);
    center->addWidget(m_empty);
    center->addStretch(1);
    m_stack->addWidget(m_view);
    m_stack->addWidget(m_emptyPage);
    m_stack->addWidget(m_firstStart);
    column->addWidget(m_stack, 1);
    auto* foot = new QHBoxLayout;
    foot->setContentsMargins(16, 0, 16, 16);
    m_composer->setMaximumWidth(kComposerAtMost);
    foot->addStretch(1);
    foot->addWidget(m_composer, 1000); // it gives way to the sides only beyond its largest width
    foot->addStretch(1);
    column->addLayout(foot);

    connectParts();
    m_shownDraft = draftKey(controller->current());
    m_shownSession = controller->current().key;
    m_drafts.insert(m_shownDraft, {});
    showCurrent();
}

void ChatPanel::connectParts() {
    ChatController* controller = m_controller;
    connect(controller, &ChatController::currentChanged, this, &ChatPanel::showCurrent);
    connect(controller, &ChatController::stateChanged, this, &ChatPanel::refresh);
    connect(m_template, &TemplateBanner::closed, this, &ChatPanel::spaceNotices);
    connectComposer();
    if (m_presets)
        connect(m_presets, &PresetModel::changed, this, &ChatPanel::refreshPreset);
    connect(m_view, &ChatView::stopRequested, controller, qOverload<>(&ChatController::stop));
    const auto sayWithoutModel = [this] {
        if (!m_controller->modelReady())
            notice(QStringLiteral("send"), MessageBox::Kind::Warn, tr("Choose a model first"));
    };
    connect(m_view, &ChatView::againRequested, this, [this, sayWithoutModel](int row) {
        if (!m_controller->regenerate(row))
            sayWithoutModel();
    });
    connect(m_view, &ChatView::editRequested, this, &ChatPanel::editMessage);
    connect(m_view, &ChatView::deleteRequested, controller, &ChatController::deleteMessage);
    connect(m_view, &ChatView::undoDeleteRequested, this, [this] {
        if (m_controller->undoDeleteMessage())
            clearNotice(QStringLiteral("deleted"));
    });
    m_deletedPause.setSingleShot(true);
    m_deletedPause.setInterval(kDeletedMs);
    connect(&m_deletedPause, &QTimer::timeout, this, [this] { clearNotice(QStringLiteral("deleted")); });
    connect(m_view, &ChatView::branchRequested, controller, &ChatController::branch);
    connect(m_view, &ChatView::continueRequested, this, [this, sayWithoutModel](int row) {
        if (m_controller->continueAnswer())
            return;
        // Of an answer without a word there is nothing to write on: it is written anew.
        if (m_controller->canContinue(row) || !m_controller->regenerate(row))
            sayWithoutModel();
    });
    connect(m_view, &ChatView::discardRequested, controller, &ChatController::discardAnswer);
    connect(m_view, &ChatView::versionRequested, controller, [controller](int row, int step) {
        controller->showVersion(row, controller->messages()->at(row).version + step);
    });
    connect(m_firstStart, &FirstStart::chosen, this, &ChatPanel::modelChosen);
    connect(m_firstStart, &FirstStart::openRequested, this, &ChatPanel::openModelRequested);
    connect(m_settings, &SettingsPanel::systemPromptChanged, controller, &ChatController::setSystemPrompt);
    connect(m_settings, &SettingsPanel::settingsChanged, controller, &ChatController::setSettings);
}

void ChatPanel::buildHead(QVBoxLayout* column) {
    auto* head = new QHBoxLayout;
    head->setContentsMargins(20, 8, 12, 8);
    head->setSpacing(4);
    m_title->setFont(textFont(TextRole::Chat, QFont::DemiBold));
    head->addWidget(m_title, 1);
    m_settingsButton->setText(tr("Settings"));
    m_settingsButton->setGlyph(Icon::Sliders);
    m_settingsButton->setTrailingGlyph(Icon::Down);
    m_settingsButton->setAccessibleName(tr("Settings of this chat"));
    m_settingsButton->setToolTip(tr("System prompt and sampling of this chat"));
    head->addWidget(m_settingsButton);
    head->addWidget(m_more);
    column->addLayout(head);
    column->addSpacing(1);
    connect(m_settingsButton, &QAbstractButton::clicked, this, &ChatPanel::showSettings);
    connect(m_more, &QAbstractButton::clicked, this, &ChatPanel::showMore);
}

// ---- drafts ----

/// What was begun in one chat waits there, and does not follow into another.
void ChatPanel::swapDrafts() {
    const qint64 now = draftKey(m_controller->current());
    if (m_controller->current().key == m_shownSession) { // the same chat, which may have got its id by now
        if (now == m_shownDraft)
            return;
        if (std::exchange(m_newDraftStays, false)) {
            m_drafts.insert(m_shownDraft, m_composer->draft());
            emit draftChanged(m_shownDraft, m_composer->draft());
            m_shownDraft = now;
            m_composer->setDraft({});
            m_drafts.insert(now, {});
            m_draftPause.stop();
            return meterSoon();
        }
        m_drafts.remove(m_shownDraft);
        emit draftChanged(m_shownDraft, {});
        m_shownDraft = now;
        m_draftPause.start();
        return;
    }
    if (m_draftPause.isActive())
        flushDraft();
    m_newDraftStays = false;
    m_drafts.insert(m_shownDraft, m_composer->draft());
    m_shownSession = m_controller->current().key;
    m_shownDraft = now;
    const Conversation& conversation = m_controller->current().conversation;
    const auto known = m_drafts.constFind(now);
    m_composer->setDraft(known != m_drafts.constEnd() ? *known
                                                      : Draft{conversation.draft, conversation.draftAttachments});
    m_drafts.insert(now, m_composer->draft());
    m_draftPause.stop(); // showing a draft is no change of it
    m_asksTooLong = false;
    m_composer->showOverlong(false);
    meterSoon();
}

void ChatPanel::flushDraft() {
    m_draftPause.stop();
    const Draft draft = m_composer->draft();
    if (m_drafts.value(m_shownDraft) == draft && m_drafts.contains(m_shownDraft))
        return;
    m_drafts.insert(m_shownDraft, draft);
    emit draftChanged(m_shownDraft, draft);
}

void ChatPanel::forgetDrafts() {
    m_drafts.clear();
    m_drafts.insert(m_shownDraft, m_composer->draft());
}

void ChatPanel::setNewDraft(const Draft& draft) {
    if (draft.isEmpty())
        return;
    if (m_shownDraft != kNoId) { // it waits until a new chat is begun
        if (m_drafts.value(kNoId).isEmpty())
            m_drafts.insert(kNoId, draft);
        return;
    }
    if (m_composer->hasMessage())
        return;
    m_composer->setDraft(draft);
    m_drafts.insert(m_shownDraft, draft);
    m_draftPause.stop();
}

// ---- files ----

void ChatPanel::chooseFiles() {
    const QStringList paths = QFileDialog::getOpenFileNames(this, tr("Attach text files"));
    if (!paths.isEmpty())
        m_composer->addFiles(paths);
}

/// A model is opened, text files go with the message.
void ChatPanel::takeFiles(const QStringList& paths) {
    if (paths.size() == 1 && isModel(paths.constFirst()))
        emit modelChosen(paths.constFirst());
    else
        m_composer->addFiles(paths);
}

void ChatPanel::showCurrent() {
    swapDrafts();
    m_view->setModel(m_controller->messages());
    connect(m_controller->messages(), &QAbstractItemModel::rowsInserted, this, &ChatPanel::refresh,
            Qt::UniqueConnection);
    connect(m_controller->messages(), &QAbstractItemModel::rowsRemoved, this, &ChatPanel::refresh,
            Qt::UniqueConnection);
    refresh();
}

void ChatPanel::refresh() {
    if (m_controller->current().key == m_shownSession)
        swapDrafts(); // a new chat may have got its id: from now on the draft is its own
    const Conversation& conversation = m_controller->current().conversation;
    m_title->setText(conversation.title.isEmpty() ? tr("New chat") : conversation.title);
    m_more->setVisible(conversation.id != kNoId);
    refreshPreset();
    const bool empty = m_controller->messages()->size() == 0;
    const bool ready = m_controller->modelReady();
    const bool loading = m_loading >= 0;
    m_empty->setText(loading ? tr("Loading %1, %2").arg(m_loadingName, formatPercent(m_loading))
                             : tr("Send a message and watch its blocks appear"));
    if (empty && !ready && !loading && !m_engineStopped)
        m_stack->setCurrentWidget(m_firstStart);
    else if (empty && m_controller->current().loaded)
        m_stack->setCurrentWidget(m_emptyPage);
    else
        m_stack->setCurrentWidget(m_view);
    const QString hint = ready             ? QString()
                         : loading         ? tr("The model is loading, %1").arg(formatPercent(m_loading))
                         : m_engineStopped ? tr("Restart the engine first")
                                           : tr("Choose a model first");
    const bool answering = m_controller->answering();
    m_composer->setQueued(firstWords(m_controller->queued()));
    m_composer->setState(answering ? m_controller->queued().isEmpty() : m_controller->canSend(), answering, hint);
    refreshTooLong();
    if (std::exchange(m_wasReady, ready) != ready || std::exchange(m_wasAnswering, answering) != answering)
        meterSoon();
}

void ChatPanel::setLoading(double fraction, const QString& name) {
    m_loading = fraction;
    m_loadingName = name;
    refresh();
}

void ChatPanel::setEngineStopped(bool stopped) {
    m_engineStopped = stopped;
    refresh();
}

/// The button says which preset the chat uses.
void ChatPanel::refreshPreset() {
    const Conversation& conversation = m_controller->current().conversation;
    const PresetModel::Preset* preset =
        m_presets ? m_presets->matching(conversation.systemPrompt, conversation.settings) : nullptr;
    m_settingsButton->setText(
        preset ? m_settingsButton->fontMetrics().elidedText(preset->name, Qt::ElideRight, kPresetAtMost)
               : tr("Settings"));
    m_settingsButton->updateGeometry();
}

void ChatPanel::showSettings() {
    const Conversation& conversation = m_controller->current().conversation;
    m_settings->setValues(conversation.systemPrompt, conversation.settings);
    m_settings->popupBelow(m_settingsButton);
}

void ChatPanel::showMore() {
    QMenu menu(this);
    menu.addAction(makeIcon(Icon::Edit, m_theme.text2, m_theme.textOff), tr("Rename"), this,
                   &ChatPanel::renameRequested);
    menu.addAction(makeIcon(Icon::Grid, m_theme.text2, m_theme.textOff), tr("Prompt tokens"), this,
                   &ChatPanel::promptTokensRequested);
    menu.addAction(makeIcon(Icon::Trash, m_theme.text2, m_theme.textOff), tr("Delete"), this,
                   &ChatPanel::deleteRequested);
    menu.exec(m_more->mapToGlobal(QPoint(m_more->width() - menu.sizeHint().width(), m_more->height() + 4)));
}

void ChatPanel::notice(const QString& subject, MessageBox::Kind kind, const QString& sentence, const QString& detail,
                       const std::vector<MessageBox::Action>& actions) {
    clearNotice(subject);
    auto* box = new MessageBox(kind, sentence, detail, actions, m_theme, this);
    m_boxes.insert(subject, box);
    m_notices->addWidget(box);
    spaceNotices();
}

void ChatPanel::clearNotice(const QString& subject) {
    MessageBox* box = m_boxes.take(subject);
    if (!box)
        return;
    m_notices->removeWidget(box);
    box->hide();
    box->deleteLater();
    spaceNotices();
}

void ChatPanel::spaceNotices() {
    const bool any = !m_boxes.isEmpty() || !m_template->isHidden();
    m_notices->setContentsMargins(16, any ? 12 : 0, 16, any ? 4 : 0);
}

void ChatPanel::setTemplate(const api::TemplateInfo& info, bool opened) {
    m_template->setTemplate(info, opened);
    spaceNotices();
}

void ChatPanel::setTextSize(int pixels) {
    m_view->setTextSize(pixels);
    m_composer->setTextSize(pixels);
}

void ChatPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void ChatPanel::dragEnterEvent(QDragEnterEvent* event) {
    if (!localFiles(event->mimeData()).isEmpty())
        event->acceptProposedAction();
}

void ChatPanel::dropEvent(QDropEvent* event) {
    event->acceptProposedAction();
    takeFiles(localFiles(event->mimeData()));
}

void ChatPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg1);
    painter.fillRect(QRect(0, kHead, width(), 1), m_theme.line1);
}

} // namespace kvscope::ui

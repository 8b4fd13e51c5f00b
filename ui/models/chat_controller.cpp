// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_controller.h"

#include <algorithm>

#include "ui/models/chat_settings.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr int kPartialSaveMs = 1000;
constexpr std::size_t kIdleSessionsKept = 4;

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

} // namespace

ChatController::ChatController(api::ChatSource& source, ChatStore& store, const Clock& clock,
                               std::function<qint64()> wallNow, QObject* parent)
    : QObject(parent)
    , m_source(source)
    , m_store(store)
    , m_clock(clock)
    , m_wallNow(std::move(wallNow)) {
    newConversation();
    m_saveTimer.setInterval(kPartialSaveMs);
    connect(&m_saveTimer, &QTimer::timeout, this, &ChatController::savePartials);
    connect(&m_list, &ConversationListModel::renamed, this, &ChatController::rename);
}

ChatController::~ChatController() = default;

// ---- conversations ----

ChatSession* ChatController::byConversation(ConversationId id) const {
    const auto it = std::find_if(m_sessions.begin(), m_sessions.end(),
                                 [id](const auto& s) { return id != kNoId && s->conversation.id == id; });
    return it == m_sessions.end() ? nullptr : it->get();
}

ChatSession* ChatController::byKey(std::int64_t key) const {
    const auto it = std::find_if(m_sessions.begin(), m_sessions.end(), [key](const auto& s) { return s->key == key; });
    return it == m_sessions.end() ? nullptr : it->get();
}

ChatSession* ChatController::byRequest(RequestId id) const {
    const auto it = m_running.find(id);
    return it == m_running.end() ? nullptr : byKey(it->second);
}

ChatSession& ChatController::add(Conversation conversation) {
    auto s = std::make_unique<ChatSession>();
    s->key = m_nextKey++;
    s->conversation = std::move(conversation);
    s->model = std::make_unique<ChatModel>();
    m_sessions.push_back(std::move(s));
    return *m_sessions.back();
}

void ChatController::start() {
    m_store.listConversations([this](Result<std::vector<Conversation>> list) {
        if (!list) {
            emit storeFailed(sentenceOf(list.error()));
            return;
        }
        m_list.setConversations(std::move(*list), m_wallNow());
        const std::vector<ConversationId> ids = m_list.ids();
        if (!ids.empty() && m_current->conversation.id == kNoId && m_current->model->size() == 0)
            select(ids.front());
    });
}

void ChatController::reread() {
    m_lastRemoved = kNoId;
    m_deleted.clear();
    newConversation(); // first: nothing of what goes may be shown
    for (const auto& s : m_sessions) {
        if (s->conversation.id == kNoId)
            continue; // not stored anywhere yet: it stays
        stop(s->conversation.id);
        s->removed = true;
        s->conversation.id = kNoId; // names another chat now
    }
    start();
}

void ChatController::reloadList() {
    m_store.listConversations([this](Result<std::vector<Conversation>> list) {
        if (list)
            m_list.setConversations(std::move(*list), m_wallNow());
        else
            emit storeFailed(sentenceOf(list.error()));
    });
}

void ChatController::newConversation() {
    if (m_current && m_current->conversation.id == kNoId && m_current->model->size() == 0)
        return; // an empty new chat is already there
    Conversation conversation;
    conversation.settings = m_current ? m_current->conversation.settings : defaultChatSettings();
    ChatSession& s = add(std::move(conversation));
    s.loaded = true;
    show(s);
}

void ChatController::select(ConversationId id) {
    ChatSession* s = byConversation(id);
    if (!s) {
        const Conversation* known = m_list.find(id);
        if (!known)
            return;
        s = &add(*known);
    }
    if (s == m_current)
        return;
    show(*s);
    if (!s->loaded)
        load(*s);
    else
        findCut();
}

void ChatController::show(ChatSession& s) {
    m_current = &s;
    const auto it = std::find_if(m_sessions.begin(), m_sessions.end(), [&](const auto& p) { return p.get() == &s; });
    std::rotate(it, it + 1, m_sessions.end());
    forgetIdle();
    emit currentChanged();
    emit stateChanged();
    emit contextChanged();
    // The answer that it waited for failed, or it was refused, while another chat was shown.
    if (&s == m_current && !s.queued.isEmpty() && s.ready() && !s.tooLong)
        emit sendFailed(takeQueued(), tr("It could not be sent while another chat was shown."), kNoId);
}

/// Messages of conversations that were not shown for long are read again when needed: memory stays flat.
void ChatController::forgetIdle() {
    std::size_t idle = 0;
    for (auto it = m_sessions.rbegin(); it != m_sessions.rend(); ++it)
        idle += !(*it)->busy() && it->get() != m_current;
    const auto gone = [&](const std::unique_ptr<ChatSession>& s) {
        if (s->busy() || s.get() == m_current)
            return false;
        const bool drop = s->removed || s->conversation.id == kNoId || idle > kIdleSessionsKept;
        if (drop)
            --idle;
        return drop;
    };
    // The models of dropped sessions may still be known to views until `currentChanged`: they live until then.
    for (auto it = m_sessions.begin(); it != m_sessions.end();) {
        if (gone(*it)) {
            (*it)->model.release()->deleteLater();
            it = m_sessions.erase(it);
        } else {
            ++it;
        }
    }
}

void ChatController::load(ChatSession& s) {
    m_store.loadMessages(s.conversation.id, [this, key = s.key](Result<std::vector<ChatMessage>> messages) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (!messages) {
            emit storeFailed(sentenceOf(messages.error()));
            return;
        }
        session->loaded = true;
        session->model->setMessages(std::move(*messages));
        if (session->context.length == 0)
            session->contextFromReceipts();
        if (session == m_current) {
            findCut();
            emit currentChanged();
            emit stateChanged();
            emit contextChanged();
        }
    });
}

void ChatController::rename(ConversationId id, const QString& title) {
    const Conversation* known = m_list.find(id);
    if (!known || title.simplified().isEmpty())
        return;
    Conversation conversation = *known;
    conversation.title = title.simplified();
    conversation.titleByUser = true;
    conversation.unsaved = conversation.unsaved || m_unsaved;
    m_list.put(conversation, m_wallNow());
    if (ChatSession* s = byConversation(id)) {
        s->conversation.title = conversation.title;
        s->conversation.titleByUser = true;
    }
    m_store.renameConversation(id, conversation.title, reportFailure());
    emit stateChanged();
}

void ChatController::remove(ConversationId id) {
    const Conversation* known = m_list.find(id);
    if (!known)
        return;
    const QString title = known->title;
    stop(id);
    m_list.remove(id);
    m_lastRemoved = id;
    m_store.deleteConversation(id, reportFailure());
    if (ChatSession* s = byConversation(id)) {
        s->removed = true;
        if (s == m_current)
            newConversation();
    }
    emit removed(id, title);
}

void ChatController::undoRemove() {
    undoRemove(std::exchange(m_lastRemoved, kNoId));
}

void ChatController::undoRemove(ConversationId id) {
    if (id == kNoId)
        return;
    if (ChatSession* s = byConversation(id))
        s->removed = false;
    m_store.restoreConversation(id, reportFailure());
    m_store.listConversations([this, id](Result<std::vector<Conversation>> list) {
        if (!list) {
            emit storeFailed(sentenceOf(list.error()));
            return;
        }
        m_list.setConversations(std::move(*list), m_wallNow());
        select(id);
    });
}

void ChatController::setSystemPrompt(const QString& prompt) {
    if (prompt == m_current->conversation.systemPrompt)
        return;
    m_current->conversation.systemPrompt = prompt;
    if (m_current->conversation.id != kNoId)
        m_store.setSystemPrompt(m_current->conversation.id, prompt, reportFailure());
    emit stateChanged();
}

void ChatController::setSettings(const api::SamplingParams& settings) {
    m_current->conversation.settings = settings;
    if (m_current->conversation.id != kNoId)
        m_store.setSettings(m_current->conversation.id, settings, reportFailure());
    emit stateChanged();
}

ChatStore::Done<void> ChatController::reportFailure() {
    return [this](Result<void> done) {
        if (!done)
            emit storeFailed(sentenceOf(done.error()));
    };
}

QString ChatController::titleOf(OwnerId owner) const {
    if (owner == OwnerId(kTitleOwner))
        return tr("Finding a title");
    if (!owner.valid())
        return {};
    const Conversation* known = m_list.find(owner.value());
    return known ? known->title : QString();
}

} // namespace kvscope::ui

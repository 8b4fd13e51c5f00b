// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, fifth part: a title that the model finds for a chat. It is asked as a suffix of the chat, so that
// nearly all of it comes from the cache, under no chat's name, and only while nobody waits for an answer: a message
// that is sent meanwhile ends it, and it is tried again later. Until there is one, the first words are the title.
#include "engine/base/thinking.h"
#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr std::int32_t kTitleTokens = 24;
constexpr const char* kQuestion =
    "Give this conversation a title of at most six words, in its language. Write only the title.";

} // namespace

void ChatController::setAutoTitles(bool on) {
    m_autoTitles = on;
    if (!on)
        stopTitle();
}

/// After an answer: is this the moment to look for a title?
void ChatController::wantTitle(ChatSession& s) {
    const ChatModel& model = *s.model;
    s.wantsTitle = m_autoTitles && !s.removed && !s.conversation.titleByUser && model.size() == 2 &&
                   model.at(0).role == MessageRole::User && !model.at(1).text.isEmpty() &&
                   model.at(1).status == MessageStatus::Done &&
                   s.conversation.title == words::titleFrom(firstWords({model.at(0).text, model.at(0).attachments}));
}

void ChatController::askTitle() {
    if (!m_running.empty() || m_titleRequest.valid() || !m_autoTitles || !m_modelReady)
        return;
    for (const auto& s : m_sessions) {
        if (!s->wantsTitle)
            continue;
        s->wantsTitle = false;
        const auto rows = s->dialogRows; // those of the chat's own request
        api::DialogPrompt prompt = s->dialog(m_modelPath);
        s->dialogRows = rows;
        prompt.messages.push_back({"user", kQuestion, {}});
        if (s->opensThought || !s->answer().thinking.isEmpty()) { // no thought about that: it has had one already
            prompt.messages.push_back(
                {"assistant", s->opensThought ? "\n</think>\n\n" : "<think>\n\n</think>\n\n", {}});
            prompt.continueLast = true;
            prompt.addGenerationPrompt = false;
        }
        api::Request request;
        request.id = m_titleRequest = RequestId(m_nextRequest++);
        request.owner = OwnerId(kTitleOwner);
        request.prompt = std::move(prompt);
        request.sampling.maxTokens = kTitleTokens;
        request.background = true;
        m_titleKey = s->key;
        m_titleOpensThought = s->opensThought;
        m_source.submit(std::move(request));
        return;
    }
}

/// Somebody waits for an answer: the title can wait.
void ChatController::stopTitle() {
    if (!m_titleRequest.valid())
        return;
    m_source.cancel(m_titleRequest);
    m_titleRequest = RequestId();
    if (ChatSession* s = byKey(m_titleKey))
        s->wantsTitle = m_autoTitles;
}

void ChatController::titleFound(const api::Answer& answer) {
    m_titleRequest = RequestId();
    ChatSession* s = byKey(m_titleKey);
    if (s && !s->removed && !s->conversation.titleByUser && answer.reason != api::FinishReason::Error) {
        const std::string text = splitThinking(wholeCharacters(answer.text), m_titleOpensThought).answer;
        const QString title = words::titleFromAnswer(QString::fromStdString(text));
        if (!title.isEmpty()) {
            s->conversation.title = title;
            if (const Conversation* known = m_list.find(s->conversation.id)) {
                Conversation named = *known;
                named.title = title;
                m_list.put(named, m_wallNow());
            }
            m_store.setAutomaticTitle(s->conversation.id, title, reportFailure());
            emit stateChanged();
        }
    }
    askTitle();
}

} // namespace kvscope::ui

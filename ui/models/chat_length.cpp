// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, sixth part: how many tokens a message needs, before it is sent.
#include <QMetaMethod>
#include <algorithm>

#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

/// What a template may add: its own system text, and the frame of a message.
constexpr std::int64_t kTemplateText = 512;
constexpr std::int64_t kMessageFrame = 32;
constexpr qsizetype kLongestPredicted = 256 * 1024; ///< characters; tokenizing more would be felt by running answers

api::DialogPrompt withMessage(api::DialogPrompt prompt, const QString& text) {
    prompt.messages.push_back({"user", text.toStdString(), {}});
    prompt.addGenerationPrompt = true;
    prompt.continueLast = false;
    return prompt;
}

} // namespace

/// The dialog up to `row`, and `text` as the user's next message.
api::DialogPrompt ChatController::dialogWith(ChatSession& s, const QString& text, int row) const {
    const auto rows = s.dialogRows; // those of the newest request
    api::DialogPrompt prompt = s.dialog(m_modelPath, row);
    s.dialogRows = rows;
    return withMessage(std::move(prompt), text);
}

/// A token is at least a byte, so most messages fit without anybody counting.
bool ChatController::surelyFits(ChatSession& s, const QString& text, int row) const {
    if (m_longest <= 0)
        return true; // it is not known what there is room for: the engine will say
    std::int64_t bytes = kTemplateText;
    for (const api::DialogMessage& message : dialogWith(s, text, row).messages)
        bytes += std::int64_t(message.content.size() + message.thinking.size()) + kMessageFrame;
    return bytes < m_longest;
}

/// Sends, or asks the engine first whether there is room for it.
void ChatController::sendIfItFits(ChatSession& s, const Draft& message, MessageId edited) {
    const QString text = messageWith(message);
    const int row = edited == kNoId ? s.model->size() : s.model->rowOf(edited);
    if (surelyFits(s, text, row)) {
        startTurn(s, message, row);
        return;
    }
    s.checking = RequestId(m_nextRequest++);
    s.checked = message;
    s.checkedEdit = edited;
    api::Request request;
    request.id = s.checking;
    request.owner = OwnerId(s.conversation.id);
    request.prompt = dialogWith(s, text, row);
    request.sampling = s.conversation.settings;
    m_source.measure(std::move(request));
    emit stateChanged();
}

/// A message that has been counted, or must be counted again. The one that it is a version of may have gone meanwhile.
void ChatController::sendNow(ChatSession& s, const Draft& message, MessageId edited, bool count) {
    if (edited != kNoId && s.model->rowOf(edited) < 0)
        edited = kNoId;
    if (count)
        sendIfItFits(s, message, edited);
    else
        startTurn(s, message, edited == kNoId ? s.model->size() : s.model->rowOf(edited));
}

void ChatController::onMeasured(const api::MeasuredEvent& e) {
    if (const auto counter = m_counters.find(e.id); counter != m_counters.end()) {
        const auto done = std::move(counter->second);
        m_counters.erase(counter);
        done(e);
        return;
    }
    const auto it = std::find_if(m_sessions.begin(), m_sessions.end(),
                                 [&](const auto& s) { return s->checking.valid() && s->checking == e.id; });
    if (it == m_sessions.end())
        return;
    ChatSession& s = **it;
    s.checking = RequestId();
    const Draft message = std::exchange(s.checked, {});
    if (s.removed)
        return;
    if (e.fits()) { // or it cannot be encoded: then the answer says why
        sendNow(s, message, s.checkedEdit);
        return;
    }
    if (!isSignalConnected(QMetaMethod::fromSignal(&ChatController::overLong))) { // nobody could ask the user
        emit sendFailed(message, words::tooLongLine(e.needed(), e.limit), s.checkedEdit);
        emit stateChanged();
        return;
    }
    OverLong tooLong;
    tooLong.message = message;
    tooLong.edited = s.checkedEdit;
    tooLong.needed = e.needed();
    tooLong.limit = e.limit;
    tooLong.window = e.window;
    tooLong.poolTokens = e.poolTokens;
    tooLong.alone = e.cut.messages > 0;
    tooLong.larger = e.larger;
    tooLong.whyNotLarger = QString::fromStdString(e.whyNotLarger);
    s.tooLong = tooLong;
    emit overLong(s.conversation.id);
    emit stateChanged();
}

const OverLong* ChatController::tooLong() const {
    return m_current->tooLong ? &*m_current->tooLong : nullptr;
}

OverLong ChatController::takeTooLong() {
    OverLong question = std::move(*m_current->tooLong);
    m_current->tooLong.reset();
    emit stateChanged();
    return question;
}

bool ChatController::enlargeAndSend() {
    if (!m_current->tooLong || !m_current->tooLong->larger || anyRunning())
        return false; // a reload ends the answers that run
    const api::LargerWindow larger = *m_current->tooLong->larger;
    m_current->waitsForWindow = true;
    emit reloadWanted(larger.maxModelLen, larger.numBlocks, larger.unloadFirst);
    return true;
}

/// A model is there: what waited for a larger window is sent, or shown again with the figures of now.
void ChatController::sendAfterReload() {
    for (std::size_t i = 0; i < m_sessions.size(); ++i) {
        ChatSession& s = *m_sessions[i];
        if (!std::exchange(s.waitsForWindow, false) || !s.tooLong || !s.ready())
            continue;
        const OverLong question = std::move(*s.tooLong);
        s.tooLong.reset();
        sendNow(s, question.message, question.edited, true);
    }
}

// ---- figures while the user writes ----

void ChatController::countTokens(const QString& text, std::function<void(std::int64_t)> done) {
    measure(api::TextPrompt{text.toStdString()},
            [done = std::move(done)](const api::MeasuredEvent& e) { done(e.error ? 0 : e.promptTokens); });
}

void ChatController::predict(const QString& text, std::function<void(const api::MeasuredEvent&)> done) {
    if (!m_modelReady || !m_current->loaded || text.size() > kLongestPredicted)
        return;
    measure(dialogWith(*m_current, text, m_current->model->size()), std::move(done));
}

void ChatController::measure(api::Prompt prompt, std::function<void(const api::MeasuredEvent&)> done) {
    api::Request request;
    request.id = RequestId(m_nextRequest++);
    request.owner = OwnerId(m_current->conversation.id);
    request.prompt = std::move(prompt);
    request.sampling = m_current->conversation.settings;
    m_counters.emplace(request.id, std::move(done));
    m_source.measure(std::move(request));
}

} // namespace kvscope::ui

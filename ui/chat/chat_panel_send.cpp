// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatPanel, second half: from the composer to the controller. Sending, the message that waits, what a message would
// cost, and the question when it is too long.
#include <QPointer>
#include <algorithm>

#include "ui/chat/attachment_chips.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/chat/overlong_box.h"
#include "ui/models/chat_words.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kDraftPauseMs = 400;
constexpr int kMeterPauseMs = 250;
constexpr qsizetype kPredictAtMost = 256 * 1024; // characters: more is counted when it is sent

constexpr std::size_t kChoicesAtMost = 5; // of attachments: the box must leave room for the chat

enum Choice { kEnlarge, kNewChat, kShorten, kWithout }; // kWithout + n: without the n-th attachment

QString tokens(std::int64_t n) {
    return n == 1 ? ChatPanel::tr("1 token") : ChatPanel::tr("%1 tokens").arg(formatNumber(n));
}

QString enlargeCost(const api::LargerWindow& larger) {
    const QString pool = ChatPanel::tr("pool of %1").arg(formatBytes(larger.poolBytes));
    return larger.unloadFirst ? ChatPanel::tr("%1; loads the model again, chats are read again").arg(pool)
                              : ChatPanel::tr("%1; chats are read again").arg(pool);
}

} // namespace

void ChatPanel::connectComposer() {
    connect(m_composer, &Composer::sendRequested, this, &ChatPanel::send);
    connect(m_composer, &Composer::stopRequested, m_controller, qOverload<>(&ChatController::stop));
    connect(m_composer, &Composer::attachRequested, this, &ChatPanel::chooseFiles);
    connect(m_composer, &Composer::filesOffered, this, &ChatPanel::takeFiles);
    connect(m_composer, &Composer::contentChanged, &m_draftPause, qOverload<>(&QTimer::start));
    connect(m_composer, &Composer::contentChanged, this, &ChatPanel::meterSoon);
    connect(m_composer, &Composer::queuedEditRequested, this, &ChatPanel::editQueued);
    connect(m_composer, &Composer::queuedCancelRequested, this, [this] {
        m_controller->takeQueued();
        m_controller->forgetWaiting();
    });
    connect(m_composer->overlong(), &OverlongBox::confirmed, this, &ChatPanel::answerTooLong);
    connect(m_composer->overlong(), &OverlongBox::cancelled, this, [this] { answerTooLong(kShorten); });
    connect(m_controller, &ChatController::overLong, this, &ChatPanel::refresh);
    connect(m_controller, &ChatController::turnStored, this, [this](qint64 id) { // what was begun since is kept
        const Draft begun = id == m_shownDraft ? m_composer->draft() : m_drafts.value(id);
        if (!begun.isEmpty())
            emit draftChanged(id, begun);
    });
    connect(m_controller, &ChatController::sendFailed, this,
            [this](const Draft& message, const QString& sentence, qint64 edited) {
                putBack(message, edited);
                notice(QStringLiteral("send"), MessageBox::Kind::Danger, tr("The message was not sent"), sentence);
            });
    connect(m_controller, &ChatController::messageDeleted, this, &ChatPanel::confirmDeleted);
    m_draftPause.setSingleShot(true);
    m_meterPause.setSingleShot(true);
    m_draftPause.setInterval(kDraftPauseMs);
    m_meterPause.setInterval(kMeterPauseMs);
    connect(&m_draftPause, &QTimer::timeout, this, &ChatPanel::flushDraft);
    connect(&m_meterPause, &QTimer::timeout, this, &ChatPanel::refreshMeter);
}

/// A message that was not sent is where it was written: the field of an edited message opens again.
void ChatPanel::putBack(const Draft& message, qint64 edited) {
    m_newDraftStays = false;
    const int row = edited == kNoId ? -1 : m_controller->messages()->rowOf(edited);
    if (row >= 0 && !m_view->editBox())
        m_view->beginEdit(row, message.text);
    else
        m_composer->giveBack(message);
    flushDraft();
    m_controller->forgetWaiting();
}

void ChatPanel::send() {
    const Draft draft = m_composer->draft();
    if (!m_composer->hasMessage())
        return;
    if (m_controller->tooLong()) { // of before: it waited for a larger window that did not come
        const OverLong before = m_controller->takeTooLong();
        if (before.edited != kNoId)
            putBack(before.message, before.edited);
    }
    if (m_controller->answering()) {
        if (!m_controller->queued().isEmpty() || !m_controller->queueMessage(draft))
            return;
    } else if (!m_controller->send(draft)) {
        return;
    }
    m_composer->clear();
    flushDraft();
    clearNotice(QStringLiteral("send"));
    m_view->scrollToEnd();
    refresh();
}

void ChatPanel::keepQueued() {
    if (m_controller->queued().isEmpty())
        return;
    m_composer->giveBack(m_controller->takeQueued());
    flushDraft();
    m_controller->forgetWaiting();
}

void ChatPanel::editQueued() {
    keepQueued();
    m_composer->edit()->setFocus();
    refresh();
}

void ChatPanel::editMessage(int row, const QString& text) {
    if (m_controller->editMessage(row, text))
        return;
    m_view->beginEdit(row, text); // else what was written would be gone
    const QString detail = m_view->editBox()           ? tr("Your text is still in its field.")
                           : m_controller->answering() ? tr("Your text is in the field below.")
                                                       : QString();
    if (!m_view->editBox())
        m_composer->giveBack({text, {}});
    notice(
        QStringLiteral("send"), MessageBox::Kind::Warn, tr("The message was not changed"),
        (m_controller->modelReady() ? tr("Something else is under way in this chat.") : tr("Choose a model first.")) +
            QLatin1Char(' ') + detail);
}

void ChatPanel::confirmDeleted(qint64 conversation, qint64 message) {
    notice(QStringLiteral("deleted"), MessageBox::Kind::Neutral, tr("The message is deleted"), {},
           {{tr("Undo"), true, [this, conversation, message] {
                 clearNotice(QStringLiteral("deleted"));
                 m_controller->undoDeleteMessage(conversation, message);
             }}});
    m_deletedPause.start();
}

// ---- what it would cost ----

void ChatPanel::meterSoon() {
    ++m_meterAsked; // what is under way is about another text
    if (m_composer->hasMessage())
        m_meterPause.start();
    else
        refreshMeter();
}

void ChatPanel::refreshMeter() {
    m_meterPause.stop();
    const std::int64_t asked = ++m_meterAsked;
    if (!m_composer->hasMessage()) {
        const SendKey key = m_composer->edit()->sendKey();
        m_composer->setMeter({tr("%1 sends, %2 begins a line").arg(sendKeyText(key), newLineKeyText(key)), {}});
        return;
    }
    if (!m_controller->modelReady()) {
        m_composer->setMeter({});
        return;
    }
    countAttachments();
    const QString message = m_composer->message();
    if (message.size() > kPredictAtMost) {
        m_composer->setMeter({tr("%1 characters, counted when you send").arg(formatNumber(message.size())), {}});
        return;
    }
    m_controller->predict(message, [self = QPointer<ChatPanel>(this), asked](const api::MeasuredEvent& cost) {
        if (self && asked == self->m_meterAsked)
            self->showCost(cost);
    });
}

void ChatPanel::countAttachments() {
    const auto& attachments = m_composer->chips()->attachments();
    for (std::size_t i = 0; i < attachments.size(); ++i) {
        if (attachments[i].tokens > 0)
            continue;
        const QString text = attachmentAsText(attachments[i]);
        m_controller->countTokens(text, [self = QPointer<ChatPanel>(this), text](std::int64_t count) {
            if (!self)
                return;
            const auto& now = self->m_composer->chips()->attachments(); // some may have gone since
            for (std::size_t at = 0; at < now.size(); ++at)
                if (now[at].tokens == 0 && attachmentAsText(now[at]) == text)
                    self->m_composer->chips()->setTokens(at, count);
        });
    }
}

void ChatPanel::showCost(const api::MeasuredEvent& cost) {
    Composer::Meter meter;
    if (cost.error) {
        meter.words = QString::fromStdString(cost.error->message);
        meter.warn = true;
    } else if (!cost.fits()) {
        meter.words =
            tr("Needs %1 tokens, the window holds %2").arg(formatNumber(cost.needed()), formatNumber(cost.limit));
        meter.warn = true;
    } else {
        QStringList parts{
            tr("about %1 reused + %2 new")
                .arg(formatNumber(cost.cachedTokens), formatNumber(cost.promptTokens - cost.cachedTokens))};
        if (cost.seconds >= 0)
            parts << tr("about %1").arg(formatSeconds(cost.seconds));
        parts << (cost.newBlocks == 1 ? tr("1 more block") : tr("%1 more blocks").arg(formatNumber(cost.newBlocks)));
        if (cost.cut.messages > 0)
            parts << tr("without the %1 oldest messages").arg(formatNumber(cost.cut.messages));
        meter.words = parts.join(QStringLiteral(", "));
        meter.reused = cost.cachedTokens;
        meter.computed = cost.promptTokens - cost.cachedTokens;
        meter.total = cost.promptTokens;
    }
    meter.explanation = tr("%1 of %2 with this message").arg(tokens(cost.promptTokens), formatNumber(cost.limit));
    if (cost.cut.messages > 0)
        meter.explanation += tr("; %1 of the oldest turns are left out").arg(tokens(cost.cut.tokens));
    m_composer->setMeter(meter);
}

// ---- too long ----

void ChatPanel::refreshTooLong() {
    const OverLong* question = m_controller->tooLong();
    OverlongBox* box = m_composer->overlong();
    if (!question || m_controller->current().waitsForWindow) {
        m_composer->showOverlong(false);
        m_asksTooLong = false;
        // What waited for a larger window has been sent.
        if (!question && m_enlarging && m_controller->answering()) {
            if (sameMessage(*std::exchange(m_enlarging, std::nullopt), m_composer->draft()))
                m_composer->clear();
            flushDraft();
        }
        return;
    }
    if (m_asksTooLong)
        return;
    m_asksTooLong = true;
    const bool edit = question->edited != kNoId;
    m_newDraftStays = false;
    if (!edit && !sameMessage(m_composer->draft(), question->message))
        m_composer->giveBack(question->message);
    m_composer->showOverlong(true);
    const QString sentence = question->poolTokens < question->window
                                 ? tr("Needs %1 tokens, the pool holds %2. Nothing is sent yet.")
                                 : tr("Needs %1 tokens, the window holds %2. Nothing is sent yet.");
    box->ask((edit ? tr("Your edited message: ") : QString()) +
                 sentence.arg(formatNumber(question->needed), formatNumber(question->limit)),
             choicesFor(*question));
}

std::vector<OverlongBox::Choice> ChatPanel::choicesFor(const OverLong& question) const {
    std::vector<OverlongBox::Choice> rows;
    if (question.larger) {
        const bool running = m_controller->anyRunning();
        rows.push_back({kEnlarge, tr("Enlarge the window to %1").arg(formatNumber(question.larger->maxModelLen)),
                        running ? tr("once the running answers have ended") : enlargeCost(*question.larger),
                        tr("Enlarge and send"), !running});
    }
    const bool edit = question.edited != kNoId;
    const bool asItIs = edit || sameMessage(m_composer->draft(), question.message); // nothing else was begun since
    const Draft message = edit ? question.message : m_composer->draft();
    const auto& attachments = message.attachments;
    const bool words = !message.text.trimmed().isEmpty();
    for (std::size_t i = 0; asItIs && i < attachments.size() && rows.size() < kChoicesAtMost; ++i)
        if (attachments[i].tokens >= question.shortenBy() && attachments.size() + (words ? 1 : 0) > 1)
            rows.push_back({kWithout + int(i), tr("Leave out %1").arg(attachmentTitle(attachments[i])),
                            tr("%1 less").arg(tokens(attachments[i].tokens)), tr("Leave out and send")});
    const std::int64_t chat = m_controller->context().length;
    if (chat > 0 && !question.alone && question.needed - chat <= question.limit)
        rows.push_back({kNewChat, tr("Send it in a new chat"), tr("without the %1 of this chat").arg(tokens(chat)),
                        tr("Send in a new chat")});
    QString cost = tr("about %1 too many").arg(tokens(question.shortenBy()));
    if (!question.larger && !question.whyNotLarger.isEmpty())
        cost = question.whyNotLarger;
    rows.push_back({kShorten, tr("Shorten it by about %1").arg(tokens(question.shortenBy())), cost, tr("Shorten it")});
    return rows;
}

void ChatPanel::answerTooLong(int choice) {
    if (!m_controller->tooLong())
        return;
    if (choice == kEnlarge) {
        const OverLong asked = *m_controller->tooLong();
        if (m_controller->enlargeAndSend() && asked.edited == kNoId)
            m_enlarging = asked.message; // it stays until it is sent: loading may fail
        return refresh();
    }
    const OverLong question = m_controller->takeTooLong();
    const bool edit = question.edited != kNoId;
    const bool asItIs = !edit && sameMessage(m_composer->draft(), question.message);
    const Draft message = asItIs ? m_composer->draft() : question.message;
    if (choice == kNewChat) {
        if (asItIs)
            m_composer->clear();
        sendInNewChat(message);
    } else if (choice >= kWithout && (edit || asItIs)) {
        sendWithout(std::size_t(choice - kWithout), message, question.edited);
    } else if (edit) {
        putBack(message, question.edited);
    } else {
        flushDraft();
        m_controller->forgetWaiting();
    }
    refresh();
}

/// What was begun in the new chat and not sent stays there.
void ChatPanel::sendInNewChat(const Draft& message) {
    flushDraft();
    m_controller->forgetWaiting();
    m_controller->newConversation();
    m_newDraftStays = !m_composer->draft().isEmpty();
    if (!m_controller->send(message))
        putBack(message, kNoId);
    m_view->scrollToEnd();
}

void ChatPanel::sendWithout(std::size_t attachment, Draft message, qint64 edited) {
    const Draft whole = message;
    if (attachment < message.attachments.size())
        message.attachments.erase(message.attachments.begin() + std::ptrdiff_t(attachment));
    if (edited == kNoId) {
        m_composer->setDraft(message);
        refresh();
        return send();
    }
    const int row = m_controller->messages()->rowOf(edited);
    if (row < 0 || !m_controller->editMessage(row, message))
        putBack(whole, edited);
}

bool ChatPanel::cancelTooLong() {
    if (!m_controller->tooLong())
        return false;
    answerTooLong(kShorten);
    return true;
}

} // namespace kvscope::ui

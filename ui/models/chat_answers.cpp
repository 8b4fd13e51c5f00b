// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, second half: from sending to the end of an answer.
#include <algorithm>
#include <cmath>

#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr int kSavingNoticeMs = 300;
constexpr Nanos kRateInterval = 250'000'000;
constexpr Nanos kFlushInterval = 70'000'000; // chat at most 14 times a second: each lays out a paragraph
constexpr qsizetype kPreviewLength = 80;

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

} // namespace

// ---- sending ----

bool ChatController::send(const QString& text) {
    if (text.trimmed().isEmpty() || !canSend())
        return false;
    ChatSession& s = *m_current;
    s.request = RequestId(m_nextRequest++);
    s.submitted = s.stopAsked = s.unsavedText = false;
    s.sentAt = m_clock.now();
    s.pace.restart();
    s.rate = 0;
    s.rateAt = 0;
    m_running.emplace(s.request, s.key);

    ChatMessage user;
    user.status = MessageStatus::Committing;
    user.text = text;
    user.createdMs = m_wallNow();
    ChatMessage answer;
    answer.role = MessageRole::Assistant;
    answer.status = MessageStatus::Queued;
    answer.settings = s.conversation.settings;
    answer.model = m_modelPath;
    answer.createdMs = user.createdMs;
    s.userRow = s.model->append(std::move(user));
    s.answerRow = s.model->append(std::move(answer));
    QTimer::singleShot(kSavingNoticeMs, this, [this, request = s.request] {
        ChatSession* waiting = byRequest(request);
        if (waiting && waiting->model->at(waiting->userRow).status == MessageStatus::Committing)
            waiting->model->edit(waiting->userRow, [](ChatMessage& m) { m.status = MessageStatus::Saving; });
    });
    if (!m_saveTimer.isActive())
        m_saveTimer.start();
    if (s.conversation.id == kNoId)
        createThenCommit(s.key, text);
    else
        commitTurn(s, text);
    emit stateChanged();
    return true;
}

void ChatController::createThenCommit(std::int64_t key, const QString& text) {
    ChatSession& s = *byKey(key);
    s.conversation.title = words::titleFrom(text);
    s.conversation.createdMs = s.conversation.updatedMs = m_wallNow();
    m_store.createConversation(s.conversation, [this, key, text](Result<ConversationId> id) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (!id) {
            turnRefused(*session, text, id.error());
            return;
        }
        session->conversation.id = *id;
        commitTurn(*session, text);
    });
}

void ChatController::commitTurn(ChatSession& s, const QString& text) {
    ChatStore::NewTurn turn;
    turn.conversation = s.conversation.id;
    turn.parent = s.userRow > 0 ? s.model->at(s.userRow - 1).id : kNoId;
    turn.text = text;
    turn.settings = s.conversation.settings;
    turn.model = m_modelPath;
    m_store.addTurn(turn, [this, key = s.key, text](Result<ChatStore::TurnIds> ids) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (ids)
            turnCommitted(*session, *ids);
        else
            turnRefused(*session, text, ids.error());
    });
}

void ChatController::turnRefused(ChatSession& s, const QString& text, const Error& error) {
    m_running.erase(s.request);
    s.request = RequestId();
    s.model->remove(s.answerRow);
    s.model->remove(s.userRow);
    s.answerRow = s.userRow = -1;
    emit sendFailed(text, sentenceOf(error));
    emit stateChanged();
}

void ChatController::turnCommitted(ChatSession& s, const ChatStore::TurnIds& ids) {
    s.model->edit(s.userRow, [&](ChatMessage& m) {
        m.id = ids.user;
        m.status = MessageStatus::Done;
    });
    s.model->edit(s.answerRow, [&](ChatMessage& m) { m.id = ids.answer; });
    touch(s, s.model->at(s.userRow).text);
    emit stateChanged(); // the title of a new chat
    if (s.stopAsked) {
        s.model->edit(s.answerRow, [](ChatMessage& m) {
            m.status = MessageStatus::Stopped;
            m.reason = api::FinishReason::Cancelled;
        });
        endAnswer(s);
        return;
    }
    submit(s);
}

void ChatController::submit(ChatSession& s) {
    api::Request request;
    request.id = s.request;
    request.owner = OwnerId(s.conversation.id);
    request.prompt = s.dialog(m_modelPath);
    request.sampling = s.answer().settings;
    s.submitted = true;
    m_source.submit(std::move(request));
    setActivity(s);
}

void ChatController::stop() {
    if (!m_current->request.valid())
        return;
    m_current->stopAsked = true;
    if (m_current->submitted)
        m_source.cancel(m_current->request);
}

void ChatController::stop(ConversationId id) {
    ChatSession* s = byConversation(id);
    if (!s || !s->request.valid())
        return;
    s->stopAsked = true;
    if (s->submitted)
        m_source.cancel(s->request);
}

// ---- events ----

void ChatController::handleEvent(const api::Event& event) {
    if (const auto* tokens = std::get_if<api::TokensEvent>(&event))
        onTokens(*tokens);
    else if (const auto* prefill = std::get_if<api::PrefillEvent>(&event))
        onPrefill(*prefill);
    else if (const auto* queued = std::get_if<api::QueuedEvent>(&event))
        onQueued(*queued);
    else if (const auto* waiting = std::get_if<api::WaitingEvent>(&event))
        onWaiting(*waiting);
    else if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
        onFinished(finished->answer);
    else if (const auto* loaded = std::get_if<api::LoadedEvent>(&event))
        onModel(&loaded->info);
    else if (std::holds_alternative<api::UnloadedEvent>(event) || std::holds_alternative<api::FaultedEvent>(event))
        onModel(nullptr);
    else if (const auto* blocks = std::get_if<api::OwnerBlocksEvent>(&event)) {
        if (ChatSession* s = byConversation(blocks->owner.value()); s && blocks->tokens > 0)
            setLength(*s, blocks->tokens);
    }
}

void ChatController::onModel(const api::ModelInfo* info) {
    m_modelReady = info != nullptr;
    m_contextLimit = info ? info->maxModelLen : 0;
    if (info)
        m_modelPath = QString::fromStdString(info->path);
    emit stateChanged();
    emit contextChanged();
}

void ChatController::onQueued(const api::QueuedEvent& e) {
    ChatSession* s = byRequest(e.id);
    if (!s)
        return;
    s->setRanges(e.messageRanges, e.promptTokens);
    s->model->edit(s->answerRow, [&](ChatMessage& m) { m.progress.total = e.promptTokens; });
    s->context.cached = 0;
    s->context.thisTurn = e.promptTokens;
    setLength(*s, e.promptTokens);
}

void ChatController::onWaiting(const api::WaitingEvent& e) {
    ChatSession* s = byRequest(e.id);
    if (!s)
        return;
    s->model->edit(s->answerRow, [&](ChatMessage& m) {
        m.status = MessageStatus::Waiting;
        m.progress.neededBlocks = e.neededBlocks;
        m.progress.availableBlocks = e.availableBlocks;
        m.progress.runningLimit = e.runningLimit;
        m.progress.preempted = e.preempted;
        m.progress.lentTo = titleOf(e.lentTo);
    });
    setActivity(*s);
}

void ChatController::onPrefill(const api::PrefillEvent& e) {
    ChatSession* s = byRequest(e.id);
    if (!s)
        return;
    s->model->edit(s->answerRow, [&](ChatMessage& m) {
        m.status = MessageStatus::Reading;
        m.progress.reused = e.reused;
        m.progress.done = e.done;
        m.progress.total = e.total;
        m.progress.secondsLeft = e.secondsLeft;
    });
    s->context.cached = e.reused;
    s->context.thisTurn = s->context.length - e.reused;
    if (s == m_current)
        emit contextChanged();
    setActivity(*s);
}

void ChatController::onTokens(const api::TokensEvent& e) {
    ChatSession* s = byRequest(e.id);
    if (!s)
        return;
    const ChatMessage& before = s->model->at(s->answerRow);
    const auto written = std::int64_t(before.tokens.size() + e.tokens.size());
    const Nanos now = m_clock.now();
    s->pace.add(now, written);
    if (now - s->rateAt >= kRateInterval) {
        s->rateAt = now;
        s->rate = s->pace.perSecond();
    }
    const bool first = before.status != MessageStatus::Writing;
    if (first) {
        s->model->edit(s->answerRow, [&](ChatMessage& m) {
            m.status = MessageStatus::Writing;
            if (m.receipt)
                return; // it was preempted and writes on
            Receipt receipt;
            receipt.cache.promptTokens = m.progress.total;
            receipt.cache.reusedTokens = m.progress.reused;
            receipt.cache.computedTokens = m.progress.total - m.progress.reused;
            receipt.cache.newBlocks = -1;
            receipt.ttftMs = double(now - s->sentAt) / 1e6;
            m.receipt = receipt;
        });
    }
    s->model->appendTokens(s->answerRow, QString::fromStdString(e.text), e.tokens, s->rate);
    s->unsavedText = true;
    s->context.thisTurn = e.sequenceLength - s->context.cached;
    setLength(*s, e.sequenceLength);
}

void ChatController::onFinished(const api::Answer& answer) {
    ChatSession* s = byRequest(answer.id);
    if (!s)
        return;
    const QString whole =
        QString::fromUtf8(wholeCharacters(answer.text).data(), qsizetype(wholeCharacters(answer.text).size()));
    s->model->edit(s->answerRow, [&](ChatMessage& m) {
        if (m.text != whole)
            m.text = whole;
        m.tokens = answer.tokenIds;
        m.reason = answer.reason;
        m.status = answer.reason == api::FinishReason::Cancelled ? MessageStatus::Stopped
                   : answer.reason == api::FinishReason::Error   ? MessageStatus::Failed
                                                                 : MessageStatus::Done;
        if (answer.error)
            m.error = sentenceOf(*answer.error);
        if (answer.cache.promptTokens > 0)
            m.receipt = Receipt{answer.cache, answer.timings.ttftMs, answer.timings};
        else
            m.receipt.reset();
        const double decode = answer.timings.decodeMs / 1000;
        m.tokensPerSecond = decode > 0 && m.tokens.size() > 1 ? double(m.tokens.size() - 1) / decode : 0;
    });
    if (answer.cache.promptTokens > 0) {
        s->context.cached = answer.cache.reusedTokens;
        s->context.thisTurn = s->context.length - s->context.cached;
    }
    endAnswer(*s);
}

/// The answer has ended in memory: write its end, and let the conversation go.
void ChatController::endAnswer(ChatSession& s) {
    const ChatMessage answer = s.answer();
    m_store.endAnswer(answer, reportFailure());
    m_running.erase(s.request);
    s.request = RequestId();
    s.submitted = s.unsavedText = false;
    s.model->flush();
    if (!s.removed)
        touch(s, answer.text.isEmpty() ? s.conversation.preview : answer.text);
    setActivity(s);
    if (m_running.empty())
        m_saveTimer.stop();
    emit lengthChanged(s.conversation.id, s.context.length);
    emit stateChanged();
    emit contextChanged();
}

void ChatController::touch(ChatSession& s, const QString& preview) {
    s.conversation.preview = preview.left(kPreviewLength * 2).simplified().left(kPreviewLength);
    s.conversation.updatedMs = m_wallNow();
    if (!s.removed)
        m_list.put(s.conversation, m_wallNow());
}

void ChatController::setLength(ChatSession& s, std::int64_t tokens) {
    if (s.context.length == tokens)
        return;
    s.context.length = tokens;
    s.context.thisTurn = std::max<std::int64_t>(0, tokens - s.context.cached);
    if (s.answerRow >= 0 && s.answerRow < s.model->size() && s.request.valid())
        s.model->setTokenEnd(s.answerRow, tokens);
    if (&s == m_current)
        emit contextChanged();
}

ContextUse ChatController::context() const {
    ContextUse use = m_current->context;
    use.limit = m_contextLimit;
    return use;
}

void ChatController::setActivity(const ChatSession& s) {
    if (s.conversation.id == kNoId)
        return;
    QString activity;
    if (s.request.valid()) {
        const ChatMessage& m = s.model->at(s.answerRow);
        if (m.status == MessageStatus::Writing) {
            const double pace = s.rate;
            activity = pace > 0 ? tr("Writing %1 tokens/s").arg(std::lround(pace)) : tr("Writing");
        } else if (m.status == MessageStatus::Reading && m.progress.total > 0) {
            activity = tr("Reading %1\u202f%").arg(100 * m.progress.done / m.progress.total);
        } else {
            activity = tr("Waiting");
        }
    }
    m_list.setActivity(s.conversation.id, activity, s.request.valid());
}

double ChatController::tokensPerSecond() const {
    double sum = 0;
    for (const auto& s : m_sessions)
        if (s->request.valid() && s->model->at(s->answerRow).status == MessageStatus::Writing)
            sum += s->pace.perSecond();
    return sum;
}

bool ChatController::tick() {
    const Nanos now = m_clock.now();
    if (now - m_lastFlush < kFlushInterval)
        return false;
    m_lastFlush = now;
    bool flushed = false;
    for (const auto& s : m_sessions) {
        if (!s->model->dirty())
            continue;
        s->model->flush();
        setActivity(*s);
        flushed = true;
    }
    return flushed;
}

void ChatController::savePartials() {
    for (const auto& s : m_sessions) {
        if (!s->request.valid() || !s->unsavedText)
            continue;
        s->unsavedText = false;
        m_store.saveProgress(s->answer(), reportFailure());
    }
}

std::vector<int> ChatController::rowsOfTokens(std::int64_t first, std::int64_t count) const {
    std::vector<int> rows;
    for (int row = 0; row < m_current->model->size(); ++row) {
        const auto& range = m_current->model->at(row).tokenRange;
        if (range.first < first + count && first < range.second)
            rows.push_back(row);
    }
    return rows;
}

} // namespace kvscope::ui

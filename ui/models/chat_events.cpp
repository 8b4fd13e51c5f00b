// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, third part: from the engine's events to the end of an answer.
#include <algorithm>
#include <cmath>

#include "engine/base/thinking.h"
#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr Nanos kRateInterval = 250'000'000;
constexpr Nanos kFlushInterval = 70'000'000; // chat at most 14 times a second: each lays out a paragraph
constexpr qsizetype kPreviewLength = 80;

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

QString textOf(std::string_view bytes) {
    return QString::fromUtf8(bytes.data(), qsizetype(bytes.size()));
}

} // namespace

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
    else if (std::holds_alternative<api::LoadFailedEvent>(event))
        for (const auto& s : m_sessions)
            s->waitsForWindow = false; // the user decides again
    else if (const auto* measured = std::get_if<api::MeasuredEvent>(&event))
        onMeasured(*measured);
    else if (const auto* blocks = std::get_if<api::OwnerBlocksEvent>(&event)) {
        if (ChatSession* s = byConversation(blocks->owner.value()); s && blocks->tokens > 0)
            setLength(*s, blocks->tokens);
    }
}

void ChatController::onModel(const api::ModelInfo* info) {
    m_modelReady = info != nullptr;
    m_trims = info && info->windowPolicy == kv::WindowPolicy::Trim;
    m_contextLimit = info ? info->maxModelLen : 0;
    const std::int64_t room = info ? std::int64_t(info->numBlocks) * info->blockSize : 0;
    const bool poolLimits = room > 0 && info->windowPolicy != kv::WindowPolicy::Sinks;
    m_longest = !info ? 0 : poolLimits ? std::min(info->maxModelLen, room + 1) : info->maxModelLen;
    if (info)
        m_modelPath = QString::fromStdString(info->path);
    emit stateChanged();
    emit contextChanged();
    if (info) {
        sendAfterReload();
        findCut();
    }
}

void ChatController::onQueued(const api::QueuedEvent& e) {
    ChatSession* s = byRequest(e.id);
    if (!s)
        return;
    s->setRanges(e.messageRanges, e.promptTokens);
    s->showCut(e.cut, s->dialogRows);
    s->opensThought = e.opensThought;
    s->written = ThinkingStream(e.opensThought, e.givenText);
    s->model->edit(s->answerRow, [&](ChatMessage& m) {
        m.progress.total = e.promptTokens;
        m.adaptations = e.adaptations;
        if (s->continuing)
            m.tokens = e.givenTokens;
    });
    const ThinkingSplit& given = s->written.split();
    const ChatMessage& row = s->model->at(s->answerRow);
    s->rowDiffers = textOf(given.answer) != row.text || textOf(given.thinking) != row.thinking;
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
        m.progress.longPrefillLimit = e.longPrefillLimit;
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
    if (s->firstTokenAt < 0)
        s->firstTokenAt = now;
    showWritten(*s, e.text, e.tokens);
    s->unsavedText = true;
    s->context.thisTurn = e.sequenceLength - s->context.cached;
    setLength(*s, e.sequenceLength);
}

/// Gives the row what is new of thought and text.
void ChatController::showWritten(ChatSession& s, const std::string& bytes, const std::vector<TokenId>& tokens) {
    const ThinkingStream::Growth growth = s.written.add(bytes);
    const ThinkingSplit& split = s.written.split();
    const ChatMessage& before = s.model->at(s.answerRow);
    const bool thoughtOver = before.thinkingOpen && !split.open;
    const bool onlyMore = growth.onlyMore && !std::exchange(s.rowDiffers, false); // else it is all shown anew
    const std::string_view thought = split.thinking, answer = split.answer;
    const std::string_view moreThought = onlyMore ? thought.substr(growth.thinkingBefore) : thought;
    if (!onlyMore || !moreThought.empty() || split.open != before.thinkingOpen)
        s.model->edit(s.answerRow, [&](ChatMessage& m) {
            if (onlyMore) {
                m.thinking += textOf(moreThought);
            } else {
                m.thinking = textOf(thought);
                m.text = textOf(answer);
            }
            m.thinkingOpen = split.open;
            if (thoughtOver) {
                m.thinkingTokens = std::int64_t(m.tokens.size() + tokens.size());
                m.thinkingSeconds = double(m_clock.now() - s.firstTokenAt) / 1e9;
            }
        });
    s.model->appendTokens(s.answerRow, onlyMore ? textOf(answer.substr(growth.answerBefore)) : QString(), tokens,
                          s.rate);
}

void ChatController::onFinished(const api::Answer& answer) {
    if (answer.id == m_titleRequest)
        return titleFound(answer);
    ChatSession* s = byRequest(answer.id);
    if (!s)
        return;
    const ThinkingSplit split = splitThinking(wholeCharacters(answer.text), s->opensThought);
    s->model->edit(s->answerRow, [&](ChatMessage& m) {
        // One that could not even be begun to be written on keeps what it has.
        if (!s->continuing || !answer.tokenIds.empty()) {
            if (const QString whole = textOf(split.answer); m.text != whole)
                m.text = whole;
            m.thinking = textOf(split.thinking);
            m.thinkingOpen = split.open;
            m.tokens = answer.tokenIds;
        }
        const auto* end = std::get_if<TokenId>(&answer.stopReason);
        m.endToken = end ? *end : -1;
        m.endedBy = QString::fromStdString(answer.endedBy);
        m.reason = answer.reason;
        m.status = answer.reason == api::FinishReason::Cancelled ? MessageStatus::Stopped
                   : answer.reason == api::FinishReason::Error   ? MessageStatus::Failed
                                                                 : MessageStatus::Done;
        if (answer.error)
            m.error = sentenceOf(*answer.error);
        if (answer.cache.promptTokens > 0)
            m.receipt = receiptOf(answer);
        else
            m.receipt.reset();
        const double decode = answer.timings.decodeMs / 1000;
        const auto drawn = double(answer.tokenTimes.empty() ? m.tokens.size() : answer.tokenTimes.size());
        m.tokensPerSecond = decode > 0 && drawn > 1 ? (drawn - 1) / decode : 0;
    });
    if (answer.cache.promptTokens > 0) {
        s->context.cached = answer.cache.reusedTokens;
        s->context.thisTurn = s->context.length - s->context.cached;
    }
    endAnswer(*s);
}

Receipt ChatController::receiptOf(const api::Answer& answer) const {
    Receipt receipt;
    receipt.cache = answer.cache;
    receipt.ttftMs = answer.timings.ttftMs;
    receipt.timings = answer.timings;
    receipt.drawnTokens = std::int64_t(answer.tokenTimes.size());
    receipt.evictedBy = titleOf(answer.cache.evictedBy);
    if (answer.cache.evictedAgo >= 0)
        receipt.evictedAgoMs = answer.cache.evictedAgo / 1'000'000;
    return receipt;
}

/// The answer has ended in memory: write its end, and let the conversation go.
void ChatController::endAnswer(ChatSession& s) {
    const ChatMessage answer = s.answer();
    if (s.conversation.id != kNoId) // else it is an answer of a database that was left
        m_store.endAnswer(answer, reportFailure());
    dropRequest(s);
    s.model->flush();
    if (!s.removed)
        touch(s, answer.text.isEmpty() ? s.conversation.preview : answer.text);
    setActivity(s);
    if (s.conversation.id != kNoId)
        emit lengthChanged(s.conversation.id, s.context.length);
    emit stateChanged();
    emit contextChanged();
    wantTitle(s);
    sendQueued(s);
    askTitle();
}

void ChatController::touch(ChatSession& s, const QString& preview, qint64 used) {
    s.conversation.preview = preview.left(kPreviewLength * 2).simplified().left(kPreviewLength);
    s.conversation.updatedMs = used < 0 ? m_wallNow() : used;
    s.conversation.unsaved = m_unsaved;
    if (!s.removed)
        m_list.put(s.conversation, m_wallNow());
}

/// The end of the shown path is another one; the chat was looked at, which is no use of it.
void ChatController::notePreview(ChatSession& s) {
    const Conversation* known = m_list.find(s.conversation.id);
    const qint64 used = known ? known->updatedMs : s.conversation.updatedMs;
    const int last = s.model->size() - 1;
    touch(s, last < 0 ? QString() : firstWords({s.model->at(last).text, s.model->at(last).attachments}), used);
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
        if (!s->request.valid() || !s->unsavedText || s->conversation.id == kNoId)
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

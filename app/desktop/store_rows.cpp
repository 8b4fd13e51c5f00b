// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/store_rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "ui/models/chat_settings.h"

namespace kvscope::desktop {
namespace {

constexpr api::MissReason kReasons[] = {api::MissReason::None,
                                        api::MissReason::Disabled,
                                        api::MissReason::ColdStart,
                                        api::MissReason::ShorterThanBlock,
                                        api::MissReason::Diverged,
                                        api::MissReason::Evicted,
                                        api::MissReason::WindowCut,
                                        api::MissReason::PastWindow,
                                        api::MissReason::CheaperToCompute};
constexpr api::FinishReason kFinishes[] = {api::FinishReason::Stop, api::FinishReason::Length,
                                           api::FinishReason::Cancelled, api::FinishReason::Error};

api::MissReason missReasonOf(const std::string& name) {
    for (const api::MissReason reason : kReasons)
        if (name == api::missReasonName(reason))
            return reason;
    return api::MissReason::None;
}

api::FinishReason finishReasonOf(const std::string& name) {
    for (const api::FinishReason reason : kFinishes)
        if (name == api::finishReasonName(reason))
            return reason;
    return api::FinishReason::Stop;
}

/// Stable: they stand in databases and exported files.
constexpr std::pair<api::DialogAdaptation, const char*> kAdaptations[] = {
    {api::DialogAdaptation::SystemInFirstMessage, "system_in_first_message"},
    {api::DialogAdaptation::MessagesJoined, "messages_joined"},
    {api::DialogAdaptation::EmptyMessageAdded, "empty_message_added"}};

std::vector<api::DialogAdaptation> adaptationsOf(const std::vector<std::string>& names) {
    std::vector<api::DialogAdaptation> all;
    for (const std::string& name : names)
        for (const auto& [adaptation, known] : kAdaptations)
            if (name == known)
                all.push_back(adaptation);
    return all;
}

std::vector<std::string> namesOf(const std::vector<api::DialogAdaptation>& adaptations) {
    std::vector<std::string> names;
    for (const api::DialogAdaptation one : adaptations)
        for (const auto& [adaptation, known] : kAdaptations)
            if (one == adaptation)
                names.emplace_back(known);
    return names;
}

ui::Receipt receiptOf(const store::Receipt& row) {
    ui::Receipt receipt;
    api::CacheReceipt& c = receipt.cache;
    c.promptTokens = row.promptTokens;
    c.reusedTokens = row.reusedTokens;
    c.computedTokens = row.computedTokens;
    c.newBlocks = std::int32_t(row.newBlocks);
    c.preemptions = std::int32_t(row.preemptions);
    c.swappedBlocks = std::int32_t(row.swappedBlocks);
    c.blocksPeak = std::int32_t(row.blocksPeak);
    c.blocksAvailableAfter = std::int32_t(row.blocksAvailableAfter);
    c.blocksCachedAfter = std::int32_t(row.blocksCachedAfter);
    c.blockSize = std::int32_t(row.blockSize);
    c.missReason = missReasonOf(row.cause);
    c.divergingToken = row.divergingToken;
    c.divergingTurn = std::int32_t(std::clamp<std::int64_t>(row.divergingTurn, -1, 0x7fffffff));
    receipt.evictedBy = QString::fromStdString(row.evictedBy);
    receipt.evictedAgoMs = row.evictedAgoMs;
    receipt.drawnTokens = row.answerTokens;
    receipt.ttftMs = row.ttftMs;
    receipt.timings.queueMs = row.queueMs;
    receipt.timings.prefillMs = row.prefillMs;
    receipt.timings.decodeMs = row.decodeMs;
    receipt.timings.ttftMs = row.ttftMs;
    receipt.timings.e2eMs = row.e2eMs;
    return receipt;
}

store::Receipt rowOf(const ui::Receipt& receipt, std::size_t answerTokens) {
    const api::CacheReceipt& c = receipt.cache;
    store::Receipt row;
    row.promptTokens = c.promptTokens;
    row.reusedTokens = c.reusedTokens;
    row.computedTokens = c.computedTokens;
    row.answerTokens = receipt.drawnTokens > 0 ? receipt.drawnTokens : std::int64_t(answerTokens);
    row.newBlocks = std::max(0, c.newBlocks);
    row.preemptions = c.preemptions;
    row.swappedBlocks = c.swappedBlocks;
    row.blocksPeak = c.blocksPeak;
    row.blocksAvailableAfter = c.blocksAvailableAfter;
    row.blocksCachedAfter = c.blocksCachedAfter;
    row.blockSize = c.blockSize;
    row.cause = api::missReasonName(c.missReason);
    row.divergingToken = c.divergingToken;
    row.divergingTurn = c.divergingTurn;
    row.evictedBy = receipt.evictedBy.toStdString();
    row.evictedAgoMs = receipt.evictedAgoMs;
    row.queueMs = receipt.timings.queueMs;
    row.prefillMs = receipt.timings.prefillMs;
    row.decodeMs = receipt.timings.decodeMs;
    row.ttftMs = receipt.ttftMs;
    row.e2eMs = receipt.timings.e2eMs;
    return row;
}

std::optional<store::MessageTokens> tokensOf(const ui::ChatMessage& answer, const std::string& tokenizer) {
    if (answer.tokens.empty())
        return std::nullopt;
    store::MessageTokens tokens{tokenizer, answer.tokens, std::nullopt};
    if (answer.endToken >= 0)
        tokens.endToken = answer.endToken;
    return tokens;
}

store::ThinkingFacts factsOf(const ui::ChatMessage& answer) {
    return {std::llround(answer.thinkingSeconds * 1000), answer.thinkingTokens, answer.thinkingOpen};
}

ui::MessageStatus statusOf(const store::Message& row) {
    switch (row.status) {
    case store::MessageStatus::Complete:
        return ui::MessageStatus::Done;
    case store::MessageStatus::Error:
        return ui::MessageStatus::Failed;
    case store::MessageStatus::Interrupted:
        return finishReasonOf(row.finishReason) == api::FinishReason::Cancelled ? ui::MessageStatus::Stopped
                                                                                : ui::MessageStatus::Interrupted;
    case store::MessageStatus::Generating: // of this run and no longer known to it: it will not go on
        return ui::MessageStatus::Interrupted;
    }
    return ui::MessageStatus::Done;
}

ui::ChatMessage messageOf(const store::Message& row) {
    ui::ChatMessage m;
    m.id = row.id.value();
    m.role = row.role == store::Role::User ? ui::MessageRole::User : ui::MessageRole::Assistant;
    m.status = statusOf(row);
    m.text = QString::fromStdString(row.text);
    m.thinking = QString::fromStdString(row.thinking);
    m.thinkingOpen = row.thinkingFacts.open;
    m.thinkingSeconds = double(row.thinkingFacts.ms) / 1000;
    m.thinkingTokens = row.thinkingFacts.tokens;
    m.parent = row.parent.valid() ? row.parent.value() : ui::kNoId;
    m.attachments = attachmentsOf(row.attachments);
    m.error = QString::fromStdString(row.error);
    m.endedBy = QString::fromStdString(row.endedBy);
    m.adaptations = adaptationsOf(row.adaptations);
    m.reason = finishReasonOf(row.finishReason);
    if (row.tokens) {
        m.tokens = row.tokens->ids;
        m.endToken = row.tokens->endToken.value_or(-1);
    }
    if (row.receipt) {
        m.receipt = receiptOf(*row.receipt);
        const double seconds = row.receipt->decodeMs / 1000;
        m.tokensPerSecond =
            seconds > 0 && row.receipt->answerTokens > 1 ? double(row.receipt->answerTokens - 1) / seconds : 0;
    }
    m.settings = ui::settingsFromJson(QByteArray::fromStdString(row.settings));
    m.model = QString::fromStdString(row.model);
    m.createdMs = row.created;
    return m;
}

/// With its place among the messages of the same parent.
ui::ChatMessage versionOf(const store::Message& row, std::vector<const store::Message*>& siblings) {
    ui::ChatMessage m = messageOf(row);
    std::sort(siblings.begin(), siblings.end(),
              [](const store::Message* a, const store::Message* b) { return a->sibling < b->sibling; });
    for (const store::Message* sibling : siblings) {
        m.siblings.push_back(sibling->id.value());
        if (sibling->id == row.id)
            m.version = int(m.siblings.size());
    }
    m.versions = int(m.siblings.size());
    return m;
}

} // namespace

ui::Conversation conversationOf(const store::Conversation& row) {
    ui::Conversation c;
    c.id = row.id.value();
    c.title = QString::fromStdString(row.title);
    c.systemPrompt = QString::fromStdString(row.systemPrompt);
    c.preview = QString::fromStdString(row.preview).simplified();
    c.createdMs = row.created;
    c.updatedMs = row.updated;
    c.settings = ui::settingsFromJson(QByteArray::fromStdString(row.settings));
    c.titleByUser = row.titleByUser;
    c.draft = QString::fromStdString(row.draft);
    c.draftAttachments = attachmentsOf(row.draftAttachments);
    c.unsaved = row.unsaved;
    return c;
}

std::vector<ui::Attachment> attachmentsOf(const std::vector<store::Attachment>& rows) {
    std::vector<ui::Attachment> all;
    for (const store::Attachment& row : rows)
        all.push_back({QString::fromStdString(row.name), QString::fromStdString(row.content), row.tokens});
    return all;
}

std::vector<store::Attachment> rowsOf(const std::vector<ui::Attachment>& attachments) {
    std::vector<store::Attachment> all;
    for (const ui::Attachment& a : attachments)
        all.push_back({a.name.toStdString(), a.text.toStdString(), a.tokens});
    return all;
}

ui::ChatStore::Preset presetOf(const store::Preset& row) {
    return {row.id.value(), QString::fromStdString(row.name), QString::fromStdString(row.systemPrompt),
            ui::settingsFromJson(QByteArray::fromStdString(row.settings))};
}

store::Preset rowOf(const ui::ChatStore::Preset& preset) {
    return {store::PresetId(preset.id), preset.name.toStdString(), preset.systemPrompt.toStdString(),
            ui::settingsToJson(preset.settings).toStdString()};
}

ui::ChatStore::SearchResult resultOf(const store::SearchResult& result) {
    ui::ChatStore::SearchResult all;
    all.query = QString::fromStdString(result.query);
    all.superseded = result.superseded;
    all.messages = std::int64_t(result.messages.size());
    all.conversations = result.conversations;
    for (const store::SearchHit& row : result.hits) {
        ui::ChatStore::SearchHit hit;
        hit.conversation = row.conversation.value();
        hit.message = row.message.valid() ? row.message.value() : ui::kNoId;
        hit.count = int(row.count);
        hit.attachment = int(row.attachment);
        hit.snippet = QString::fromStdString(row.snippet);
        const auto length = [](std::string_view bytes) {
            return int(QString::fromUtf8(bytes.data(), qsizetype(bytes.size())).size());
        };
        const std::string_view snippet = row.snippet;
        hit.snippetAt = length(snippet.substr(0, row.snippetAt));
        hit.snippetLength = length(snippet.substr(row.snippetAt, row.snippetBytes));
        hit.position = int(row.atUnits);
        hit.length = int(row.units);
        all.hits.push_back(std::move(hit));
    }
    return all;
}

std::vector<ui::ChatMessage> pathOf(const store::ConversationContent& content) {
    std::unordered_map<std::int64_t, const store::Message*> byId;
    std::unordered_map<std::int64_t, std::vector<const store::Message*>> children;
    for (const store::Message& message : content.messages) {
        byId.emplace(message.id.value(), &message);
        children[message.parent.value()].push_back(&message);
    }
    std::vector<ui::ChatMessage> path;
    store::MessageId at = content.conversation.activeLeaf;
    while (at.valid() && path.size() <= content.messages.size()) {
        const auto it = byId.find(at.value());
        if (it == byId.end())
            break;
        if (it->second->role != store::Role::System)
            path.push_back(versionOf(*it->second, children[it->second->parent.value()]));
        at = it->second->parent;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

store::AnswerProgress progressOf(const ui::ChatMessage& answer, const std::string& tokenizer) {
    return {store::MessageId(answer.id), answer.text.toStdString(), answer.thinking.toStdString(),
            tokensOf(answer, tokenizer), factsOf(answer)};
}

store::AnswerEnd endOf(const ui::ChatMessage& answer, const std::string& tokenizer) {
    store::AnswerEnd end;
    end.answer = store::MessageId(answer.id);
    end.status = answer.status == ui::MessageStatus::Failed    ? store::MessageStatus::Error
                 : answer.status == ui::MessageStatus::Stopped ? store::MessageStatus::Interrupted
                                                               : store::MessageStatus::Complete;
    end.text = answer.text.toStdString();
    end.thinking = answer.thinking.toStdString();
    end.thinkingFacts = factsOf(answer);
    end.finishReason = api::finishReasonName(answer.reason);
    end.error = answer.error.toStdString();
    end.endedBy = answer.endedBy.toStdString();
    end.adaptations = namesOf(answer.adaptations);
    end.tokens = tokensOf(answer, tokenizer);
    if (answer.receipt)
        end.receipt = rowOf(*answer.receipt, answer.tokens.size());
    return end;
}

} // namespace kvscope::desktop

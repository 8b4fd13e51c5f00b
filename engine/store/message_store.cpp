// SPDX-License-Identifier: GPL-3.0-or-later
//
// ConversationStore, second part: messages.
#include "engine/store/conversation_store.h"
#include "engine/store/fold.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

Result<ConversationStore::Turn> ConversationStore::addTurn(const NewTurn& turn, RunId run) {
    for (const Attachment& file : turn.attachments)
        if (auto fits = checkAttachment(file); !fits)
            return tl::unexpected<Error>(fits.error());
    return m_db.write([&]() -> Result<Turn> {
        Message user;
        user.conversation = turn.conversation;
        user.parent = turn.parent;
        user.role = Role::User;
        user.text = turn.text;
        user.settings = turn.settings;
        user.attachments = turn.attachments;
        auto stored = insertMessage(std::move(user), run, false);
        if (!stored)
            return tl::unexpected<Error>(stored.error());
        Turn result{std::move(*stored), std::nullopt};
        MessageId leaf = result.user.id;
        if (turn.withAnswer) {
            Message answer;
            answer.conversation = turn.conversation;
            answer.parent = leaf;
            answer.role = Role::Assistant;
            answer.status = MessageStatus::Generating;
            answer.settings = turn.settings;
            answer.model = turn.model;
            auto opened = insertMessage(std::move(answer), run, true);
            if (!opened)
                return tl::unexpected<Error>(opened.error());
            result.answer = std::move(*opened);
            leaf = result.answer->id;
        }
        touch(turn.conversation, leaf);
        auto empty = m_db.statement("UPDATE conversation SET draft = '' WHERE id = ?");
        empty->bind(1, turn.conversation.value());
        empty->exec();
        forgetDraftAttachments(turn.conversation.value());
        forgetWaiting(turn.conversation);
        return result;
    });
}

Result<Message> ConversationStore::addAnswer(const NewAnswer& answer, RunId run) {
    return m_db.write([&]() -> Result<Message> {
        Message message;
        message.conversation = answer.conversation;
        message.parent = answer.parent;
        message.role = Role::Assistant;
        message.status = MessageStatus::Generating;
        message.settings = answer.settings;
        message.model = answer.model;
        auto stored = insertMessage(std::move(message), run, true);
        if (stored)
            touch(answer.conversation, stored->id);
        return stored;
    });
}

Result<Message> ConversationStore::addMessage(const NewMessage& added, RunId run) {
    for (const Attachment& file : added.attachments)
        if (auto fits = checkAttachment(file); !fits)
            return tl::unexpected<Error>(fits.error());
    return m_db.write([&]() -> Result<Message> {
        Message message;
        message.conversation = added.conversation;
        message.parent = added.parent;
        message.role = added.role;
        message.text = added.text;
        message.thinking = added.thinking;
        message.settings = added.settings;
        message.model = added.model;
        message.attachments = added.attachments;
        auto stored = insertMessage(std::move(message), run, false);
        if (stored)
            touch(added.conversation, stored->id);
        return stored;
    });
}

Result<void> ConversationStore::reopenAnswer(MessageId id, RunId run) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement("UPDATE message SET status = 'generating', finish_reason = '', error = '',"
                                     " run_id = ? WHERE id = ? AND role = 'assistant' AND status <> 'generating'");
        bindId(*update, 1, run);
        update->bind(2, id.value());
        if (update->exec() > 0)
            return {};
        auto select = m_db.statement("SELECT role FROM message WHERE id = ?");
        select->bind(1, id.value());
        if (!select->executeStep())
            return noSuchMessage();
        return fail(ErrorCode::InvalidArgument, select->getColumn(0).getString() == roleName(Role::Assistant)
                                                    ? "This answer is being written already."
                                                    : "Only an answer can be continued.");
    });
}

Result<void> ConversationStore::saveProgress(const AnswerProgress& progress) {
    return m_db.write([&]() -> Result<void> {
        auto updated = updateText(progress.answer, progress.text, progress.thinking, progress.thinkingFacts);
        if (updated && progress.tokens)
            writeTokens(progress.answer, *progress.tokens);
        return updated;
    });
}

Result<void> ConversationStore::endAnswer(const AnswerEnd& end) {
    if (end.status == MessageStatus::Generating)
        return fail(ErrorCode::InvalidArgument, "An ended answer cannot be still generating.");
    return m_db.write([&]() -> Result<void> {
        if (auto updated = updateText(end.answer, end.text, end.thinking, end.thinkingFacts); !updated)
            return updated;
        auto update = m_db.statement("UPDATE message SET status = ?, finish_reason = ?, error = ?, ended_by = ?,"
                                     " adaptations = ? WHERE id = ?");
        update->bind(1, messageStatusName(end.status));
        update->bind(2, end.finishReason);
        update->bind(3, end.error);
        update->bind(4, end.endedBy);
        update->bind(5, joinNames(end.adaptations));
        update->bind(6, end.answer.value());
        update->exec();
        if (end.tokens)
            writeTokens(end.answer, *end.tokens);
        if (end.receipt)
            writeReceipt(end.answer, *end.receipt);
        return {};
    });
}

// ---- rows ----

Result<Message> ConversationStore::insertMessage(Message message, RunId run, bool answersUser) {
    if (auto known = requireConversation(message.conversation); !known)
        return tl::unexpected<Error>(known.error());
    if (message.parent.valid()) {
        auto parent = m_db.statement("SELECT role FROM message WHERE id = ? AND conversation_id = ?");
        parent->bind(1, message.parent.value());
        parent->bind(2, message.conversation.value());
        if (!parent->executeStep())
            return noSuchMessage();
        if (answersUser && parent->getColumn(0).getString() == roleName(Role::Assistant))
            return fail(ErrorCode::InvalidArgument, "An answer belongs to a message of the user, not to an answer.");
    }
    auto count = m_db.statement("SELECT ifnull(max(sibling), -1) + 1 FROM message WHERE conversation_id = ?"
                                " AND ifnull(parent_id, 0) = ?");
    count->bind(1, message.conversation.value());
    count->bind(2, message.parent.valid() ? message.parent.value() : std::int64_t(0));
    count->executeStep();
    message.sibling = count->getColumn(0).getInt64();
    message.created = m_clock();
    message.id = writeMessage(message, run);
    return message;
}

MessageId ConversationStore::writeMessage(const Message& message, RunId run) {
    const ModelId model = modelId(message.model);
    auto insert = m_db.statement("INSERT INTO message(id, conversation_id, parent_id, sibling, role, text, text_folded,"
                                 " thinking, thinking_ms, thinking_tokens, thinking_open, status, finish_reason, error,"
                                 " settings, model_id, run_id, created_at, ended_by, adaptations)"
                                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bindId(*insert, 1, message.id);
    insert->bind(2, message.conversation.value());
    bindId(*insert, 3, message.parent);
    insert->bind(4, message.sibling);
    insert->bind(5, roleName(message.role));
    insert->bind(6, message.text);
    insert->bind(7, foldCase(message.text));
    insert->bind(8, message.thinking);
    insert->bind(9, message.thinkingFacts.ms);
    insert->bind(10, message.thinkingFacts.tokens);
    insert->bind(11, message.thinkingFacts.open ? 1 : 0);
    insert->bind(12, messageStatusName(message.status));
    insert->bind(13, message.finishReason);
    insert->bind(14, message.error);
    insert->bind(15, message.settings);
    bindId(*insert, 16, model);
    bindId(*insert, 17, run);
    insert->bind(18, message.created);
    insert->bind(19, message.endedBy);
    insert->bind(20, joinNames(message.adaptations));
    insert->exec();
    const MessageId id = message.id.valid() ? message.id : MessageId(m_db.lastInsertId());
    if (message.tokens)
        writeTokens(id, *message.tokens);
    if (message.receipt)
        writeReceipt(id, *message.receipt);
    writeAttachments(id, message.attachments);
    return id;
}

void ConversationStore::writeAttachments(MessageId id, const std::vector<Attachment>& attachments) {
    for (std::size_t i = 0; i < attachments.size(); ++i) {
        auto insert = m_db.statement("INSERT INTO attachment(message_id, position, name, content, tokens, folded)"
                                     " VALUES (?, ?, ?, ?, ?, ?)");
        bindAttachment(*insert, id.value(), i, attachments[i]);
        insert->bind(6, searchedText(attachments[i].name, attachments[i].content));
        insert->exec();
    }
}

Result<void> ConversationStore::updateText(MessageId id, const std::string& text, const std::string& thinking,
                                           const ThinkingFacts& facts) {
    auto update = m_db.statement("UPDATE message SET text = ?, text_folded = ?, thinking = ?, thinking_ms = ?,"
                                 " thinking_tokens = ?, thinking_open = ? WHERE id = ? AND status = 'generating'");
    update->bind(1, text);
    update->bind(2, foldCase(text));
    update->bind(3, thinking);
    update->bind(4, facts.ms);
    update->bind(5, facts.tokens);
    update->bind(6, facts.open ? 1 : 0);
    update->bind(7, id.value());
    if (update->exec() > 0)
        return {};
    auto select = m_db.statement("SELECT 1 FROM message WHERE id = ?");
    select->bind(1, id.value());
    if (!select->executeStep())
        return noSuchMessage();
    return fail(ErrorCode::InvalidArgument, "This answer has already ended.");
}

void ConversationStore::writeTokens(MessageId id, const MessageTokens& tokens) {
    auto insert = m_db.statement("INSERT INTO message_tokens(message_id, tokenizer, ids, end_token)"
                                 " VALUES (?, ?, ?, ?) ON CONFLICT(message_id) DO UPDATE SET"
                                 " tokenizer = excluded.tokenizer, ids = excluded.ids, end_token = excluded.end_token");
    const std::string blob = packTokens(tokens.ids);
    insert->bind(1, id.value());
    insert->bind(2, tokens.tokenizer);
    insert->bind(3, blob.data(), static_cast<int>(blob.size()));
    if (tokens.endToken)
        insert->bind(4, *tokens.endToken);
    insert->exec();
}

void ConversationStore::writeReceipt(MessageId id, const Receipt& receipt) {
    auto insert = m_db.statement(kReceiptInsert);
    bindReceipt(*insert, id, receipt);
    insert->exec();
}

void ConversationStore::touch(ConversationId id, MessageId leaf) {
    auto update = m_db.statement("UPDATE conversation SET updated_at = ?, active_leaf = ? WHERE id = ?");
    update->bind(1, m_clock());
    update->bind(2, leaf.value());
    update->bind(3, id.value());
    update->exec();
}

void ConversationStore::writeActiveLeaf(ConversationId id, MessageId leaf) {
    auto update = m_db.statement("UPDATE conversation SET active_leaf = ? WHERE id = ?");
    bindId(*update, 1, leaf);
    update->bind(2, id.value());
    update->exec();
}

} // namespace kvscope::store

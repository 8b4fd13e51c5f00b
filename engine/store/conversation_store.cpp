// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/conversation_store.h"

#include <chrono>

#include "engine/store/fold.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

namespace {

constexpr const char* kConversationColumns =
    "SELECT c.id, c.title, c.title_by_user, c.created_at, c.updated_at, c.deleted_at, c.active_leaf, c.draft,"
    " c.system_prompt, c.settings, ifnull(m.path, ''),"
    " ifnull((SELECT substr(text, 1, 200) FROM message WHERE id = c.active_leaf), '')"
    " FROM conversation c LEFT JOIN model m ON m.id = c.model_id ";

Conversation readConversation(SQLite::Statement& row) {
    Conversation c;
    c.id = ConversationId(row.getColumn(0).getInt64());
    c.title = row.getColumn(1).getString();
    c.titleByUser = row.getColumn(2).getInt() != 0;
    c.created = row.getColumn(3).getInt64();
    c.updated = row.getColumn(4).getInt64();
    if (!row.getColumn(5).isNull())
        c.deleted = row.getColumn(5).getInt64();
    c.activeLeaf = readId<MessageId>(row.getColumn(6));
    c.draft = row.getColumn(7).getString();
    c.systemPrompt = row.getColumn(8).getString();
    c.settings = row.getColumn(9).getString();
    c.model = row.getColumn(10).getString();
    c.preview = row.getColumn(11).getString();
    return c;
}

tl::unexpected<Error> noSuchConversation() {
    return fail(ErrorCode::NotFound, "This chat is not in the database; it was deleted.");
}
tl::unexpected<Error> noSuchMessage() {
    return fail(ErrorCode::NotFound, "This message is not in the database; its chat was deleted.");
}

} // namespace

WallClock systemWallClock() {
    return [] {
        using namespace std::chrono;
        return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    };
}

Result<Conversation> ConversationStore::create(const NewConversation& conversation) {
    return m_db.write([&]() -> Result<Conversation> {
        Conversation c;
        c.title = conversation.title;
        c.systemPrompt = conversation.systemPrompt;
        c.settings = conversation.settings;
        c.model = conversation.model;
        c.created = c.updated = m_clock();
        const ModelId model = modelId(c.model);
        auto insert = m_db.statement("INSERT INTO conversation(title, title_folded, created_at, updated_at,"
                                     " system_prompt, settings, model_id) VALUES (?, ?, ?, ?, ?, ?, ?)");
        insert->bind(1, c.title);
        insert->bind(2, foldCase(c.title));
        insert->bind(3, c.created);
        insert->bind(4, c.updated);
        insert->bind(5, c.systemPrompt);
        insert->bind(6, c.settings);
        bindId(*insert, 7, model);
        insert->exec();
        c.id = ConversationId(m_db.lastInsertId());
        return c;
    });
}

Result<std::vector<Conversation>> ConversationStore::list() {
    return m_db.read([&]() -> Result<std::vector<Conversation>> {
        static const std::string kSql =
            std::string(kConversationColumns) + "WHERE c.deleted_at IS NULL ORDER BY c.updated_at DESC, c.id DESC";
        auto select = m_db.statement(kSql.c_str());
        std::vector<Conversation> all;
        while (select->executeStep())
            all.push_back(readConversation(*select));
        return all;
    });
}

Result<ConversationContent> ConversationStore::load(ConversationId id) {
    return m_db.read([&]() -> Result<ConversationContent> {
        SQLite::Transaction snapshot(m_db.handle()); // both queries see the same state
        static const std::string kSql = std::string(kConversationColumns) + "WHERE c.id = ?";
        auto select = m_db.statement(kSql.c_str());
        select->bind(1, id.value());
        if (!select->executeStep())
            return noSuchConversation();
        ConversationContent content;
        content.conversation = readConversation(*select);
        content.messages = readMessages(id);
        return content;
    });
}

std::vector<Message> ConversationStore::readMessages(ConversationId id) {
    auto select = m_db.statement(kMessageSelect);
    select->bind(1, id.value());
    std::vector<Message> messages;
    while (select->executeStep())
        messages.push_back(readMessage(*select));
    return messages;
}

Result<void> ConversationStore::updateConversation(const char* sql, ConversationId id, const std::string& value) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement(sql);
        update->bind(1, value);
        update->bind(2, id.value());
        if (update->exec() == 0)
            return noSuchConversation();
        return {};
    });
}

Result<void> ConversationStore::rename(ConversationId id, const std::string& title, bool byUser) {
    return m_db.write([&]() -> Result<void> {
        if (auto known = requireConversation(id); !known)
            return known;
        auto update = m_db.statement("UPDATE conversation SET title = ?1, title_folded = ?2, title_by_user = ?3"
                                     " WHERE id = ?4 AND (?3 OR NOT title_by_user)");
        update->bind(1, title);
        update->bind(2, foldCase(title));
        update->bind(3, byUser ? 1 : 0);
        update->bind(4, id.value());
        update->exec();
        return {};
    });
}

Result<void> ConversationStore::remove(ConversationId id) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement("UPDATE conversation SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL");
        update->bind(1, m_clock());
        update->bind(2, id.value());
        if (update->exec() == 0)
            return noSuchConversation();
        return {};
    });
}

Result<void> ConversationStore::restore(ConversationId id) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement("UPDATE conversation SET deleted_at = NULL WHERE id = ?");
        update->bind(1, id.value());
        if (update->exec() == 0)
            return noSuchConversation();
        return {};
    });
}

Result<int> ConversationStore::purgeDeleted(WallMillis olderThan) {
    return m_db.write([&]() -> Result<int> {
        auto purge = m_db.statement("DELETE FROM conversation WHERE deleted_at < ?");
        purge->bind(1, olderThan);
        return purge->exec();
    });
}

Result<void> ConversationStore::setDraft(ConversationId id, const std::string& draft) {
    return updateConversation("UPDATE conversation SET draft = ? WHERE id = ?", id, draft);
}

Result<void> ConversationStore::setSystemPrompt(ConversationId id, const std::string& systemPrompt) {
    return updateConversation("UPDATE conversation SET system_prompt = ? WHERE id = ?", id, systemPrompt);
}

Result<void> ConversationStore::setSettings(ConversationId id, const std::string& settings) {
    return updateConversation("UPDATE conversation SET settings = ? WHERE id = ?", id, settings);
}

Result<void> ConversationStore::setModel(ConversationId id, const std::string& path) {
    return m_db.write([&]() -> Result<void> {
        const ModelId model = modelId(path);
        auto update = m_db.statement("UPDATE conversation SET model_id = ? WHERE id = ?");
        bindId(*update, 1, model);
        update->bind(2, id.value());
        if (update->exec() == 0)
            return noSuchConversation();
        return {};
    });
}

Result<void> ConversationStore::setActiveLeaf(ConversationId id, MessageId leaf) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement("UPDATE conversation SET active_leaf = ?1 WHERE id = ?2 AND"
                                     " EXISTS (SELECT 1 FROM message WHERE id = ?1 AND conversation_id = ?2)");
        update->bind(1, leaf.value());
        update->bind(2, id.value());
        if (update->exec() == 0)
            return noSuchMessage();
        return {};
    });
}

Result<ConversationStore::Turn> ConversationStore::addTurn(const NewTurn& turn, RunId run) {
    return m_db.write([&]() -> Result<Turn> {
        Message user;
        user.conversation = turn.conversation;
        user.parent = turn.parent;
        user.role = Role::User;
        user.text = turn.text;
        user.settings = turn.settings;
        auto stored = insertMessage(std::move(user), run);
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
            auto opened = insertMessage(std::move(answer), run);
            if (!opened)
                return tl::unexpected<Error>(opened.error());
            result.answer = std::move(*opened);
            leaf = result.answer->id;
        }
        touch(turn.conversation, leaf);
        auto empty = m_db.statement("UPDATE conversation SET draft = '' WHERE id = ?");
        empty->bind(1, turn.conversation.value());
        empty->exec();
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
        auto stored = insertMessage(std::move(message), run);
        if (stored)
            touch(answer.conversation, stored->id);
        return stored;
    });
}

Result<void> ConversationStore::saveProgress(const AnswerProgress& progress) {
    return m_db.write([&]() -> Result<void> {
        auto updated = updateText(progress.answer, progress.text, progress.thinking);
        if (updated && progress.tokens)
            writeTokens(progress.answer, *progress.tokens);
        return updated;
    });
}

Result<void> ConversationStore::endAnswer(const AnswerEnd& end) {
    if (end.status == MessageStatus::Generating)
        return fail(ErrorCode::InvalidArgument, "An ended answer cannot be still generating.");
    return m_db.write([&]() -> Result<void> {
        if (auto updated = updateText(end.answer, end.text, end.thinking); !updated)
            return updated;
        auto update = m_db.statement("UPDATE message SET status = ?, finish_reason = ?, error = ? WHERE id = ?");
        update->bind(1, messageStatusName(end.status));
        update->bind(2, end.finishReason);
        update->bind(3, end.error);
        update->bind(4, end.answer.value());
        update->exec();
        if (end.tokens)
            writeTokens(end.answer, *end.tokens);
        if (end.receipt)
            writeReceipt(end.answer, *end.receipt);
        return {};
    });
}

Result<void> ConversationStore::requireConversation(ConversationId id) {
    auto select = m_db.statement("SELECT 1 FROM conversation WHERE id = ?");
    select->bind(1, id.value());
    if (!select->executeStep())
        return noSuchConversation();
    return {};
}

Result<Message> ConversationStore::insertMessage(Message message, RunId run) {
    if (auto known = requireConversation(message.conversation); !known)
        return tl::unexpected<Error>(known.error());
    if (message.parent.valid()) {
        auto parent = m_db.statement("SELECT role FROM message WHERE id = ? AND conversation_id = ?");
        parent->bind(1, message.parent.value());
        parent->bind(2, message.conversation.value());
        if (!parent->executeStep())
            return noSuchMessage();
        if (parent->getColumn(0).getString() == roleName(message.role))
            return fail(ErrorCode::InvalidArgument, "A message answers one of the other side, not one of its own.");
    }
    auto count = m_db.statement("SELECT ifnull(max(sibling), -1) + 1 FROM message WHERE conversation_id = ?"
                                " AND ifnull(parent_id, 0) = ?");
    count->bind(1, message.conversation.value());
    count->bind(2, message.parent.valid() ? message.parent.value() : std::int64_t(0));
    count->executeStep();
    message.sibling = count->getColumn(0).getInt64();
    message.created = m_clock();
    const ModelId model = modelId(message.model);

    auto insert = m_db.statement("INSERT INTO message(conversation_id, parent_id, sibling, role, text, text_folded,"
                                 " status, settings, model_id, run_id, created_at)"
                                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert->bind(1, message.conversation.value());
    bindId(*insert, 2, message.parent);
    insert->bind(3, message.sibling);
    insert->bind(4, roleName(message.role));
    insert->bind(5, message.text);
    insert->bind(6, foldCase(message.text));
    insert->bind(7, messageStatusName(message.status));
    insert->bind(8, message.settings);
    bindId(*insert, 9, model);
    bindId(*insert, 10, run);
    insert->bind(11, message.created);
    insert->exec();
    message.id = MessageId(m_db.lastInsertId());
    return message;
}

Result<void> ConversationStore::updateText(MessageId id, const std::string& text, const std::string& thinking) {
    auto update = m_db.statement("UPDATE message SET text = ?, text_folded = ?, thinking = ?"
                                 " WHERE id = ? AND status = 'generating'");
    update->bind(1, text);
    update->bind(2, foldCase(text));
    update->bind(3, thinking);
    update->bind(4, id.value());
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

ModelId ConversationStore::modelId(const std::string& path) {
    if (path.empty())
        return {};
    auto insert = m_db.statement("INSERT INTO model(path) VALUES (?) ON CONFLICT(path) DO NOTHING");
    insert->bind(1, path);
    insert->exec();
    auto select = m_db.statement("SELECT id FROM model WHERE path = ?");
    select->bind(1, path);
    select->executeStep();
    return ModelId(select->getColumn(0).getInt64());
}

} // namespace kvscope::store

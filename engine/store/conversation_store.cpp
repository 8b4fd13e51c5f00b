// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/conversation_store.h"

#include <chrono>
#include <unordered_map>

#include "engine/store/fold.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

tl::unexpected<Error> noSuchConversation() {
    return fail(ErrorCode::NotFound, "This chat is not in the database; it was deleted.");
}
tl::unexpected<Error> noSuchMessage() {
    return fail(ErrorCode::NotFound, "This message is not in the database; it was deleted.");
}

Result<void> checkAttachment(const Attachment& attachment) {
    if (attachment.content.size() <= mostBytesOf(attachment))
        return {};
    if (attachment.name.empty())
        return fail(ErrorCode::TooLong, "The pasted text has " + std::to_string(attachment.content.size()) +
                                            " bytes, at most 64 MiB are kept; paste the part that matters.");
    return fail(ErrorCode::TooLong, "'" + attachment.name + "' has " + std::to_string(attachment.content.size()) +
                                        " bytes, an attachment holds at most 1 MiB; attach the part that matters.");
}

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
            std::string(kConversationSelect) + "WHERE c.deleted_at IS NULL ORDER BY c.updated_at DESC, c.id DESC";
        auto select = m_db.statement(kSql.c_str());
        std::vector<Conversation> all;
        while (select->executeStep())
            all.push_back(readConversation(*select));
        addDraftAttachments(all);
        addWaitingAttachments(all);
        if (m_db.inMemory())
            markUnsaved(all);
        return all;
    });
}

Result<ConversationContent> ConversationStore::load(ConversationId id) {
    return m_db.read([&]() -> Result<ConversationContent> {
        SQLite::Transaction snapshot(m_db.handle()); // both queries see the same state
        static const std::string kSql = std::string(kConversationSelect) + "WHERE c.id = ?";
        auto select = m_db.statement(kSql.c_str());
        select->bind(1, id.value());
        if (!select->executeStep())
            return noSuchConversation();
        ConversationContent content;
        std::vector<Conversation> one{readConversation(*select)};
        addDraftAttachments(one);
        addWaitingAttachments(one);
        if (m_db.inMemory())
            markUnsaved(one);
        content.conversation = std::move(one.front());
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
    std::unordered_map<std::int64_t, Message*> byId;
    for (Message& message : messages)
        byId.emplace(message.id.value(), &message);
    auto files = m_db.statement("SELECT a.message_id, a.name, a.content, ifnull(a.tokens, 0) FROM attachment a"
                                " JOIN message m ON m.id = a.message_id WHERE m.conversation_id = ?"
                                " ORDER BY a.message_id, a.position");
    files->bind(1, id.value());
    while (files->executeStep())
        byId.at(files->getColumn(0).getInt64())->attachments.push_back(readAttachment(*files, 1));
    return messages;
}

void ConversationStore::markUnsaved(std::vector<Conversation>& conversations) {
    auto select = m_db.statement("SELECT 1 FROM temp.unsaved WHERE conversation_id = ?");
    for (Conversation& c : conversations) {
        select->reset();
        select->bind(1, c.id.value());
        c.unsaved = select->executeStep();
    }
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

Result<void> ConversationStore::requireConversation(ConversationId id) {
    auto select = m_db.statement("SELECT 1 FROM conversation WHERE id = ?");
    select->bind(1, id.value());
    if (!select->executeStep())
        return noSuchConversation();
    return {};
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

// SPDX-License-Identifier: GPL-3.0-or-later
//
// ConversationStore, fourth part: messages that were not sent, drafts and those that wait for the end of an answer.
#include "engine/store/conversation_store.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

namespace {

const char* const kDraftKey = "new_chat_draft";
constexpr std::int64_t kNewChat = 0; ///< stands for the new conversation in draft_attachment

using ByConversation = std::unordered_map<std::int64_t, std::vector<Attachment>>;

ByConversation readAll(StatementUse files) {
    ByConversation all;
    while (files->executeStep())
        all[files->getColumn(0).getInt64()].push_back(readAttachment(*files, 1));
    return all;
}

} // namespace

// ---- drafts ----

Result<void> ConversationStore::setDraft(ConversationId id, const Draft& draft) {
    // No limit: a draft is whatever stands in the composer, a large paste too, and nobody waits to hear of a refusal.
    return m_db.write([&]() -> Result<void> {
        if (id.valid()) {
            auto update = m_db.statement("UPDATE conversation SET draft = ? WHERE id = ?");
            update->bind(1, draft.text);
            update->bind(2, id.value());
            if (update->exec() == 0)
                return noSuchConversation();
        } else {
            auto upsert = m_db.statement("INSERT INTO note(key, value) VALUES (?, ?)"
                                         " ON CONFLICT(key) DO UPDATE SET value = excluded.value");
            upsert->bind(1, kDraftKey);
            upsert->bind(2, draft.text);
            upsert->exec();
        }
        const std::int64_t key = id.valid() ? id.value() : kNewChat;
        forgetDraftAttachments(key);
        writeDraftAttachments(key, draft.attachments);
        return {};
    });
}

Result<Draft> ConversationStore::newChatDraft() {
    return m_db.read([&]() -> Result<Draft> {
        Draft draft;
        auto select = m_db.statement("SELECT value FROM note WHERE key = ?");
        select->bind(1, kDraftKey);
        if (select->executeStep())
            draft.text = select->getColumn(0).getString();
        auto files = m_db.statement("SELECT name, content, ifnull(tokens, 0) FROM draft_attachment"
                                    " WHERE conversation_id = ? ORDER BY position");
        files->bind(1, kNewChat);
        while (files->executeStep())
            draft.attachments.push_back(readAttachment(*files, 0));
        return draft;
    });
}

void ConversationStore::forgetDraftAttachments(std::int64_t conversation) {
    auto remove = m_db.statement("DELETE FROM draft_attachment WHERE conversation_id = ?");
    remove->bind(1, conversation);
    remove->exec();
}

void ConversationStore::writeDraftAttachments(std::int64_t conversation, const std::vector<Attachment>& attachments) {
    for (std::size_t i = 0; i < attachments.size(); ++i) {
        auto insert = m_db.statement("INSERT INTO draft_attachment(conversation_id, position, name, content, tokens)"
                                     " VALUES (?, ?, ?, ?, ?)");
        bindAttachment(*insert, conversation, i, attachments[i]);
        insert->exec();
    }
}

void ConversationStore::addDraftAttachments(std::vector<Conversation>& conversations) {
    ByConversation byId =
        readAll(m_db.statement("SELECT conversation_id, name, content, ifnull(tokens, 0) FROM draft_attachment"
                               " ORDER BY conversation_id, position"));
    for (Conversation& c : conversations)
        if (const auto found = byId.find(c.id.value()); found != byId.end())
            c.draftAttachments = std::move(found->second);
}

// ---- messages that wait ----

Result<void> ConversationStore::setWaiting(ConversationId id, const Draft& message) {
    return m_db.write([&]() -> Result<void> {
        if (auto known = requireConversation(id); !known)
            return known;
        forgetWaiting(id);
        if (message.isEmpty())
            return {};
        auto update = m_db.statement("UPDATE conversation SET waiting = ? WHERE id = ?");
        update->bind(1, message.text);
        update->bind(2, id.value());
        update->exec();
        writeWaitingAttachments(id, message.attachments);
        return {};
    });
}

void ConversationStore::forgetWaiting(ConversationId id) {
    auto text = m_db.statement("UPDATE conversation SET waiting = '' WHERE id = ?");
    text->bind(1, id.value());
    text->exec();
    auto files = m_db.statement("DELETE FROM waiting_attachment WHERE conversation_id = ?");
    files->bind(1, id.value());
    files->exec();
}

void ConversationStore::writeWaitingAttachments(ConversationId id, const std::vector<Attachment>& attachments) {
    for (std::size_t i = 0; i < attachments.size(); ++i) {
        auto insert = m_db.statement("INSERT INTO waiting_attachment(conversation_id, position, name, content, tokens)"
                                     " VALUES (?, ?, ?, ?, ?)");
        bindAttachment(*insert, id.value(), i, attachments[i]);
        insert->exec();
    }
}

void ConversationStore::addWaitingAttachments(std::vector<Conversation>& conversations) {
    ByConversation byId =
        readAll(m_db.statement("SELECT conversation_id, name, content, ifnull(tokens, 0) FROM waiting_attachment"
                               " ORDER BY conversation_id, position"));
    for (Conversation& c : conversations)
        if (const auto found = byId.find(c.id.value()); found != byId.end())
            c.waiting.attachments = std::move(found->second);
}

Result<int> ConversationStore::giveBackWaiting() {
    return m_db.write([&]() -> Result<int> {
        std::vector<Conversation> all;
        {
            static const std::string kSql = std::string(kConversationSelect) +
                                            "WHERE c.waiting <> '' OR EXISTS (SELECT 1 FROM waiting_attachment"
                                            " w WHERE w.conversation_id = c.id)";
            auto select = m_db.statement(kSql.c_str());
            while (select->executeStep())
                all.push_back(readConversation(*select));
        }
        addDraftAttachments(all);
        addWaitingAttachments(all);
        for (const Conversation& c : all) {
            const Draft draft = draftWithWaiting(c);
            auto update = m_db.statement("UPDATE conversation SET draft = ? WHERE id = ?");
            update->bind(1, draft.text);
            update->bind(2, c.id.value());
            update->exec();
            forgetDraftAttachments(c.id.value());
            writeDraftAttachments(c.id.value(), draft.attachments);
            forgetWaiting(c.id);
        }
        return static_cast<int>(all.size());
    });
}

} // namespace kvscope::store

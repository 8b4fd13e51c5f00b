// SPDX-License-Identifier: GPL-3.0-or-later
//
// ConversationStore, third part: whole trees copied, taken in from outside, put back.
#include <algorithm>
#include <set>

#include "engine/store/chat_fingerprint.h"
#include "engine/store/conversation_store.h"
#include "engine/store/fold.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

namespace {

constexpr int kMostOfOneAge = 64; ///< are compared message by message with one that comes in

/// The path from the first message to `last`, alone: every message becomes the only one of its parent.
std::vector<Message> pathTo(const std::vector<Message>& messages, MessageId last) {
    std::vector<Message> path;
    MessageId wanted = last;
    for (auto it = messages.rbegin(); it != messages.rend() && wanted.valid(); ++it) { // children stand after parents
        if (it->id != wanted)
            continue;
        path.push_back(*it);
        path.back().sibling = 0;
        wanted = it->parent;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

void endWhatIsRunning(std::vector<Message>& messages) {
    for (Message& message : messages)
        if (message.status == MessageStatus::Generating)
            message.status = MessageStatus::Interrupted;
}

/// Other programs do not always say when: then it is as old as its beginning, and that is as old as its import.
void giveTimes(Conversation& conversation, std::vector<Message>& messages, WallMillis now) {
    if (conversation.created <= 0)
        conversation.created = conversation.updated > 0 ? conversation.updated : now;
    if (conversation.updated <= 0)
        conversation.updated = conversation.created;
    for (Message& message : messages)
        if (message.created <= 0)
            message.created = conversation.created;
}

} // namespace

Result<Conversation> ConversationStore::duplicate(ConversationId id, const std::string& title, MessageId last) {
    return m_db.write([&]() -> Result<Conversation> {
        static const std::string kSql = std::string(kConversationSelect) + "WHERE c.id = ?";
        auto select = m_db.statement(kSql.c_str());
        select->bind(1, id.value());
        if (!select->executeStep())
            return noSuchConversation();
        Conversation copy = readConversation(*select);
        std::vector<Message> messages = readMessages(id);
        MessageId leaf = copy.activeLeaf;
        if (last.valid()) {
            messages = pathTo(messages, leaf = last);
            if (messages.empty())
                return noSuchMessage();
        }
        endWhatIsRunning(messages);
        copy.id = ConversationId();
        copy.title = title;
        copy.deleted.reset();
        copy.draft.clear();
        copy.draftAttachments.clear();
        copy.waiting = {};
        copy.created = copy.updated = m_clock();
        copy.id = writeConversation(copy, "");
        const IdMap ids = writeTree(copy.id, messages, false);
        const auto end = ids.find(leaf.value());
        copy.activeLeaf = end == ids.end() ? MessageId() : end->second;
        writeActiveLeaf(copy.id, copy.activeLeaf);
        if (!messages.empty() && last.valid())
            copy.preview = messages.back().text.substr(0, 200);
        return copy;
    });
}

Result<ConversationStore::Adopted> ConversationStore::adopt(const ConversationContent& content,
                                                            const std::string& fingerprint) {
    return m_db.write([&]() -> Result<Adopted> {
        auto known = m_db.statement("SELECT id FROM conversation WHERE imported = ? AND imported <> ''"
                                    " AND deleted_at IS NULL");
        known->bind(1, fingerprint);
        if (known->executeStep())
            return Adopted{ConversationId(known->getColumn(0).getInt64()), false};
        // Chats of one file may all be of the same age: then their fingerprints have to tell them.
        auto sameAge = m_db.statement("SELECT id FROM conversation WHERE created_at = ? AND deleted_at IS NULL"
                                      " ORDER BY id DESC LIMIT ?");
        sameAge->bind(1, content.conversation.created);
        sameAge->bind(2, kMostOfOneAge);
        std::vector<ConversationId> candidates;
        while (sameAge->executeStep())
            candidates.emplace_back(sameAge->getColumn(0).getInt64());
        for (const ConversationId id : candidates)
            if (holdsAll(id, content))
                return Adopted{id, false};

        Conversation conversation = content.conversation;
        conversation.id = ConversationId();
        conversation.deleted.reset();
        Draft begun = draftWithWaiting(conversation); // the answer that it waited for is not written here
        conversation.draft = std::move(begun.text);
        conversation.draftAttachments = std::move(begun.attachments);
        conversation.waiting = {};
        std::vector<Message> messages = content.messages;
        giveTimes(conversation, messages, m_clock());
        const ConversationId id = writeConversation(conversation, fingerprint);
        endWhatIsRunning(messages);
        const IdMap ids = writeTree(id, messages, false);
        if (const auto leaf = ids.find(conversation.activeLeaf.value()); leaf != ids.end())
            writeActiveLeaf(id, leaf->second);
        return Adopted{id, true};
    });
}

/// Whether every message is there with the same ones before it. It may have gone on, or have more versions.
bool ConversationStore::holdsAll(ConversationId id, const ConversationContent& content) {
    const std::vector<std::string> wanted = pathFingerprints(content.messages);
    if (wanted.empty()) { // only its name and its draft can tell it
        auto same = m_db.statement("SELECT 1 FROM conversation WHERE id = ? AND title = ? AND draft = ?");
        same->bind(1, id.value());
        same->bind(2, content.conversation.title);
        same->bind(3, content.conversation.draft);
        return same->executeStep();
    }
    const std::vector<std::string> here = pathFingerprints(readMessages(id));
    const std::multiset<std::string> there(here.begin(), here.end());
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& one) { return there.count(one) > 0; });
}

Result<void> ConversationStore::put(const ConversationContent& content) {
    return m_db.write([&]() -> Result<void> {
        auto remove = m_db.statement("DELETE FROM conversation WHERE id = ?");
        remove->bind(1, content.conversation.id.value());
        remove->exec();
        writeConversation(content.conversation, "");
        writeTree(content.conversation.id, content.messages, true);
        writeActiveLeaf(content.conversation.id, content.conversation.activeLeaf);
        return {};
    });
}

ConversationId ConversationStore::writeConversation(const Conversation& c, const std::string& imported) {
    const ModelId model = modelId(c.model);
    auto insert =
        m_db.statement("INSERT INTO conversation(id, title, title_folded, title_by_user, created_at, updated_at,"
                       " deleted_at, draft, system_prompt, settings, model_id, imported, waiting)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bindId(*insert, 1, c.id);
    insert->bind(2, c.title);
    insert->bind(3, foldCase(c.title));
    insert->bind(4, c.titleByUser ? 1 : 0);
    insert->bind(5, c.created);
    insert->bind(6, c.updated);
    if (c.deleted)
        insert->bind(7, *c.deleted);
    insert->bind(8, c.draft);
    insert->bind(9, c.systemPrompt);
    insert->bind(10, c.settings);
    bindId(*insert, 11, model);
    insert->bind(12, imported);
    insert->bind(13, c.waiting.text);
    insert->exec();
    const ConversationId id = c.id.valid() ? c.id : ConversationId(m_db.lastInsertId());
    writeDraftAttachments(id.value(), c.draftAttachments);
    writeWaitingAttachments(id, c.waiting.attachments);
    return id;
}

ConversationStore::IdMap ConversationStore::writeTree(ConversationId id, const std::vector<Message>& messages,
                                                      bool keepIds) {
    IdMap ids;
    ids.reserve(messages.size());
    for (const Message& old : messages) {
        Message message = old;
        message.conversation = id;
        if (!keepIds) {
            message.id = MessageId();
            if (const auto parent = ids.find(old.parent.value()); parent != ids.end())
                message.parent = parent->second;
            else
                message.parent = MessageId();
        }
        ids[old.id.value()] = writeMessage(message, RunId());
    }
    return ids;
}

} // namespace kvscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
//
// ConversationStore, fifth part: the tree that the messages make.
#include <algorithm>

#include "engine/store/conversation_store.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

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

Result<void> ConversationStore::showVersion(ConversationId id, MessageId through) {
    return m_db.write([&]() -> Result<void> {
        auto known = m_db.statement("SELECT 1 FROM message WHERE id = ? AND conversation_id = ?");
        known->bind(1, through.value());
        known->bind(2, id.value());
        if (!known->executeStep())
            return noSuchMessage();
        writeActiveLeaf(id, newestLeaf(through));
        return {};
    });
}

MessageId ConversationStore::newestLeaf(MessageId from) {
    for (;;) {
        auto child = m_db.statement("SELECT max(id) FROM message WHERE parent_id = ?");
        child->bind(1, from.value());
        child->executeStep();
        if (child->getColumn(0).isNull())
            return from;
        from = MessageId(child->getColumn(0).getInt64());
    }
}

std::vector<RemovedMessage::Place> ConversationStore::childrenOf(ConversationId id, MessageId parent) {
    auto select =
        m_db.statement("SELECT id, sibling FROM message WHERE conversation_id = ? AND ifnull(parent_id, 0) = ?"
                       " ORDER BY sibling");
    select->bind(1, id.value());
    select->bind(2, parent.valid() ? parent.value() : std::int64_t(0));
    std::vector<RemovedMessage::Place> all;
    while (select->executeStep())
        all.push_back({MessageId(select->getColumn(0).getInt64()), parent, select->getColumn(1).getInt64()});
    return all;
}

Result<RemovedMessage> ConversationStore::removeMessage(ConversationId id, MessageId message) {
    return m_db.write([&]() -> Result<RemovedMessage> {
        auto leaf = m_db.statement("SELECT active_leaf FROM conversation WHERE id = ?");
        leaf->bind(1, id.value());
        RemovedMessage removed;
        if (leaf->executeStep())
            removed.activeLeaf = readId<MessageId>(leaf->getColumn(0));
        std::vector<Message> all = readMessages(id);
        const auto row = std::find_if(all.begin(), all.end(), [&](const Message& m) { return m.id == message; });
        if (row == all.end())
            return noSuchMessage();
        if (row->status == MessageStatus::Generating)
            return fail(ErrorCode::InvalidArgument, "This answer is still being written; stop it first.");
        removed.message = std::move(*row);
        const MessageId parent = removed.message.parent;

        // The children take the place of the removed one, in order.
        const std::vector<RemovedMessage::Place> children = childrenOf(id, message);
        std::vector<MessageId> order;
        MessageId beside; // what is shown when the end of the shown path goes
        for (const RemovedMessage::Place& sibling : childrenOf(id, parent)) {
            if (sibling.id != message) {
                order.push_back(beside = sibling.id);
                removed.around.push_back(sibling);
                continue;
            }
            for (const RemovedMessage::Place& child : children)
                order.push_back(child.id);
        }
        removed.around.insert(removed.around.end(), children.begin(), children.end());
        moveAway(message); // the children's numbers may be taken in their new place
        renumber(id, parent, order);
        auto remove = m_db.statement("DELETE FROM message WHERE id = ?");
        remove->bind(1, message.value());
        remove->exec(); // sets active_leaf to NULL where it was the end
        if (removed.activeLeaf == message)
            writeActiveLeaf(id, beside.valid() ? newestLeaf(beside) : parent);
        return removed;
    });
}

Result<void> ConversationStore::restoreMessage(const RemovedMessage& removed) {
    return m_db.write([&]() -> Result<void> {
        Message message = removed.message;
        const ConversationId id = message.conversation;
        if (auto known = requireConversation(id); !known)
            return known;
        const auto isThere = [&](MessageId wanted) {
            auto select = m_db.statement("SELECT 1 FROM message WHERE id = ? AND conversation_id = ?");
            select->bind(1, wanted.value());
            select->bind(2, id.value());
            return bool(select->executeStep());
        };
        if (isThere(message.id))
            return {};
        if (message.parent.valid() && !isThere(message.parent))
            return fail(ErrorCode::NotFound, "The message before it was deleted too; bring that back first.");
        const auto placeBefore = [&](MessageId one) {
            const auto at = std::find_if(removed.around.begin(), removed.around.end(),
                                         [&](const RemovedMessage::Place& place) { return place.id == one; });
            return at == removed.around.end() ? nullptr : &*at;
        };
        // Who followed it follows it again; who stood beside it keeps its place; who came since stands behind.
        std::vector<MessageId> below, before, behind, since;
        for (const RemovedMessage::Place& now : childrenOf(id, message.parent)) {
            const RemovedMessage::Place* place = placeBefore(now.id);
            if (!place)
                since.push_back(now.id);
            else if (place->parent == message.id)
                below.push_back(now.id);
            else
                (place->sibling < message.sibling ? before : behind).push_back(now.id);
        }
        message.sibling = -1 - message.id.value();
        writeMessage(message, RunId());
        renumber(id, message.id, below);
        before.push_back(message.id);
        before.insert(before.end(), behind.begin(), behind.end());
        before.insert(before.end(), since.begin(), since.end());
        renumber(id, message.parent, before);
        if (removed.activeLeaf.valid() && isThere(removed.activeLeaf))
            writeActiveLeaf(id, removed.activeLeaf);
        return {};
    });
}

void ConversationStore::moveAway(MessageId message) {
    auto away = m_db.statement("UPDATE message SET sibling = -1 - id WHERE id = ?");
    away->bind(1, message.value());
    away->exec();
}

void ConversationStore::renumber(ConversationId id, MessageId parent, const std::vector<MessageId>& order) {
    for (const bool last : {false, true}) // numbers are unique: through negative ones, which nobody has
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto number = static_cast<std::int64_t>(i);
            auto update = m_db.statement("UPDATE message SET parent_id = ?, sibling = ? WHERE id = ?"
                                         " AND conversation_id = ?");
            bindId(*update, 1, parent);
            update->bind(2, last ? number : -1 - order[i].value());
            update->bind(3, order[i].value());
            update->bind(4, id.value());
            update->exec();
        }
}

} // namespace kvscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "engine/store/database.h"
#include "engine/store/records.h"

namespace kvscope::store {

/// Now, as milliseconds since the Unix epoch. Passed in, so that tests own it.
using WallClock = std::function<WallMillis()>;
WallClock systemWallClock();

/// Conversations and messages over an open database. Every write is one commit.
///
/// Thread: that of the database. Errors: NotFound (no such conversation or message), InvalidArgument (a second end of
/// an answer, an answer to an answer), and the storage's (see Database).
class ConversationStore {
public:
    ConversationStore(Database& database, WallClock clock) : m_db(database), m_clock(std::move(clock)) {}

    Result<Conversation> create(const NewConversation& conversation);
    /// By last use, newest first; deleted ones are left out.
    Result<std::vector<Conversation>> list();
    Result<ConversationContent> load(ConversationId id);
    /// `byUser`: an automatic title (false) never replaces a title that the user gave.
    Result<void> rename(ConversationId id, const std::string& title, bool byUser);
    /// Deleted conversations are kept for `purgeDeleted`; `restore` brings one back.
    Result<void> remove(ConversationId id);
    Result<void> restore(ConversationId id);
    /// Removes for good what was deleted before `olderThan`; how many.
    Result<int> purgeDeleted(WallMillis olderThan);

    Result<void> setDraft(ConversationId id, const std::string& draft);
    Result<void> setSystemPrompt(ConversationId id, const std::string& systemPrompt);
    Result<void> setSettings(ConversationId id, const std::string& settings);
    Result<void> setModel(ConversationId id, const std::string& path);
    /// Which path through the tree is shown; the leaf belongs to the conversation.
    Result<void> setActiveLeaf(ConversationId id, MessageId leaf);

    struct Turn {
        Message user;
        std::optional<Message> answer;
    };
    /// Appends the user's message (and the empty answer), makes it the active path, empties the draft.
    Result<Turn> addTurn(const NewTurn& turn, RunId run);
    Result<Message> addAnswer(const NewAnswer& answer, RunId run);
    Result<void> saveProgress(const AnswerProgress& progress);
    Result<void> endAnswer(const AnswerEnd& end);

private:
    Result<void> requireConversation(ConversationId id);
    Result<Message> insertMessage(Message message, RunId run);
    Result<void> updateText(MessageId id, const std::string& text, const std::string& thinking);
    void writeTokens(MessageId id, const MessageTokens& tokens);
    void writeReceipt(MessageId id, const Receipt& receipt);
    void touch(ConversationId id, MessageId leaf);
    /// Row of `model` for a path, made when there is none; invalid for "".
    ModelId modelId(const std::string& path);
    /// One UPDATE of one conversation; NotFound when it changed nothing.
    Result<void> updateConversation(const char* sql, ConversationId id, const std::string& value);
    std::vector<Message> readMessages(ConversationId id);

    Database& m_db;
    WallClock m_clock;
};

} // namespace kvscope::store

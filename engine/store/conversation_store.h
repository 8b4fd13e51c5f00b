// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/store/database.h"
#include "engine/store/records.h"

namespace kvscope::store {

/// Now, as milliseconds since the Unix epoch. Passed in, so that tests own it.
using WallClock = std::function<WallMillis()>;
WallClock systemWallClock();

/// Conversations and messages over an open database. Every write is one commit.
///
/// The messages of a conversation are a tree: siblings share a parent and are versions of each other, the active leaf
/// says which path is shown.
///
/// Thread: that of the database. Errors: NotFound (no such conversation or message), InvalidArgument (a second end of
/// an answer, an answer to an answer), TooLong (an attachment), and the storage's (see Database).
class ConversationStore {
public:
    ConversationStore(Database& database, WallClock clock) : m_db(database), m_clock(std::move(clock)) {}

    // ---- conversations (conversation_store.cpp) ----

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

    /// An invalid id stands for the new conversation, which has no row yet.
    Result<void> setDraft(ConversationId id, const Draft& draft);
    Result<Draft> newChatDraft();
    /// The message that is to be sent when the answer has ended; an empty one = none. Sending a turn forgets it.
    Result<void> setWaiting(ConversationId id, const Draft& message);
    /// What still waits of an ended run becomes the beginning of the draft. How many.
    Result<int> giveBackWaiting();
    Result<void> setSystemPrompt(ConversationId id, const std::string& systemPrompt);
    Result<void> setSettings(ConversationId id, const std::string& settings);
    Result<void> setModel(ConversationId id, const std::string& path);

    // ---- messages (message_store.cpp) ----

    struct Turn {
        Message user;
        std::optional<Message> answer;
    };
    /// Appends the user's message (and the empty answer), makes it the active path, empties the draft.
    Result<Turn> addTurn(const NewTurn& turn, RunId run);
    Result<Message> addAnswer(const NewAnswer& answer, RunId run);
    /// A whole message, which becomes the end of the active path.
    Result<Message> addMessage(const NewMessage& message, RunId run);
    Result<void> saveProgress(const AnswerProgress& progress);
    Result<void> endAnswer(const AnswerEnd& end);
    /// An ended answer is being written again (continue). It keeps its text and tokens, and ends once more.
    Result<void> reopenAnswer(MessageId id, RunId run);
    /// Which path through the tree is shown; the leaf belongs to the conversation.
    Result<void> setActiveLeaf(ConversationId id, MessageId leaf);
    /// Shows the path through this message, down to its newest end.
    Result<void> showVersion(ConversationId id, MessageId through);
    /// What followed it moves up to its parent, in its place among the siblings. Only what is returned can bring it
    /// back.
    Result<RemovedMessage> removeMessage(ConversationId id, MessageId message);
    /// Puts it back where it stood, with what followed it, as far as that is there still; the path that was shown is
    /// shown again. Errors: also NotFound where the message before it is gone.
    Result<void> restoreMessage(const RemovedMessage& removed);

    // ---- whole trees (conversation_copy.cpp) ----

    /// A new conversation with all messages, or with those from the first to `last`; tokens, receipts and attachments
    /// included. An answer that is being written is Interrupted in the copy.
    Result<Conversation> duplicate(ConversationId id, const std::string& title, MessageId last = {});
    struct Adopted {
        ConversationId id;
        bool added = false; ///< false: it was here already, `id` is the one that has all of it
    };
    /// Takes a conversation from outside; its ids only name parents. `fingerprint`: of what it was read from; a second
    /// one with the same adds nothing, and neither does one whose messages are all here in one of the same age.
    Result<Adopted> adopt(const ConversationContent& content, const std::string& fingerprint);
    /// Writes a conversation with the ids that it has, in place of the one of this id.
    Result<void> put(const ConversationContent& content);

private:
    Result<void> requireConversation(ConversationId id);
    Result<Message> insertMessage(Message message, RunId run, bool answersUser);
    Result<void> updateText(MessageId id, const std::string& text, const std::string& thinking,
                            const ThinkingFacts& facts);
    void writeTokens(MessageId id, const MessageTokens& tokens);
    void writeReceipt(MessageId id, const Receipt& receipt);
    void writeAttachments(MessageId id, const std::vector<Attachment>& attachments);
    /// All columns and side tables of one message; its id is kept when it is valid.
    MessageId writeMessage(const Message& message, RunId run);
    /// All columns of one conversation but the active leaf; its id is kept when it is valid.
    ConversationId writeConversation(const Conversation& conversation, const std::string& imported);
    using IdMap = std::unordered_map<std::int64_t, MessageId>;
    IdMap writeTree(ConversationId id, const std::vector<Message>& messages, bool keepIds);
    void writeActiveLeaf(ConversationId id, MessageId leaf);
    bool holdsAll(ConversationId id, const ConversationContent& content);
    MessageId newestLeaf(MessageId from);
    std::vector<RemovedMessage::Place> childrenOf(ConversationId id, MessageId parent);
    void moveAway(MessageId message);
    void renumber(ConversationId id, MessageId parent, const std::vector<MessageId>& order);
    void touch(ConversationId id, MessageId leaf);
    /// Row of `model` for a path, made when there is none; invalid for "".
    ModelId modelId(const std::string& path);
    /// One UPDATE of one conversation; NotFound when it changed nothing.
    Result<void> updateConversation(const char* sql, ConversationId id, const std::string& value);
    std::vector<Message> readMessages(ConversationId id);
    void addDraftAttachments(std::vector<Conversation>& conversations);
    void addWaitingAttachments(std::vector<Conversation>& conversations);
    void forgetDraftAttachments(std::int64_t conversation);
    void forgetWaiting(ConversationId id);
    void writeDraftAttachments(std::int64_t conversation, const std::vector<Attachment>& attachments);
    void writeWaitingAttachments(ConversationId id, const std::vector<Attachment>& attachments);
    void markUnsaved(std::vector<Conversation>& conversations);

    Database& m_db;
    WallClock m_clock;
};

tl::unexpected<Error> noSuchConversation();
tl::unexpected<Error> noSuchMessage();
/// Whether it is within what an attachment may be: TooLong with a sentence otherwise.
Result<void> checkAttachment(const Attachment& attachment);

} // namespace kvscope::store

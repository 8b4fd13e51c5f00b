// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// Why conversations cannot be saved now. Writes wait and are tried again by themselves, except where somebody has to
/// do something first (`Newer`, `Foreign`, `Damaged`).
struct StoreTrouble {
    enum class Reason {
        None,     ///< it is over
        Newer,    ///< the file was written by a newer version of this program
        Foreign,  ///< the file is a database of another program
        Damaged,  ///< the file does not follow its format
        ReadOnly, ///< the file or its folder takes no writes
        Full,     ///< the disk or quota
        Locked,   ///< by another program, for more than ten seconds; or the folder by another window
        Failing,  ///< it cannot be opened, read or written for another reason
    };
    Reason reason = Reason::None;
    QString path;
    QString sentence; ///< what is wrong and what to do
    int waitingWrites = 0;
    bool opening = false; ///< nothing can be read either
};

/// Where conversations are kept, as the window sees it. Every call returns at once; the answer arrives later on the
/// GUI thread, after the database has committed. Calls are carried out in the order in which they were made.
class ChatStore {
public:
    template <class T> using Done = std::function<void(Result<T>)>;

    /// The user's message, and the empty answer to it, in one commit. An edited message of the user is a turn with the
    /// parent of the edited one: the two become versions of each other.
    struct NewTurn {
        ConversationId conversation = kNoId;
        MessageId parent = kNoId; ///< newest message of the path; kNoId = first
        QString text;
        api::SamplingParams settings;
        QString model; ///< path
        std::vector<Attachment> attachments = {};
    };
    struct TurnIds {
        MessageId user = kNoId;
        MessageId answer = kNoId;
    };
    /// A further answer to a message of the user (regenerate).
    struct NewAnswer {
        ConversationId conversation = kNoId;
        MessageId parent = kNoId; ///< the user's message
        api::SamplingParams settings;
        QString model;
    };
    /// A message that is whole already and asks for no answer: an answer as the user edited it.
    struct NewMessage {
        ConversationId conversation = kNoId;
        MessageId parent = kNoId;
        MessageRole role = MessageRole::Assistant;
        QString text;
        QString thinking = {};
        api::SamplingParams settings = {};
        QString model = {};
        std::vector<Attachment> attachments = {};
    };

    /// One conversation in which the text was found: its newest message that contains it, else its title. Thoughts are
    /// not searched.
    struct SearchHit {
        ConversationId conversation = kNoId;
        MessageId message = kNoId;            ///< kNoId: only the title contains it
        int count = 0;                        ///< its messages that contain it
        int attachment = -1;                  ///< where: an attachment of the message; -1 = its text
        QString snippet;                      ///< one line around the place, at most 160 characters
        int snippetAt = 0, snippetLength = 0; ///< the found words in `snippet`
        int position = -1, length = 0;        ///< the first place in that text
    };
    struct SearchResult {
        QString query;
        bool superseded = false;     ///< a newer search was asked for before this one was done: hits are not complete
        std::vector<SearchHit> hits; ///< last used first, at most as many as were asked for
        std::int64_t messages = 0, conversations = 0; ///< all that were found
    };

    struct Preset {
        std::int64_t id = kNoId; ///< kNoId = not stored yet
        QString name;            ///< unique
        QString systemPrompt;
        api::SamplingParams settings;
    };

    enum class ExportFormat { Markdown, Html, Json };
    struct ExportReport {
        QString path;
        int conversations = 0;
        std::int64_t messages = 0;
    };
    struct Skipped {
        QString what; ///< "chat 3, message 2"
        QString why;  ///< a sentence
    };
    struct ImportReport {
        QString path;
        std::vector<ConversationId> added;
        int alreadyThere = 0; ///< conversations that were here: importing twice adds nothing
        std::int64_t messages = 0;
        std::int64_t skippedCount = 0;
        std::vector<Skipped> skipped; ///< the first 200
    };

    virtual ~ChatStore() = default;

    // ---- conversations ----

    /// Not deleted, newest first.
    virtual void listConversations(Done<std::vector<Conversation>> done) = 0;
    /// The shown path from the first message to the newest. Answers that were being written when the program ended are
    /// Interrupted.
    virtual void loadMessages(ConversationId conversation, Done<std::vector<ChatMessage>> done) = 0;
    virtual void createConversation(const Conversation& conversation, Done<ConversationId> done) = 0;
    virtual void renameConversation(ConversationId conversation, const QString& title, Done<void> done) = 0;
    /// As rename, but never replaces a title that the user gave.
    virtual void setAutomaticTitle(ConversationId conversation, const QString& title, Done<void> done) = 0;
    virtual void setSystemPrompt(ConversationId conversation, const QString& prompt, Done<void> done) = 0;
    /// Sampling settings of the next message.
    virtual void setSettings(ConversationId conversation, const api::SamplingParams& settings, Done<void> done) = 0;
    virtual void deleteConversation(ConversationId conversation, Done<void> done) = 0;
    virtual void restoreConversation(ConversationId conversation, Done<void> done) = 0;
    /// A copy of the whole tree, tokens and receipts included; the copy is the newest of the list.
    virtual void duplicateConversation(ConversationId conversation, const QString& title, Done<Conversation> done) = 0;
    /// A new conversation of the path from the first message to `last` (branch as a chat of its own).
    virtual void branchConversation(ConversationId conversation, MessageId last, const QString& title,
                                    Done<Conversation> done) = 0;
    /// What the composer holds; survives a restart. kNoId = the new conversation that has no message yet. The latest
    /// wins and nobody waits for it. Sending a turn forgets the conversation's draft by itself.
    virtual void saveDraft(ConversationId conversation, const QString& text,
                           const std::vector<Attachment>& attachments) = 0;
    /// The message that waits for the end of an answer; an empty one = none does. Sending a turn forgets it by itself.
    /// One that still waits when the program ends is the beginning of the draft when it starts again. A draft that was
    /// given before is saved before it.
    virtual void saveWaiting(ConversationId conversation, const QString& text,
                             const std::vector<Attachment>& attachments, Done<void> done) = 0;
    /// Of the new conversation: {text, attachments}. Those of the others come with the list.
    virtual void loadNewDraft(Done<std::pair<QString, std::vector<Attachment>>> done) = 0;

    // ---- messages ----

    /// When `done` runs without error, the message survives a power cut.
    virtual void addTurn(const NewTurn& turn, Done<TurnIds> done) = 0;
    virtual void addAnswer(const NewAnswer& answer, Done<MessageId> done) = 0;
    virtual void addMessage(const NewMessage& message, Done<MessageId> done) = 0;
    /// What there is of a running answer; replaces what was saved before.
    virtual void saveProgress(const ChatMessage& answer, Done<void> done) = 0;
    /// Text, tokens, status, receipt of an ended answer.
    virtual void endAnswer(const ChatMessage& answer, Done<void> done) = 0;
    /// Continue: an interrupted (or whole) answer is being written again; it keeps its text, and ends once more.
    virtual void reopenAnswer(MessageId answer, Done<void> done) = 0;
    /// Makes the path through this message the shown one, down to its newest end, and gives it.
    virtual void showVersion(ConversationId conversation, MessageId message, Done<std::vector<ChatMessage>> done) = 0;
    /// Removes one message; what follows it moves up to the message before it. Gives the shown path.
    virtual void deleteMessage(ConversationId conversation, MessageId message, Done<std::vector<ChatMessage>> done) = 0;
    /// Puts a message that was deleted since the program started back where it stood, with what followed it.
    virtual void restoreMessage(ConversationId conversation, MessageId message,
                                Done<std::vector<ChatMessage>> done) = 0;

    // ---- search, presets ----

    /// Titles, texts and attachments of all conversations that are not deleted, every version; upper and lower case are
    /// the same. Any text is a valid query, also one character, punctuation or quotes; an empty one finds everything.
    virtual void search(const QString& query, int mostHits, Done<SearchResult> done) = 0;
    /// By name.
    virtual void listPresets(Done<std::vector<Preset>> done) = 0;
    /// Stores a new one or changes an old one; gives its id. Refused with a sentence when the name is empty or taken.
    virtual void savePreset(const Preset& preset, Done<std::int64_t> done) = 0;
    virtual void deletePreset(std::int64_t preset, Done<void> done) = 0;

    // ---- files ----

    /// Empty list = all. Markdown and HTML hold the shown path, JSON the whole tree. The file appears when complete.
    virtual void exportChats(const std::vector<ConversationId>& conversations, ExportFormat format, const QString& path,
                             Done<ExportReport> done) = 0;
    /// KVScope's own JSON, OpenAI-style and ShareGPT JSON or JSON lines. An error only where nothing could be read;
    /// else the report says what was skipped.
    virtual void importChats(const QString& path, Done<ImportReport> done) = 0;
    /// A complete, checked copy of the database; the file appears when complete.
    virtual void backUp(const QString& path, Done<void> done) = 0;
    /// Replaces all conversations by those of a backup, after checking it; the present ones are kept in the file whose
    /// path `done` gives. The list comes anew (StoreBridge::reopened).
    virtual void restoreBackup(const QString& path, Done<QString> done) = 0;
};

} // namespace kvscope::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/api/request.h"

namespace kvscope::ui {

/// Database ids; a conversation's id is also the OwnerId under which the engine knows its blocks.
using ConversationId = std::int64_t;
using MessageId = std::int64_t;
inline constexpr std::int64_t kNoId = -1;
/// Whose blocks a search for a title uses: no conversation's (their ids begin at 1).
inline constexpr std::int64_t kTitleOwner = 0;

enum class MessageRole { User, Assistant };

/// Where a message stands. Everything before `Done` is on its way.
enum class MessageStatus {
    Committing,  ///< own message: on its way to the database
    Saving,      ///< the same for more than 300 ms: the message says so
    Queued,      ///< answer: handed to the engine, nothing heard yet
    Waiting,     ///< answer: the engine has no room for it yet
    Reading,     ///< answer: its prompt is being computed
    Writing,     ///< answer: tokens arrive
    Done,        ///< committed (own message) or complete (answer)
    Stopped,     ///< answer: the user stopped it
    Interrupted, ///< answer: the program ended while it was being written
    Failed,      ///< answer: the engine refused or failed, see `error`
};
inline bool isRunning(MessageStatus status) {
    return status == MessageStatus::Queued || status == MessageStatus::Waiting || status == MessageStatus::Reading ||
           status == MessageStatus::Writing;
}

/// What the cache did for an answer, as shown in the receipt line and its details.
struct Receipt {
    api::CacheReceipt cache;
    double ttftMs = 0; ///< 0 = no token yet
    api::Timings timings;
    std::int64_t drawnTokens = 0;   ///< tokens of the answer that this request drew; 0 = all of them
    QString evictedBy;              ///< title of the conversation whose need took the blocks; empty = not known
    std::int64_t evictedAgoMs = -1; ///< when, before the answer was asked for; -1 = not known
};

/// Why and how far an answer has not begun yet.
struct Progress {
    std::int64_t reused = 0, done = 0, total = 0; ///< prompt tokens
    double secondsLeft = -1;                      ///< -1 = not known
    std::int32_t neededBlocks = 0, availableBlocks = 0, runningLimit = 0, longPrefillLimit = 0;
    bool preempted = false;
    QString lentTo; ///< title of the conversation that holds the blocks now
};

/// A text file that belongs to a message of the user.
struct Attachment {
    QString name; ///< without folders
    QString text;
    std::int64_t tokens = 0; ///< as the tokenizer counted them when it was attached; 0 = not known
    friend bool operator==(const Attachment&, const Attachment&) = default;
};

/// A message that was not sent: what the composer holds, what waits for the end of an answer, what came back.
struct Draft {
    QString text;
    std::vector<Attachment> attachments;
    bool isEmpty() const { return text.isEmpty() && attachments.empty(); }
    /// Anything but spaces and empty lines.
    bool hasWords() const { return !attachments.empty() || !text.trimmed().isEmpty(); }
    friend bool operator==(const Draft&, const Draft&) = default;
};

/// One message of a conversation as the window knows it.
struct ChatMessage {
    MessageId id = kNoId; ///< kNoId until the database has it
    MessageRole role = MessageRole::User;
    MessageStatus status = MessageStatus::Done;
    QString text;                    ///< own: as typed; of an answer: what it says, without what it thought
    QString thinking;                ///< of an answer: what it thought, without marks
    bool thinkingOpen = false;       ///< the thought has no end: it is being written, or was cut off
    double thinkingSeconds = 0;      ///< how long the thought took; 0 = not known
    std::int64_t thinkingTokens = 0; ///< 0 = not known
    int version = 1, versions = 1;   ///< "2/3": its place among its siblings
    std::vector<MessageId> siblings; ///< all of them, itself included, in order; [version - 1] is its own id
    MessageId parent = kNoId;        ///< the message before it; kNoId = first of the conversation
    std::vector<Attachment> attachments;
    bool windowCut = false; ///< the messages above this one are no longer read
    QString error;          ///< a sentence, never part of the text
    /// Of an answer: what was done to the chat so that the model could take it. Words are chat_words.h's.
    std::vector<api::DialogAdaptation> adaptations;
    TokenId endToken = -1; ///< that ended the answer; -1 = none did, or not known
    QString endedBy;       ///< text of that token, or the stop string; empty = not known
    std::vector<TokenId> tokens;
    api::FinishReason reason = api::FinishReason::Stop;
    std::optional<Receipt> receipt;
    Progress progress;
    api::SamplingParams settings; ///< what it was made with
    QString model;
    double tokensPerSecond = 0; ///< while writing: of the last two seconds; afterwards: of the whole answer
    /// Where it lies in the engine's newest sequence of this conversation: tokens [first, second); empty = unknown.
    std::pair<std::int64_t, std::int64_t> tokenRange{0, 0};
    qint64 createdMs = 0; ///< since the epoch
};

/// One conversation as the list knows it.
struct Conversation {
    ConversationId id = kNoId;
    QString title;
    QString systemPrompt;
    QString preview;              ///< beginning of the newest message
    api::SamplingParams settings; ///< of the next message
    qint64 createdMs = 0, updatedMs = 0;
    bool titleByUser = false; ///< the user named it: an automatic title must not replace it
    QString draft;            ///< text of the composer that was not sent
    std::vector<Attachment> draftAttachments;
    bool unsaved = false; ///< only in memory: the database cannot be written and the user went on without it
};

} // namespace kvscope::ui

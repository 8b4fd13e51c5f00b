// SPDX-License-Identifier: GPL-3.0-or-later
//
// Value types of the store: what the tables hold, as plain structs without SQL. Times are milliseconds since the Unix
// epoch (wall clock). Texts are bytes as they were written; they are UTF-8 except where a model wrote otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace kvscope::store {

using ConversationId = StrongId<struct ConversationTag, std::int64_t>;
using MessageId = StrongId<struct MessageTag, std::int64_t>;
using ModelId = StrongId<struct ModelTag, std::int64_t>;
using RunId = StrongId<struct RunTag, std::int64_t>;
using PresetId = StrongId<struct PresetTag, std::int64_t>;
using WallMillis = std::int64_t;

enum class Role { System, User, Assistant };
/// Of a message. User messages are always Complete; an answer is Generating until it is finished, and Interrupted when
/// the user stopped it or the program died while it was written.
enum class MessageStatus { Complete, Interrupted, Generating, Error };

const char* roleName(Role role);                     ///< "system", "user", "assistant", as stored
const char* messageStatusName(MessageStatus status); ///< "complete", "interrupted", "generating", "error", as stored

/// A text file that belongs to a message of the user, or to a draft.
struct Attachment {
    std::string name; ///< without folders
    std::string content;
    std::int64_t tokens = 0; ///< as counted when it was attached; 0 = not known
    friend bool operator==(const Attachment&, const Attachment&) = default;
};
/// Of a file; more is refused.
inline constexpr std::size_t kMostAttachmentBytes = std::size_t(1) << 20;
/// Of a paste, which is an attachment without a name.
inline constexpr std::size_t kMostPasteBytes = std::size_t(64) << 20;
inline std::size_t mostBytesOf(const Attachment& attachment) {
    return attachment.name.empty() ? kMostPasteBytes : kMostAttachmentBytes;
}

/// A message that was not sent: what the composer holds of a conversation, or what waits for the end of an answer.
struct Draft {
    std::string text;
    std::vector<Attachment> attachments;
    bool isEmpty() const { return text.empty() && attachments.empty(); }
    friend bool operator==(const Draft&, const Draft&) = default;
};

/// One row of the conversation list.
struct Conversation {
    ConversationId id;
    std::string title;
    bool titleByUser = false; ///< the user named it: an automatic title must not replace it
    WallMillis created = 0;
    WallMillis updated = 0; ///< last use: the list's order
    std::optional<WallMillis> deleted;
    MessageId activeLeaf; ///< end of the path that is shown; invalid = no message yet
    std::string draft;
    std::vector<Attachment> draftAttachments;
    Draft waiting; ///< to be sent when the answer has ended; empty = none
    std::string systemPrompt;
    std::string settings; ///< JSON object: sampling settings of the next message; "" = the program's defaults
    std::string model;    ///< path of the model it was last used with; "" = none
    std::string preview;  ///< beginning of the newest message's text, at most 200 characters
    bool unsaved = false; ///< the database is in memory, and no file holds this state of the conversation
};

/// The waiting message, and behind it what was begun meanwhile.
Draft draftWithWaiting(const Conversation& conversation);

/// Token ids of an answer exactly as drawn, so that re-tokenizing can never change them.
struct MessageTokens {
    std::string tokenizer; ///< fingerprint of the tokenizer that these ids belong to
    std::vector<TokenId> ids;
    std::optional<TokenId> endToken; ///< the token that ended the answer, not in `ids`
};

/// What the cache did for one answer (the receipt line).
struct Receipt {
    std::int64_t promptTokens = 0, reusedTokens = 0, computedTokens = 0, answerTokens = 0;
    std::int64_t newBlocks = 0, preemptions = 0, swappedBlocks = 0;
    std::int64_t blocksPeak = 0, blocksAvailableAfter = 0, blocksCachedAfter = 0, blockSize = 0;
    std::string cause; ///< why less was reused than possible, the engine's stable reason name ("cold_start", ...)
    std::int64_t divergingToken = -1; ///< index of the first differing token, -1 = none
    std::int64_t divergingTurn = -1;  ///< the turn it lies in, 0 = the system prompt; -1 = not known
    std::string evictedBy;            ///< title of the chat whose need took the blocks; "" = not known
    std::int64_t evictedAgoMs = -1;   ///< when, before the answer was asked for; -1 = not known
    double queueMs = 0, prefillMs = 0, decodeMs = 0, ttftMs = 0, e2eMs = 0;
};

struct ThinkingFacts {
    std::int64_t ms = 0, tokens = 0; ///< 0 = not known
    bool open = false;               ///< the thought was cut off before its end
    friend bool operator==(const ThinkingFacts&, const ThinkingFacts&) = default;
};

struct Message {
    MessageId id;
    ConversationId conversation;
    MessageId parent;         ///< invalid = first of the conversation
    std::int64_t sibling = 0; ///< 0, 1, ... among the messages of the same parent, in order of creation
    Role role = Role::User;
    std::string text;
    std::string thinking; ///< reasoning part of an answer, kept apart from its text
    ThinkingFacts thinkingFacts;
    std::vector<Attachment> attachments;
    MessageStatus status = MessageStatus::Complete;
    std::string finishReason; ///< "stop", "length", "cancelled", "error", "" while generating
    std::string error;        ///< the sentence, when status is Error
    std::string endedBy;      ///< of an answer: text of the token or the stop string that ended it; "" = not known
    /// Of an answer: what was done to the chat so that the model could take it, stable names.
    std::vector<std::string> adaptations;
    std::string settings; ///< JSON object: everything that this message was made with
    std::string model;    ///< path; "" for the user's messages
    WallMillis created = 0;
    std::optional<MessageTokens> tokens;
    std::optional<Receipt> receipt;
};

/// A message that was taken out of its conversation, and where it stood: what it takes to put it back.
struct RemovedMessage {
    struct Place {
        MessageId id, parent;
        std::int64_t sibling = 0;
    };
    Message message;
    std::vector<Place> around; ///< the other versions beside it and the messages that followed it
    MessageId activeLeaf;      ///< end of the path that was shown
};

/// Everything needed to show a conversation: all messages, every sibling, parents before children.
struct ConversationContent {
    Conversation conversation;
    std::vector<Message> messages;
};

// ---- what the caller writes ----

struct NewConversation {
    std::string title;
    std::string systemPrompt;
    std::string settings;
    std::string model;
};

/// The user's message and, in the same commit, the empty answer to it in status Generating.
struct NewTurn {
    ConversationId conversation;
    MessageId parent; ///< invalid = first message
    std::string text;
    std::string settings;
    std::string model;
    bool withAnswer = true;
    std::vector<Attachment> attachments = {};
};

/// A message that is whole already and asks for no answer: an answer as the user edited it.
struct NewMessage {
    ConversationId conversation;
    MessageId parent;
    Role role = Role::Assistant;
    std::string text;
    std::string thinking = {};
    std::string settings = {};
    std::string model = {};
    std::vector<Attachment> attachments = {};
};

/// A further answer to an existing user message (regenerate), or the first one where NewTurn made none.
struct NewAnswer {
    ConversationId conversation;
    MessageId parent;
    std::string settings;
    std::string model;
};

/// What there is of a running answer; replaces what was saved before.
struct AnswerProgress {
    MessageId answer;
    std::string text;
    std::string thinking;
    std::optional<MessageTokens> tokens;
    ThinkingFacts thinkingFacts = {};
};

/// The end of an answer. Every answer ends once; a second end is refused.
struct AnswerEnd {
    MessageId answer;
    MessageStatus status = MessageStatus::Complete; ///< not Generating
    std::string text;
    std::string thinking;
    std::string finishReason;
    std::string error;
    std::optional<MessageTokens> tokens;
    std::optional<Receipt> receipt;
    ThinkingFacts thinkingFacts = {};
    std::string endedBy = {};
    std::vector<std::string> adaptations = {};
};

/// Something worth remembering about a run: a preemption, a fault, a changed model file. `detail` is a JSON object.
struct StoredEvent {
    std::string kind;
    std::string detail;
    ConversationId conversation;
    MessageId message;
    WallMillis time = 0;
};

struct Preset {
    PresetId id;
    std::string name;
    std::string systemPrompt;
    std::string settings;
};

struct StoredModel {
    ModelId id;
    std::string path;
    std::uint64_t size = 0;
    std::int64_t modified = 0; ///< seconds since the epoch
    std::string fingerprint;
    std::string templateChoice; ///< "" = the file's own
};

/// Estimated against measured bytes of one part of a load.
struct LoadEstimate {
    std::string model; ///< path
    std::string part;  ///< "weights", "pool", "activations"
    std::uint64_t estimatedBytes = 0;
    std::uint64_t measuredBytes = 0;
};

} // namespace kvscope::store

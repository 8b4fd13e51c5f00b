// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/base/channel.h"
#include "engine/base/clock.h"
#include "engine/store/chat_search.h"
#include "engine/store/conversation_store.h"
#include "engine/store/data_folder.h"
#include "engine/store/preset_store.h"
#include "engine/store/run_log.h"

namespace kvscope::store {

/// One call of StoreThread that has an answer. Counts from 1 in order of the calls.
using JobId = StrongId<struct JobTag, std::int64_t>;

// ---- what comes back, in the order in which it became true ----

/// The database is open; comes first, and again whenever another one has taken its place (`retry`, `openOther`,
/// `continueInMemory`, `restoreBackup`): what the window shows is then read anew.
struct OpenedEvent {
    std::string path;
    bool inMemory = false; ///< going on without saving: nothing that is written from now on reaches the file
    /// Ids that were known before mean the same chats. False at first, and when other chats have taken their place.
    bool sameChats = false;
    RunId run;
    Recovery recovery;                       ///< what the last run left behind
    std::vector<Conversation> conversations; ///< the list, newest first
};
/// Answer to `listModels`: the model files that were loaded, and the template chosen for each.
struct ModelsEvent {
    JobId job;
    std::vector<StoredModel> models;
};
struct ConversationsEvent {
    JobId job;
    std::vector<Conversation> conversations;
};
struct ConversationCreatedEvent {
    JobId job;
    Conversation conversation;
};
struct ContentEvent {
    JobId job;
    ConversationContent content;
    std::optional<RemovedMessage> removed; ///< of `removeMessage`: for `restoreMessage`
};
/// The user's message is on the disk: now it may be submitted. `answer` is the row that receives the answer.
struct TurnCommittedEvent {
    JobId job;
    Message user;
    std::optional<Message> answer;
};
struct AnswerOpenedEvent {
    JobId job;
    Message answer;
};
struct MessageAddedEvent {
    JobId job;
    Message message;
};
struct DraftEvent {
    JobId job;
    Draft draft;
};
struct SearchEvent {
    JobId job;
    SearchResult result;
};
struct PresetsEvent {
    JobId job;
    std::vector<Preset> presets;
};
struct PresetSavedEvent {
    JobId job;
    PresetId preset;
};
/// One outcome for each conversation that was to be adopted, in order.
struct AdoptedEvent {
    JobId job;
    std::vector<ConversationStore::Adopted> outcomes;
};
/// A backup has taken the place of the database; the replaced one is kept here. An OpenedEvent has come before.
struct RestoredEvent {
    JobId job;
    std::string keptPath;
};
/// Any other write is on the disk.
struct DoneEvent {
    JobId job;
};
/// This call was refused and changed nothing (no such chat, answer already ended, or a read that could not be done).
struct FailedEvent {
    JobId job;
    Error error;
};
/// The storage refuses writes: full, locked for longer than `busyLimit`, read-only, damaged, or it could not be opened.
/// Nothing is lost: writes stay queued and are tried again by themselves (a damaged or newer file: after `retry`).
struct TroubleEvent {
    std::string path;
    Error error; ///< its code is the reason: Newer, Unsupported, Corrupt, ReadOnly, Full, Busy, Io, OutOfMemory
    int waitingWrites = 0;
    bool opening = false; ///< the database never opened: there is nothing to read either
};
/// The trouble is over and the write that met it is on the disk; the others follow.
struct RecoveredEvent {
    std::string path;
};

using StoreEvent =
    std::variant<DoneEvent, OpenedEvent, ConversationsEvent, ConversationCreatedEvent, ContentEvent, TurnCommittedEvent,
                 AnswerOpenedEvent, MessageAddedEvent, DraftEvent, SearchEvent, PresetsEvent, PresetSavedEvent,
                 AdoptedEvent, RestoredEvent, FailedEvent, TroubleEvent, RecoveredEvent, ModelsEvent>;

struct StoreOptions {
    DatabaseOptions database;
    /// The data folder of the database, made where needed and locked before it is opened; a folder that cannot be is a
    /// TroubleEvent like any other. "" = the caller holds its lock.
    std::string folder;
    std::string programVersion;
    std::string configuration; ///< JSON object, kept with the run
    WallClock wallClock = systemWallClock();
    Nanos progressInterval = 1'000'000'000; ///< at most one saved state of a running answer or draft in this time
    Nanos busyLimit = 10'000'000'000;       ///< a lock held longer becomes a TroubleEvent
    Nanos retryInterval = 1'000'000'000;    ///< between two tries of a write that the storage refused
    WallMillis keepDeleted = 30LL * 24 * 3600 * 1000; ///< deleted chats are removed for good after this
};

/// Owns the store's thread and, on it, the database. Every call returns at once; results come as events.
///
/// Order: calls take effect in order, except `saveProgress` and `saveDraft`, where the latest wins and which wait their
/// turn (never behind the end of the same answer). While the storage refuses writes, reads are answered from what is
/// committed. A short mutex guards the queue only; it is never held during work on the database.
///
/// Thread: construct, call and destroy from one thread.
class StoreThread {
public:
    StoreThread(const Clock& clock, StoreOptions options);
    /// As `close(2 s)`.
    ~StoreThread();
    StoreThread(const StoreThread&) = delete;
    StoreThread& operator=(const StoreThread&) = delete;

    JobId listConversations();                                                          ///< -> ConversationsEvent
    JobId createConversation(NewConversation conversation);                             ///< -> ConversationCreatedEvent
    JobId loadConversation(ConversationId id);                                          ///< -> ContentEvent
    JobId renameConversation(ConversationId id, std::string title, bool byUser = true); ///< -> DoneEvent
    JobId deleteConversation(ConversationId id);                                        ///< -> DoneEvent
    JobId restoreConversation(ConversationId id);                                       ///< -> DoneEvent
    JobId setSystemPrompt(ConversationId id, std::string systemPrompt);                 ///< -> DoneEvent
    JobId setSettings(ConversationId id, std::string settings);                         ///< -> DoneEvent
    JobId setModel(ConversationId id, std::string path);                                ///< -> DoneEvent
    JobId setActiveLeaf(ConversationId id, MessageId leaf);                             ///< -> DoneEvent
    /// A copy, of the path to `last` only where that is valid. -> ConversationCreatedEvent
    JobId duplicateConversation(ConversationId id, std::string title, MessageId last = {});
    JobId newChatDraft(); ///< -> DraftEvent
    /// Commits the user's message; submit it to the engine only after the TurnCommittedEvent. Forgets a waiting draft.
    JobId addUserMessage(NewTurn turn);
    JobId addAnswer(NewAnswer answer);                         ///< -> AnswerOpenedEvent
    JobId addMessage(NewMessage message);                      ///< -> MessageAddedEvent
    JobId reopenAnswer(MessageId id);                          ///< -> DoneEvent
    JobId showVersion(ConversationId id, MessageId through);   ///< -> ContentEvent
    JobId removeMessage(ConversationId id, MessageId message); ///< -> ContentEvent
    JobId restoreMessage(RemovedMessage removed);              ///< -> ContentEvent
    JobId endAnswer(AnswerEnd end);     ///< -> DoneEvent. Forgets waiting progress of that answer.
    JobId addEvent(StoredEvent event);  ///< -> DoneEvent
    JobId noteModel(StoredModel model); ///< -> DoneEvent
    JobId listModels();                 ///< -> ModelsEvent
    JobId noteEstimates(std::vector<LoadEstimate> estimates); ///< -> DoneEvent

    /// A search that is still running or waiting is superseded by the next. -> SearchEvent
    JobId search(std::string query, std::size_t mostHits = kMostHits);
    JobId listPresets();             ///< -> PresetsEvent
    JobId savePreset(Preset preset); ///< -> PresetSavedEvent
    JobId deletePreset(PresetId id); ///< -> DoneEvent
    /// Several in one call, each in a commit of its own; fingerprints beside them. -> AdoptedEvent
    JobId adoptConversations(std::vector<std::pair<ConversationContent, std::string>> conversations);
    JobId backUp(std::string target); ///< -> DoneEvent, FailedEvent
    /// Works also while the database cannot be opened. The present one is kept beside it. -> RestoredEvent
    JobId restoreBackup(std::string source);

    /// No events; call them as often as there is something new.
    void saveProgress(AnswerProgress progress);
    /// An invalid id: of the new conversation, which has no row yet.
    void saveDraft(ConversationId id, Draft draft);
    /// The message that waits for the end of an answer; an empty one = none does. A draft that waits to be saved is
    /// saved first: a message that goes back to the composer is always in one of the two. -> DoneEvent
    JobId saveWaiting(ConversationId id, Draft message);

    /// Try again now: opens the database anew if it was damaged, replaced or never opened; in memory: goes back to the
    /// file with all that is unsaved. -> OpenedEvent or TroubleEvent.
    void retry();
    /// Goes on without saving, on what can be read of the database. Waiting writes are done there. -> OpenedEvent
    void continueInMemory();
    /// Leaves this database for the one at `path` (made if there is none), which must not be in use by another window;
    /// conversations that are unsaved move there as new ones. -> OpenedEvent or TroubleEvent
    void openOther(std::string path);

    std::optional<StoreEvent> nextEvent();

    /// How long a call has been without its answer (as far as `nextEvent` was read); 0 = it has been answered. The
    /// window shows "Saving..." for a message once this passes 300 ms.
    Nanos waitingFor(JobId job) const;
    /// Writes that are not on the disk yet, drafts and progress included.
    int unsavedWrites() const;
    /// Saves what is waiting, marks the run as ended cleanly if all of it is saved, and ends the thread. Returns the
    /// number of writes that could not be saved within `patience`. Idempotent; no call but nextEvent may follow.
    int close(Nanos patience);

private:
    struct Session {
        Database& database;
        ConversationStore conversations;
        RunLog runs;
        PresetStore presets;
    };
    /// What changes the database under the session, in the order in which it was asked for.
    struct Switch {
        enum class Kind { Memory, Other, Restore } kind = Kind::Memory;
        std::string path;
        JobId job;
    };
    using Work = std::function<Result<StoreEvent>(Session&, RunId)>;
    struct Job {
        JobId id; ///< invalid: nobody waits for an answer
        bool write = true;
        Work work;
    };
    enum class LaterKind { Progress, Draft };
    using LaterKey = std::pair<LaterKind, std::int64_t>;

    JobId post(bool write, Work work);
    JobId postWrite(std::function<Result<void>(Session&, RunId)> work);
    void postLater(LaterKey key, Work work);
    /// What waits under this key has become untrue (the message was sent, the answer has ended).
    void forgetLater(LaterKey key);

    // store thread
    void run();
    void openDatabase();
    Result<void> holdFolder();
    Session sessionOf(Database& database) const;
    Result<OpenedEvent> prepareSession(Database& database, Session& session);
    // store_switch.cpp
    void enterMemory();
    bool leaveMemory(const std::string& path, bool sameIds);
    Result<void> moveUnsaved(Session& target, bool sameIds);
    Result<void> movePresets(Session& target, bool sameIds);
    bool switchDue(const Switch& next) const;
    void carryOut(const Switch& next);
    void openOtherNow(const std::string& path);
    void moveTo(std::optional<DataFolder> folder);
    Result<std::string> restoreNow(const std::string& source);
    Result<std::string> keepPresent();
    int unsavedConversations();
    void execute(Job job, std::optional<LaterKey> later);
    std::optional<std::pair<Job, std::optional<LaterKey>>> takeJob();
    bool pickJob(Nanos now, std::pair<Job, std::optional<LaterKey>>& picked);
    Nanos nextWake(Nanos now) const;
    void noteSaved(LaterKey key);
    void putBack(Job job, const std::optional<LaterKey>& later);
    void meetTrouble(const Error& error, bool patient = true);
    void endTrouble();
    void finish();
    int unsavedLocked() const;
    bool blocked(Nanos now) const { return !m_session || now < m_retryAt; }

    const Clock& m_clock;
    StoreOptions m_options;
    EventChannel<StoreEvent> m_events;
    std::unordered_map<JobId, Nanos> m_postedAt;     ///< caller's thread only
    std::int64_t m_lastJob = 0;                      ///< caller's thread only
    std::shared_ptr<std::atomic<bool>> m_searchStop; ///< of the newest search; caller's thread only

    mutable std::mutex m_mutex; ///< guards the block below
    std::condition_variable m_wake;
    std::deque<Job> m_queue;
    std::map<LaterKey, Work> m_later;
    bool m_inWork = false;                 ///< a write has left the queue and is being tried
    std::optional<LaterKey> m_laterInWork; ///< ... it is this one, and is put back if the storage refuses it
    std::deque<Switch> m_switches;
    bool m_retryAsked = false;
    bool m_closing = false;
    Nanos m_closeBy = 0;

    // store thread only
    std::unique_ptr<Database> m_database;
    std::optional<Session> m_session;
    RunId m_run;
    std::optional<DataFolder> m_folder;  ///< lock of `StoreOptions::folder`, or of that of a database of `openOther`
    Nanos m_retryAt = 0;                 ///< no write is tried before
    std::optional<Nanos> m_refusedSince; ///< first refusal of the write that is stuck
    bool m_troubleTold = false;
    std::map<LaterKey, Nanos> m_lastSaved;

    bool m_closed = false;  ///< caller's thread only
    int m_unsavedAtEnd = 0; ///< written by the store thread before it ends
    std::thread m_thread;   ///< last: it uses all of the above
};

} // namespace kvscope::store

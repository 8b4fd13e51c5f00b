// SPDX-License-Identifier: GPL-3.0-or-later
//
// The store thread's side of StoreThread, second part: another database takes the place of this one.
#include <filesystem>

#include "engine/store/store_thread.h"

namespace kvscope::store {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kIdsPerMillisecond = 1024;

std::string folderOf(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

/// `path.replaced.bak`, with a number where there is one already.
std::string unusedName(const std::string& path) {
    std::error_code ignored;
    std::string name = path + ".replaced.bak";
    for (int n = 2; fs::exists(name, ignored); ++n)
        name = path + ".replaced-" + std::to_string(n) + ".bak";
    return name;
}

std::vector<std::int64_t> idsOf(Database& database, const char* sql) {
    std::vector<std::int64_t> ids;
    auto select = database.statement(sql);
    while (select->executeStep())
        ids.push_back(select->getColumn(0).getInt64());
    return ids;
}

} // namespace

/// Another database waits until what was written before it is done; called with the queue locked.
bool StoreThread::switchDue(const Switch& next) const {
    if (next.kind == Switch::Kind::Memory || !m_session || m_session->database.inMemory())
        return next.kind == Switch::Kind::Memory || unsavedLocked() == 0 || !m_session;
    return unsavedLocked() == 0 || m_troubleTold;
}

void StoreThread::carryOut(const Switch& next) {
    switch (next.kind) {
    case Switch::Kind::Memory:
        enterMemory();
        return;
    case Switch::Kind::Other:
        openOtherNow(next.path);
        return;
    case Switch::Kind::Restore: {
        const auto kept = restoreNow(next.path);
        if (kept)
            m_events.push(RestoredEvent{next.job, *kept});
        else
            m_events.push(FailedEvent{next.job, kept.error()});
        return;
    }
    }
}

// ---- memory ----

void StoreThread::enterMemory() {
    if (m_session && m_session->database.inMemory())
        return;
    m_session.reset();
    m_database.reset();
    auto opened = Database::openInMemory(m_options.database, true, m_options.wallClock() * kIdsPerMillisecond);
    if (!opened) {
        meetTrouble(opened.error());
        return;
    }
    m_database = std::move(*opened);
    Session session = sessionOf(*m_database);
    auto event = prepareSession(*m_database, session);
    const Result<void> tracked = event ? m_database->trackChanges() : tl::unexpected<Error>(event.error());
    if (!tracked) {
        m_database.reset();
        meetTrouble(tracked.error());
        return;
    }
    m_session.emplace(std::move(session));
    m_refusedSince.reset();
    m_retryAt = 0;
    m_troubleTold = false;
    m_events.push(std::move(*event));
}

bool StoreThread::leaveMemory(const std::string& path, bool sameIds) {
    DatabaseOptions options = m_options.database;
    options.path = path;
    const RunId memoryRun = m_run;
    const auto stay = [&](const Error& error) {
        m_run = memoryRun;
        m_events.push(TroubleEvent{path, error, unsavedConversations(), true});
        return false;
    };
    if (path == m_options.database.path)
        if (auto held = holdFolder(); !held)
            return stay(held.error());
    auto opened = Database::open(options);
    if (!opened)
        return stay(opened.error());
    if (!sameIds)
        m_run = RunId(); // a run of this number in that database is another one
    Session session = sessionOf(**opened);
    auto event = prepareSession(**opened, session);
    if (!event)
        return stay(event.error());
    if (auto moved = moveUnsaved(session, sameIds); !moved)
        return stay(moved.error());
    if (auto list = session.conversations.list())
        event->conversations = std::move(*list);
    m_session.reset();
    m_database = std::move(*opened);
    m_session.emplace(std::move(session));
    m_options.database.path = path;
    m_events.push(std::move(*event));
    return true;
}

/// Every conversation and preset that was written in memory, and the draft of the new one. Done again it gives the
/// same.
Result<void> StoreThread::moveUnsaved(Session& target, bool sameIds) {
    Database& memory = m_session->database;
    for (const std::int64_t id : idsOf(memory, "SELECT conversation_id FROM temp.unsaved ORDER BY 1")) {
        const auto content = m_session->conversations.load(ConversationId(id));
        if (!content && content.error().code == ErrorCode::NotFound)
            continue; // removed for good
        if (!content)
            return tl::unexpected<Error>(content.error());
        if (!sameIds && content->conversation.deleted)
            continue;
        Result<void> moved;
        if (sameIds)
            moved = target.conversations.put(*content);
        else if (auto adopted = target.conversations.adopt(*content, ""); !adopted)
            moved = tl::unexpected<Error>(adopted.error());
        if (!moved)
            return moved;
    }
    if (auto moved = movePresets(target, sameIds && !memory.beganEmpty()); !moved)
        return moved;
    const auto draft = m_session->conversations.newChatDraft();
    if (draft && ((sameIds && !memory.beganEmpty()) || !draft->isEmpty())) // also one that was emptied
        return target.conversations.setDraft(ConversationId(), *draft);
    return {};
}

Result<void> StoreThread::movePresets(Session& target, bool sameIds) {
    Database& memory = m_session->database;
    const auto presets = m_session->presets.list();
    if (!presets)
        return tl::unexpected<Error>(presets.error());
    for (const std::int64_t id : idsOf(memory, "SELECT preset_id FROM temp.removed_preset"
                                               " WHERE preset_id NOT IN (SELECT id FROM main.preset)")) {
        if (!sameIds)
            break; // those of another database are not these
        const auto removed = target.presets.remove(PresetId(id));
        if (!removed && removed.error().code != ErrorCode::NotFound)
            return removed;
    }
    const std::vector<std::int64_t> changed = idsOf(memory, "SELECT preset_id FROM temp.unsaved_preset");
    for (Preset preset : *presets) {
        if (std::find(changed.begin(), changed.end(), preset.id.value()) == changed.end())
            continue;
        auto saved = sameIds ? target.presets.save(preset) : Result<PresetId>(fail(ErrorCode::NotFound, ""));
        if (!saved && saved.error().code == ErrorCode::NotFound) {
            preset.id = PresetId();
            saved = target.presets.save(preset);
        }
        if (!saved && isStorageTrouble(saved.error().code))
            return tl::unexpected<Error>(saved.error()); // a name that is taken there stays as it is there
    }
    return {};
}

int StoreThread::unsavedConversations() {
    if (!m_session || !m_session->database.inMemory())
        return 0;
    const auto count = m_database->read(
        [&]() -> Result<int> { return m_database->handle().execAndGet("SELECT count(*) FROM temp.unsaved").getInt(); });
    return count.value_or(0);
}

// ---- another file ----

void StoreThread::openOtherNow(const std::string& path) {
    if (m_session && !m_session->database.inMemory() && unsavedWrites() > 0) {
        enterMemory(); // what waits belongs to this database's chats: it is done in memory and then moves along
        const std::lock_guard lock(m_mutex);
        m_switches.push_front({Switch::Kind::Other, path, {}});
        return;
    }
    std::error_code ignored;
    std::optional<DataFolder> folder;
    if (!fs::is_directory(folderOf(path), ignored)) {
        m_events.push(TroubleEvent{path, Error{ErrorCode::Io, "There is no folder " + folderOf(path) + "."},
                                   unsavedWrites(), true});
        return;
    }
    const bool sameFolder = fs::equivalent(folderOf(path), folderOf(m_options.database.path), ignored);
    if (sameFolder) {
        if (auto held = holdFolder(); !held) {
            m_events.push(TroubleEvent{path, held.error(), unsavedWrites(), true});
            return;
        }
    } else {
        auto locked = DataFolder::open(folderOf(path));
        if (!locked) {
            m_events.push(TroubleEvent{path, locked.error(), unsavedWrites(), true});
            return;
        }
        folder.emplace(std::move(*locked));
    }
    if (m_session && m_session->database.inMemory()) {
        if (leaveMemory(path, fs::equivalent(path, m_options.database.path, ignored)) && folder)
            moveTo(std::move(folder));
        return;
    }
    if (m_session)
        (void)m_session->runs.endCleanly(m_run); // as far as that database is concerned
    m_session.reset();
    m_database.reset();
    m_run = RunId();
    if (folder)
        moveTo(std::move(folder));
    m_options.database.path = path;
    m_troubleTold = false;
    m_refusedSince.reset();
    openDatabase();
}

/// The folder of before is free for others.
void StoreThread::moveTo(std::optional<DataFolder> folder) {
    m_options.folder.clear();
    m_folder = std::move(folder);
}

// ---- a backup ----

Result<std::string> StoreThread::restoreNow(const std::string& source) {
    std::error_code ignored;
    if (fs::equivalent(source, m_options.database.path, ignored))
        return fail(ErrorCode::InvalidArgument, "This is the database itself; choose a backup of it.");
    if (auto checked = checkDatabaseFile(source); !checked)
        return tl::unexpected<Error>(checked.error());
    const bool fromMemory = m_session && m_session->database.inMemory();
    if (m_session && !fromMemory && unsavedWrites() > 0)
        return fail(ErrorCode::Busy, "Changes are waiting to be saved; restore the backup when they are.");
    auto kept = keepPresent();
    if (!kept)
        return kept;
    DatabaseOptions options = m_options.database;
    Result<void> restored;
    {
        auto target = Database::open(options);
        restored = target ? (*target)->restoreFrom(source) : tl::unexpected<Error>(target.error());
    }
    if (restored && fromMemory) {
        leaveMemory(options.path, false);
    } else {
        if (restored)
            m_run = RunId();
        openDatabase(); // restored, or what there was
    }
    if (!restored)
        return tl::unexpected<Error>(restored.error());
    return kept;
}

/// Leaves a whole copy of the present database beside it and closes it. One that cannot be opened is moved away as it
/// is, with its log.
Result<std::string> StoreThread::keepPresent() {
    const std::string path = m_options.database.path;
    const std::string kept = unusedName(path);
    std::error_code error;
    if (!fs::exists(path, error))
        return std::string();
    if (m_session && !m_session->database.inMemory()) {
        const auto copied = m_database->backUpTo(kept);
        if (!copied && copied.error().code != ErrorCode::Corrupt)
            return tl::unexpected<Error>(copied.error());
        m_session.reset();
        m_database.reset();
        if (copied)
            return kept;
    } else if (auto whole = Database::open(m_options.database)) {
        if (auto copied = (*whole)->backUpTo(kept); copied)
            return kept;
    } else if (whole.error().code == ErrorCode::Busy) {
        return tl::unexpected<Error>(whole.error());
    }
    for (const char* end : {"-wal", "-shm", ""}) // the log first: it belongs to this file and to no other
        if (fs::exists(path + end, error)) {
            fs::rename(path + end, kept + end, error);
            if (error)
                return fail(ErrorCode::Io, "The database " + path + " could not be moved away (" + error.message() +
                                               "); make its folder writable.");
        }
    return kept;
}

} // namespace kvscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The store thread's side of StoreThread: open, take work, meet trouble, end.
#include <algorithm>
#include <limits>

#include "engine/store/store_thread.h"

namespace kvscope::store {

namespace {
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
constexpr Nanos kBusyPause = 50'000'000;    ///< the statement itself has already waited for the lock
constexpr Nanos kSpillFlush = 20'000'000;   ///< the consumer is behind: look again after a frame
constexpr std::size_t kLastSavedKept = 256; ///< times older than the interval say nothing any more
constexpr Nanos kLongestSleep = 3'600'000'000'000;

/// Whether waiting alone can help. A newer or damaged file needs somebody to do something first.
bool canHealByItself(ErrorCode code) {
    return isStorageTrouble(code) && code != ErrorCode::Corrupt;
}
} // namespace

void StoreThread::run() {
    openDatabase();
    while (auto next = takeJob())
        execute(std::move(next->first), next->second);
    finish();
}

void StoreThread::openDatabase() {
    const bool neverOpened = !m_session;
    m_session.reset();
    m_database.reset();
    if (auto held = holdFolder(); !held)
        return meetTrouble(held.error(), false);
    auto opened = Database::open(m_options.database);
    if (opened) {
        m_database = std::move(*opened);
        Session session = sessionOf(*m_database);
        auto event = prepareSession(*m_database, session);
        if (event) {
            m_session.emplace(std::move(session));
            m_events.push(std::move(*event));
            m_retryAt = 0;
            if (neverOpened)
                endTrouble();
            m_troubleTold = false; // the window has taken its notice away: if it goes on, it is told again
            return;
        }
        opened = tl::unexpected<Error>(event.error());
        m_database.reset();
    }
    meetTrouble(opened.error());
}

Result<void> StoreThread::holdFolder() {
    if (m_options.folder.empty() || m_folder)
        return {};
    auto folder = DataFolder::open(m_options.folder);
    if (!folder)
        return tl::unexpected<Error>(folder.error());
    m_folder.emplace(std::move(*folder));
    return {};
}

StoreThread::Session StoreThread::sessionOf(Database& database) const {
    return {database, ConversationStore(database, m_options.wallClock), RunLog(database, m_options.wallClock),
            PresetStore(database, m_options.wallClock)};
}

Result<OpenedEvent> StoreThread::prepareSession(Database& database, Session& session) {
    OpenedEvent event;
    event.path = database.path();
    event.inMemory = database.inMemory();
    const auto ours = session.runs.knows(m_run);
    if (!ours)
        return tl::unexpected<Error>(ours.error());
    event.sameChats = *ours;
    if (!*ours) { // opening anew what this run has written must not mark its own running answers as interrupted
        const auto recovery = session.runs.recover();
        if (!recovery)
            return tl::unexpected<Error>(recovery.error());
        event.recovery = *recovery;
        if (const auto back = session.conversations.giveBackWaiting(); !back)
            return tl::unexpected<Error>(back.error());
        if (const auto purged = session.conversations.purgeDeleted(m_options.wallClock() - m_options.keepDeleted);
            !purged)
            return tl::unexpected<Error>(purged.error());
        const auto run = session.runs.begin(m_options.programVersion, m_options.configuration);
        if (!run)
            return tl::unexpected<Error>(run.error());
        m_run = *run;
    }
    event.run = m_run;
    auto conversations = session.conversations.list();
    if (!conversations)
        return tl::unexpected<Error>(conversations.error());
    event.conversations = std::move(*conversations);
    return event;
}

std::optional<std::pair<StoreThread::Job, std::optional<StoreThread::LaterKey>>> StoreThread::takeJob() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        if (!m_switches.empty() && switchDue(m_switches.front())) {
            const Switch next = std::move(m_switches.front());
            m_switches.pop_front();
            lock.unlock();
            carryOut(next);
            lock.lock();
            continue;
        }
        if (m_retryAsked) {
            m_retryAsked = false;
            if (m_session && m_session->database.inMemory()) {
                lock.unlock();
                leaveMemory(m_options.database.path, true);
                lock.lock();
                continue;
            }
            if (m_troubleTold || !m_session) {
                lock.unlock();
                openDatabase();
                lock.lock();
                continue;
            }
            m_retryAt = 0;
        }
        const Nanos now = m_clock.now();
        if (!m_session && now >= m_retryAt) {
            lock.unlock();
            openDatabase();
            lock.lock();
            continue;
        }
        std::pair<Job, std::optional<LaterKey>> picked;
        if (pickJob(now, picked)) {
            m_inWork = picked.first.write;
            m_laterInWork = picked.second;
            return picked;
        }
        if (m_closing && (unsavedLocked() == 0 || now >= m_closeBy))
            return std::nullopt;
        const Nanos sleep = std::clamp<Nanos>(nextWake(now) - now, 1'000'000, kLongestSleep);
        m_wake.wait_for(lock, std::chrono::nanoseconds(sleep));
    }
}

bool StoreThread::pickJob(Nanos now, std::pair<Job, std::optional<LaterKey>>& picked) {
    if (!m_session)
        return false;
    if (blocked(now)) { // writes keep their order behind the one that is stuck; reads may pass
        const auto read = std::find_if(m_queue.begin(), m_queue.end(), [](const Job& job) { return !job.write; });
        if (read == m_queue.end())
            return false;
        picked.first = std::move(*read);
        m_queue.erase(read);
        return true;
    }
    if (!m_queue.empty()) {
        picked.first = std::move(m_queue.front());
        m_queue.pop_front();
        return true;
    }
    for (auto it = m_later.begin(); it != m_later.end(); ++it) {
        const auto saved = m_lastSaved.find(it->first);
        const bool due = m_closing || saved == m_lastSaved.end() || now >= saved->second + m_options.progressInterval;
        if (!due)
            continue;
        picked.first = Job{JobId(), true, std::move(it->second)};
        picked.second = it->first;
        m_later.erase(it);
        return true;
    }
    return false;
}

Nanos StoreThread::nextWake(Nanos now) const {
    Nanos wake = kNever;
    if (!m_session || (now < m_retryAt && unsavedLocked() > 0))
        wake = m_retryAt;
    else
        for (const auto& [key, work] : m_later) {
            const auto saved = m_lastSaved.find(key);
            wake = std::min(wake, saved == m_lastSaved.end() ? now : saved->second + m_options.progressInterval);
        }
    if (m_closing)
        wake = std::min(wake, m_closeBy);
    // m_events belongs to this thread, which is the one that asks.
    if (!const_cast<StoreThread*>(this)->m_events.flush())
        wake = std::min(wake, now + kSpillFlush);
    return wake == kNever ? now + kLongestSleep : wake;
}

void StoreThread::execute(Job job, std::optional<LaterKey> later) {
    auto result = job.work(*m_session, m_run);
    if (!result && job.write && isStorageTrouble(result.error().code)) {
        putBack(std::move(job), later);
        meetTrouble(result.error());
        return;
    }
    if (job.write && result)
        endTrouble();
    if (later && result)
        noteSaved(*later);
    {
        const std::lock_guard lock(m_mutex);
        m_inWork = false;
        m_laterInWork.reset();
    }
    if (!job.id.valid())
        return; // progress of an answer or draft of a chat that is gone: nobody waits for it
    if (result)
        m_events.push(std::move(*result));
    else
        m_events.push(FailedEvent{job.id, std::move(result.error())});
}

void StoreThread::noteSaved(LaterKey key) {
    const Nanos now = m_clock.now();
    if (m_lastSaved.size() >= kLastSavedKept)
        for (auto it = m_lastSaved.begin(); it != m_lastSaved.end();)
            it = now >= it->second + m_options.progressInterval ? m_lastSaved.erase(it) : std::next(it);
    m_lastSaved[key] = now;
}

void StoreThread::putBack(Job job, const std::optional<LaterKey>& later) {
    const std::lock_guard lock(m_mutex);
    m_inWork = false;
    if (!later)
        m_queue.push_front(std::move(job));
    else if (m_laterInWork == later)
        m_later.try_emplace(*later, std::move(job.work)); // unless a newer state has come meanwhile
    m_laterInWork.reset();
}

/// `patient`: another program's lock is waited for before anybody is told.
void StoreThread::meetTrouble(const Error& error, bool patient) {
    const Nanos now = m_clock.now();
    if (!m_refusedSince)
        m_refusedSince = now;
    const bool busy = patient && error.code == ErrorCode::Busy;
    m_retryAt = !canHealByItself(error.code) ? kNever : now + (busy ? kBusyPause : m_options.retryInterval);
    if (m_troubleTold || (busy && now - *m_refusedSince < m_options.busyLimit))
        return;
    m_troubleTold = true;
    m_events.push(TroubleEvent{m_options.database.path, error, unsavedWrites(), !m_session});
}

void StoreThread::endTrouble() {
    m_refusedSince.reset();
    m_retryAt = 0;
    if (m_troubleTold)
        m_events.push(RecoveredEvent{m_options.database.path});
    m_troubleTold = false;
}

void StoreThread::finish() {
    if (m_session && m_session->database.inMemory())
        leaveMemory(m_options.database.path, true); // the last chance: the disk may have room by now
    const int inMemory = unsavedConversations();
    {
        const std::lock_guard lock(m_mutex);
        m_unsavedAtEnd = unsavedLocked() + inMemory;
    }
    if (m_session && m_unsavedAtEnd == 0)
        (void)m_session->runs.endCleanly(
            m_run); // if even this fails the next start calls the run unclean, which it was
    m_session.reset();
    m_database.reset();
    m_events.flush();
}

} // namespace kvscope::store

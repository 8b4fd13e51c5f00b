// SPDX-License-Identifier: GPL-3.0-or-later
//
// The caller's side of StoreThread: the queue. Its calls stand in store_calls.cpp.
#include "engine/store/store_thread.h"

#include "engine/base/thread_name.h"

namespace kvscope::store {

StoreThread::StoreThread(const Clock& clock, StoreOptions options) : m_clock(clock), m_options(std::move(options)) {
    m_thread = std::thread([this] {
        nameThisThread("kv-store");
        run();
    });
}

StoreThread::~StoreThread() {
    close(2'000'000'000);
}

int StoreThread::close(Nanos patience) {
    if (m_closed)
        return m_unsavedAtEnd;
    {
        const std::lock_guard lock(m_mutex);
        m_closing = true;
        m_closeBy = m_clock.now() + patience;
    }
    m_wake.notify_one();
    m_thread.join();
    m_closed = true;
    return m_unsavedAtEnd;
}

JobId StoreThread::post(bool write, Work work) {
    const JobId id(++m_lastJob);
    m_postedAt[id] = m_clock.now();
    {
        const std::lock_guard lock(m_mutex);
        m_queue.push_back({id, write, std::move(work)});
    }
    m_wake.notify_one();
    return id;
}

JobId StoreThread::postWrite(std::function<Result<void>(Session&, RunId)> work) {
    const JobId id(m_lastJob + 1); // the one that `post` gives
    return post(true, [id, work = std::move(work)](Session& session, RunId run) -> Result<StoreEvent> {
        return work(session, run).map([&]() -> StoreEvent { return DoneEvent{id}; });
    });
}

void StoreThread::postLater(LaterKey key, Work work) {
    {
        const std::lock_guard lock(m_mutex);
        m_later[key] = std::move(work);
    }
    m_wake.notify_one();
}

void StoreThread::forgetLater(LaterKey key) {
    const std::lock_guard lock(m_mutex);
    m_later.erase(key);
    if (m_laterInWork == key)
        m_laterInWork.reset();
}

void StoreThread::continueInMemory() {
    {
        const std::lock_guard lock(m_mutex);
        m_switches.push_back({Switch::Kind::Memory, {}, {}});
    }
    m_wake.notify_one();
}

void StoreThread::openOther(std::string path) {
    {
        const std::lock_guard lock(m_mutex);
        m_switches.push_back({Switch::Kind::Other, std::move(path), {}});
    }
    m_wake.notify_one();
}

JobId StoreThread::restoreBackup(std::string source) {
    const JobId id(++m_lastJob);
    m_postedAt[id] = m_clock.now();
    {
        const std::lock_guard lock(m_mutex);
        m_switches.push_back({Switch::Kind::Restore, std::move(source), id});
    }
    m_wake.notify_one();
    return id;
}

void StoreThread::retry() {
    {
        const std::lock_guard lock(m_mutex);
        m_retryAsked = true;
    }
    m_wake.notify_one();
}

std::optional<StoreEvent> StoreThread::nextEvent() {
    if (m_closed)
        m_events.flush(); // the producer is gone: what it had spilled is ours to move on
    auto event = m_events.pop();
    if (event)
        std::visit(
            [this](const auto& e) {
                if constexpr (requires { e.job; })
                    m_postedAt.erase(e.job);
            },
            *event);
    return event;
}

Nanos StoreThread::waitingFor(JobId job) const {
    const auto posted = m_postedAt.find(job);
    return posted == m_postedAt.end() ? 0 : std::max<Nanos>(1, m_clock.now() - posted->second);
}

int StoreThread::unsavedWrites() const {
    const std::lock_guard lock(m_mutex);
    return unsavedLocked();
}

int StoreThread::unsavedLocked() const {
    int count = static_cast<int>(m_later.size()) + (m_inWork ? 1 : 0);
    for (const Job& job : m_queue)
        count += job.write ? 1 : 0;
    return count;
}

} // namespace kvscope::store

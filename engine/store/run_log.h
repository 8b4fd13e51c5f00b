// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/store/conversation_store.h"

namespace kvscope::store {

/// What an earlier run of the program left behind when it did not end by itself.
struct Recovery {
    int uncleanRuns = 0;
    int interruptedAnswers = 0; ///< were still generating, now marked interrupted
};

/// Runs of the program, what happened in them, and the models they used. Thread: that of the database.
class RunLog {
public:
    RunLog(Database& database, WallClock clock) : m_db(database), m_clock(std::move(clock)) {}

    /// Closes what a crash left open. Call it at start, before `begin`, and only while the data folder is locked:
    /// otherwise another living program's answers would be marked.
    Result<Recovery> recover();
    /// `configuration` is a JSON object.
    Result<RunId> begin(const std::string& version, const std::string& configuration);
    Result<void> endCleanly(RunId run);
    /// Whether this database holds the run and it has not ended: it is the one that is going on.
    Result<bool> knows(RunId run);

    Result<void> addEvent(RunId run, const StoredEvent& event);
    Result<void> noteModel(const StoredModel& model);
    Result<std::vector<StoredModel>> models();
    Result<void> addEstimates(RunId run, const std::vector<LoadEstimate>& estimates);

private:
    Database& m_db;
    WallClock m_clock;
};

} // namespace kvscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The folder of recorded sessions: `<session>.<nnn>.kvscope`, segments of at most an eighth of the cap, so that the
// oldest part of a long session can go without rewriting the rest.
#pragma once

#include <string>
#include <vector>

#include "engine/metrics/log_file.h"

namespace kvscope::metrics {

struct RecordedSession {
    std::string id;
    std::vector<std::string> segments; ///< paths, in order of time
    std::uint64_t bytes = 0;
};

/// Oldest first; nothing when the folder does not exist. Names of sessions sort by time.
std::vector<RecordedSession> listSessions(const std::string& folder);
/// `id` or "last". Error NotFound: names the sessions that there are.
Result<RecordedSession> findSession(const std::string& folder, const std::string& id);
/// Name of a session that began at `wallMillis` (UTC), "20261129-194510-123".
std::string sessionName(std::int64_t wallMillis);
std::string segmentPath(const std::string& folder, const std::string& session, int number);
/// Removes the oldest segments of the folder until `bytes` or less are left; never `keep`.
void trimSessions(const std::string& folder, std::uint64_t bytes, const std::string& keep);

} // namespace kvscope::metrics

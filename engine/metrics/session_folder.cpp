// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/session_folder.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

namespace kvscope::metrics {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEnding = ".kvscope";
constexpr std::size_t kNumberDigits = 3;

/// All segments of the folder in order of time (names begin with the time).
std::vector<fs::path> segmentsOf(const std::string& folder) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.size() > kEnding.size() + kNumberDigits + 1 && it->path().extension() == kEnding)
            paths.push_back(it->path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

/// "20261129-194510-123.000.kvscope" -> "20261129-194510-123"
std::string sessionOf(const fs::path& segment) {
    return segment.stem().stem().string();
}

std::uint64_t sizeOf(const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    return error ? 0 : size;
}

} // namespace

std::vector<RecordedSession> listSessions(const std::string& folder) {
    std::vector<RecordedSession> sessions;
    for (const fs::path& path : segmentsOf(folder)) {
        const std::string id = sessionOf(path);
        if (sessions.empty() || sessions.back().id != id)
            sessions.push_back({id, {}, 0});
        sessions.back().segments.push_back(path.string());
        sessions.back().bytes += sizeOf(path);
    }
    return sessions;
}

Result<RecordedSession> findSession(const std::string& folder, const std::string& id) {
    std::vector<RecordedSession> sessions = listSessions(folder);
    if (sessions.empty())
        return fail(ErrorCode::NotFound, "There is no recorded session in " + folder + "; chat in the window first.");
    if (id == "last")
        return std::move(sessions.back());
    std::string names;
    for (RecordedSession& session : sessions) {
        if (session.id == id)
            return std::move(session);
        names += (names.empty() ? "" : ", ") + session.id;
    }
    return fail(ErrorCode::NotFound,
                "There is no recorded session " + id + " in " + folder + "; there are: " + names + ".");
}

std::string sessionName(std::int64_t wallMillis) {
    const auto seconds = static_cast<std::time_t>(wallMillis / 1000);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char name[64];
    std::snprintf(name, sizeof name, "%04d%02d%02d-%02d%02d%02d-%03d", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(wallMillis % 1000));
    return name;
}

std::string segmentPath(const std::string& folder, const std::string& session, int number) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%0*d", static_cast<int>(kNumberDigits), number);
    return folder + "/" + session + "." + digits + std::string(kEnding);
}

void trimSessions(const std::string& folder, std::uint64_t bytes, const std::string& keep) {
    const std::vector<fs::path> segments = segmentsOf(folder);
    std::uint64_t total = 0;
    for (const fs::path& path : segments)
        total += sizeOf(path);
    for (const fs::path& path : segments) {
        if (total <= bytes)
            return;
        if (path == fs::path(keep))
            continue;
        const std::uint64_t size = sizeOf(path);
        std::error_code error;
        if (fs::remove(path, error))
            total -= size;
    }
}

} // namespace kvscope::metrics

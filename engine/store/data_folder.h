// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>

#include "engine/base/result.h"

namespace kvscope::store {

/// The one folder that holds everything KVScope keeps (database, recorded sessions, models), locked for one instance.
///
/// The lock is flock() on `lock`: it goes away with the process however it ends, so a crash never leaves a stale one.
/// Thread: any one at a time.
class DataFolder {
public:
    /// `$XDG_DATA_HOME/kvscope`, or `~/.local/share/kvscope` where the variable is unset or not absolute.
    static std::string defaultPath();

    /// Creates the folder (mode 0700) where needed and takes the lock. "" = defaultPath().
    /// Errors: Busy with the process number of the holder ("KVScope is already running ..."), Io.
    static Result<DataFolder> open(const std::string& path = {});
    /// Without creating or locking anything: for reading recorded sessions beside a running window.
    static DataFolder unlocked(const std::string& path = {});

    ~DataFolder();
    DataFolder(DataFolder&& other) noexcept;
    DataFolder& operator=(DataFolder&& other) noexcept;
    DataFolder(const DataFolder&) = delete;
    DataFolder& operator=(const DataFolder&) = delete;

    const std::string& path() const { return m_path; }
    bool locked() const { return m_lock >= 0; }
    std::string databasePath() const { return m_path + "/kvscope.db"; }
    std::string sessionsPath() const { return m_path + "/sessions"; }
    std::string modelsPath() const { return m_path + "/models"; }
    /// Name of the local socket by which a second start raises the first window; different for every folder.
    std::string socketPath() const { return m_path + "/socket"; }

private:
    explicit DataFolder(std::string path, int lock = -1) : m_path(std::move(path)), m_lock(lock) {}

    std::string m_path;
    int m_lock = -1; ///< file descriptor that holds the lock, -1 = none
};

} // namespace kvscope::store

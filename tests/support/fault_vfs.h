// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <string>

namespace kvscope::test {

/// An SQLite VFS over the system's in which a test switches faults on and off, from any thread: a disk that is full, an
/// I/O error, a slow disk. It works for root too, which permissions do not.
class FaultVfs {
public:
    FaultVfs();
    ~FaultVfs();
    FaultVfs(const FaultVfs&) = delete;
    FaultVfs& operator=(const FaultVfs&) = delete;

    /// For DatabaseOptions::vfs.
    const std::string& name() const { return m_name; }
    /// Result code of every write and sync from now on: SQLITE_FULL, SQLITE_IOERR_WRITE, ...; 0 = they work.
    std::atomic<int> writeResult{0};
    /// Number of writes that still work before `writeResult` is given; -1 = none.
    std::atomic<int> writesLeft{-1};
    /// The process is killed (SIGKILL) at the write or sync after this many more; -1 = never.
    std::atomic<int> killAfter{-1};
    std::atomic<int> refused{0}; ///< writes and syncs that met the fault

private:
    std::string m_name;
    void* m_vfs = nullptr;
};

} // namespace kvscope::test

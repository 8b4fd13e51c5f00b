// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/fault_vfs.h"

#include <csignal>
#include <sqlite3.h>

namespace kvscope::test {

namespace {

/// A file of the shim; the system's file lies behind it in the same allocation.
struct File {
    sqlite3_file base;
    FaultVfs* faults;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
File* shim(sqlite3_file* file) {
    return reinterpret_cast<File*>(file);
}
sqlite3_file* real(sqlite3_file* file) {
    return shim(file)->real();
}

int fault(sqlite3_file* file) {
    FaultVfs& faults = *shim(file)->faults;
    if (faults.killAfter >= 0 && faults.killAfter-- == 0)
        std::raise(SIGKILL);
    const int result = faults.writeResult;
    if (result == 0)
        return SQLITE_OK;
    if (faults.writesLeft > 0) {
        --faults.writesLeft;
        return SQLITE_OK;
    }
    ++faults.refused;
    return result;
}

// clang-format off
int xClose(sqlite3_file* f) { return real(f)->pMethods ? real(f)->pMethods->xClose(real(f)) : SQLITE_OK; }
int xRead(sqlite3_file* f, void* to, int n, sqlite3_int64 at) { return real(f)->pMethods->xRead(real(f), to, n, at); }
int xWrite(sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
    const int failed = fault(f);
    return failed ? failed : real(f)->pMethods->xWrite(real(f), from, n, at);
}
int xTruncate(sqlite3_file* f, sqlite3_int64 size) { return real(f)->pMethods->xTruncate(real(f), size); }
int xSync(sqlite3_file* f, int flags) {
    const int failed = fault(f);
    return failed ? failed : real(f)->pMethods->xSync(real(f), flags);
}
int xFileSize(sqlite3_file* f, sqlite3_int64* size) { return real(f)->pMethods->xFileSize(real(f), size); }
int xLock(sqlite3_file* f, int lock) { return real(f)->pMethods->xLock(real(f), lock); }
int xUnlock(sqlite3_file* f, int lock) { return real(f)->pMethods->xUnlock(real(f), lock); }
int xCheckReservedLock(sqlite3_file* f, int* out) { return real(f)->pMethods->xCheckReservedLock(real(f), out); }
int xFileControl(sqlite3_file* f, int op, void* arg) { return real(f)->pMethods->xFileControl(real(f), op, arg); }
int xSectorSize(sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); }
int xDeviceCharacteristics(sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); }
int xShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}
int xShmLock(sqlite3_file* f, int offset, int n, int flags) { return real(f)->pMethods->xShmLock(real(f), offset, n, flags); }
void xShmBarrier(sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); }
int xShmUnmap(sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); }
// clang-format on

const sqlite3_io_methods kMethods = {2,
                                     xClose,
                                     xRead,
                                     xWrite,
                                     xTruncate,
                                     xSync,
                                     xFileSize,
                                     xLock,
                                     xUnlock,
                                     xCheckReservedLock,
                                     xFileControl,
                                     xSectorSize,
                                     xDeviceCharacteristics,
                                     xShmMap,
                                     xShmLock,
                                     xShmBarrier,
                                     xShmUnmap,
                                     nullptr,
                                     nullptr};

struct Vfs {
    sqlite3_vfs base;
    sqlite3_vfs* system;
    FaultVfs* faults;
};

int xOpen(sqlite3_vfs* vfs, const char* name, sqlite3_file* out, int flags, int* outFlags) {
    auto* self = reinterpret_cast<Vfs*>(vfs);
    File* file = shim(out);
    file->faults = self->faults;
    file->base.pMethods = nullptr;
    const int result = self->system->xOpen(self->system, name, file->real(), flags, outFlags);
    if (file->real()->pMethods)
        file->base.pMethods = &kMethods;
    return result;
}

} // namespace

FaultVfs::FaultVfs() {
    static std::atomic<int> count{0};
    m_name = "faults-" + std::to_string(++count);
    sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
    auto* vfs = new Vfs{*system, system, this}; // everything but opening files is the system's own
    vfs->base.pNext = nullptr;
    vfs->base.zName = m_name.c_str();
    vfs->base.szOsFile = static_cast<int>(sizeof(File)) + system->szOsFile;
    vfs->base.xOpen = xOpen;
    sqlite3_vfs_register(&vfs->base, 0);
    m_vfs = vfs;
}

FaultVfs::~FaultVfs() {
    auto* vfs = static_cast<Vfs*>(m_vfs);
    sqlite3_vfs_unregister(&vfs->base);
    delete vfs;
}

} // namespace kvscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/data_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvscope::store {

namespace fs = std::filesystem;

namespace {

std::string homeFolder() {
    if (const char* home = std::getenv("HOME"); home && *home == '/')
        return home;
    const passwd* entry = getpwuid(getuid()); // NOLINT(concurrency-mt-unsafe): at start, before any thread
    return entry && entry->pw_dir ? entry->pw_dir : "/";
}

std::string readHolder(int file) {
    char text[32] = {};
    const ssize_t size = pread(file, text, sizeof text - 1, 0);
    std::string holder(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    while (!holder.empty() && (holder.back() == '\n' || holder.back() == ' '))
        holder.pop_back();
    return holder;
}

std::string reason(int error) {
    return std::error_code(error, std::generic_category()).message();
}

} // namespace

std::string DataFolder::defaultPath() {
    if (const char* base = std::getenv("XDG_DATA_HOME"); base && *base == '/')
        return std::string(base) + "/kvscope";
    return homeFolder() + "/.local/share/kvscope";
}

DataFolder DataFolder::unlocked(const std::string& path) {
    return DataFolder(path.empty() ? defaultPath() : path);
}

Result<DataFolder> DataFolder::open(const std::string& given) {
    const std::string path = given.empty() ? defaultPath() : given;
    std::error_code error;
    if (const fs::path parent = fs::absolute(path, error).parent_path(); !fs::exists(parent, error))
        fs::create_directories(parent, error);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return fail(ErrorCode::Io, "The data folder " + path + " cannot be made (" + reason(errno) +
                                       "); choose another with --data-dir.");
    const std::string lockPath = path + "/lock";
    const int file = ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return fail(ErrorCode::Io, "The data folder " + path + " is not writable (" + reason(errno) +
                                       "); make it writable or choose another with --data-dir.");
    DataFolder folder(path, file); // closes the file on every way out
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return fail(ErrorCode::Io, "The data folder " + path + " cannot be locked (" + reason(errno) +
                                           "); choose one on a local disk with --data-dir.");
        const std::string holder = readHolder(file);
        return fail(ErrorCode::Busy, "KVScope is already running with the data folder " + path +
                                         (holder.empty() ? std::string() : " (process " + holder + ")") +
                                         "; use that window, or give another folder with --data-dir.");
    }
    const std::string self = std::to_string(getpid()) + "\n";
    if (ftruncate(file, 0) != 0 || pwrite(file, self.data(), self.size(), 0) != static_cast<ssize_t>(self.size()))
        return fail(ErrorCode::Full, "The data folder " + path + " cannot be written (" + reason(errno) +
                                         "); free some space or choose another with --data-dir.");
    return folder;
}

DataFolder::~DataFolder() {
    if (m_lock >= 0)
        ::close(m_lock);
}

DataFolder::DataFolder(DataFolder&& other) noexcept
    : m_path(std::move(other.m_path))
    , m_lock(std::exchange(other.m_lock, -1)) {}

DataFolder& DataFolder::operator=(DataFolder&& other) noexcept {
    if (this != &other) {
        if (m_lock >= 0)
            ::close(m_lock);
        m_path = std::move(other.m_path);
        m_lock = std::exchange(other.m_lock, -1);
    }
    return *this;
}

} // namespace kvscope::store

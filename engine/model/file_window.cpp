// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/file_window.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvscope::model {
namespace {

constexpr const char* kNoRegularFile = " is not a regular file. Choose a .gguf file.";

std::string reason(int error) {
    return std::generic_category().message(error);
}

FileIdentity identityOf(const std::string& path, const struct stat& status) {
    FileIdentity identity;
    identity.path = path;
    identity.bytes = static_cast<std::uint64_t>(status.st_size);
    identity.modifiedNs = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
    identity.device = status.st_dev;
    identity.inode = status.st_ino;
    return identity;
}

std::uint64_t roundUp(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step * step;
}

} // namespace

std::optional<std::string> fileChanged(const FileIdentity& opened) {
    struct stat status {};
    if (::stat(opened.path.c_str(), &status) != 0)
        return opened.path + " is gone (" + reason(errno) + "). Put it back or choose another model.";
    const FileIdentity now = identityOf(opened.path, status);
    const std::string again = " since it was opened. Load the model again to use what is there now.";
    if (now.bytes < opened.bytes)
        return opened.path + " became " + std::to_string(opened.bytes - now.bytes) + " bytes shorter" + again;
    if (now.bytes > opened.bytes)
        return opened.path + " became " + std::to_string(now.bytes - opened.bytes) + " bytes longer" + again;
    if (now.inode != opened.inode || now.device != opened.device)
        return opened.path + " was replaced by another file" + again;
    if (now.modifiedNs != opened.modifiedNs)
        return opened.path + " was written to" + again;
    return std::nullopt;
}

Result<FileWindow> FileWindow::open(const std::string& path) {
    FileWindow window;
    // O_NONBLOCK only matters for what is no regular file: opening a named pipe must not wait for its writer.
    window.m_descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (window.m_descriptor < 0) {
        const int error = errno;
        if (error == ENOENT || error == ENOTDIR)
            return fail(ErrorCode::NotFound, path + " does not exist. Check the path, or get a model with "
                                                    "packaging/fetch_model.sh.");
        if (error == EACCES || error == EPERM)
            return fail(ErrorCode::Io, path + " may not be read by you. Change its permissions (chmod u+r).");
        if (error == ELOOP)
            return fail(ErrorCode::Io, path + " is a symbolic link that leads in a circle. Choose the file itself, or "
                                              "make the link anew.");
        if (error == ENXIO || error == ENODEV) // a terminal, a socket, a device without its driver
            return fail(ErrorCode::InvalidArgument, path + kNoRegularFile);
        return fail(ErrorCode::Io, path + " cannot be opened: " + reason(error) + ". Choose another file.");
    }
    struct stat status {};
    if (::fstat(window.m_descriptor, &status) != 0)
        return fail(ErrorCode::Io, path + " cannot be examined: " + reason(errno) + ".");
    if (S_ISDIR(status.st_mode))
        return fail(ErrorCode::InvalidArgument, path + " is a folder. Choose a .gguf file inside it.");
    if (!S_ISREG(status.st_mode))
        return fail(ErrorCode::InvalidArgument, path + kNoRegularFile);
    window.m_identity = identityOf(path, status);

    if (window.size() > 0) {
        // Reserved, not committed: PROT_NONE pages count neither as memory nor against overcommit limits.
        window.m_reserved = roundUp(window.size(), static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
        void* base = ::mmap(nullptr, window.m_reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) {
            window.m_reserved = 0;
            return fail(ErrorCode::OutOfMemory, path + ": no address space for " + std::to_string(window.size()) +
                                                    " bytes (" + reason(errno) + "). Raise the limit (ulimit -v).");
        }
        window.m_base = static_cast<std::byte*>(base);
    }
    return window;
}

FileWindow::FileWindow(FileWindow&& other) noexcept {
    *this = std::move(other);
}

FileWindow& FileWindow::operator=(FileWindow&& other) noexcept {
    if (this != &other) {
        close();
        m_identity = std::move(other.m_identity);
        m_descriptor = std::exchange(other.m_descriptor, -1);
        m_base = std::exchange(other.m_base, nullptr);
        m_reserved = std::exchange(other.m_reserved, 0);
        m_filled = std::exchange(other.m_filled, 0);
    }
    return *this;
}

FileWindow::~FileWindow() {
    close();
}

void FileWindow::close() {
    if (m_base)
        ::munmap(m_base, m_reserved);
    if (m_descriptor >= 0)
        ::close(m_descriptor);
    m_base = nullptr;
    m_descriptor = -1;
}

Result<void> FileWindow::ensure(std::uint64_t end) {
    if (end <= m_filled)
        return {};
    if (end > size())
        return fail(ErrorCode::Internal, m_identity.path + ": a read past the end of the file was asked for.");
    // Reads ahead by as much as there is already, so that a header of n bytes costs O(log n) reads; 64 KiB holds the
    // whole header of a file without vocabulary, and its multiples stay on page borders.
    constexpr std::uint64_t kFirst = 64 * 1024;
    constexpr std::uint64_t kMost = 4 * 1024 * 1024;
    const std::uint64_t ahead = std::clamp(m_filled, kFirst, kMost);
    const std::uint64_t target = std::min(size(), roundUp(std::max(end, m_filled + ahead), kFirst));
    if (::mprotect(m_base + m_filled, target - m_filled, PROT_READ | PROT_WRITE) != 0)
        return fail(ErrorCode::OutOfMemory, m_identity.path + ": no memory for " + std::to_string(target) +
                                                " bytes of header (" + reason(errno) + "). Close other programs.");
    if (auto ok = read(m_filled, {m_base + m_filled, static_cast<std::size_t>(target - m_filled)}); !ok)
        return ok;
    m_filled = target;
    return {};
}

Result<void> FileWindow::read(std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got =
            ::pread(m_descriptor, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(ErrorCode::Io, m_identity.path + " cannot be read at byte " + std::to_string(offset + done) +
                                           ": " + reason(errno) + ". Check the disk, or copy the file again.");
        if (got == 0)
            return fail(ErrorCode::Changed, m_identity.path + " became shorter while it was being read: it needs " +
                                                std::to_string(size()) + " bytes, and ends at " +
                                                std::to_string(offset + done) +
                                                " now. Wait until it is complete, then load it again.");
        done += static_cast<std::size_t>(got);
    }
    return {};
}

} // namespace kvscope::model

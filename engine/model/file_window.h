// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace kvscope::model {

/// What a file was when it was opened: enough to notice later that it is another one.
struct FileIdentity {
    std::string path;
    std::uint64_t bytes = 0;
    std::int64_t modifiedNs = 0; ///< since the epoch
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};

/// nullopt: still the same file. Otherwise a sentence that names what changed ("... is 512 bytes shorter than ...").
/// One stat call, nothing is read.
std::optional<std::string> fileChanged(const FileIdentity& opened);

/// A file seen through a window of address space: byte i of the file stands at data() + i once `ensure(i + 1)`
/// succeeded, and never moves.
///
/// The window is reserved by mmap but filled by pread. Mapping the file itself would be shorter, yet whoever truncates
/// such a file kills the reader with SIGBUS; here the same act is a short read and so a sentence. Only what was ensured
/// takes memory. Not thread-safe; moving it keeps data() where it is.
class FileWindow {
public:
    static Result<FileWindow> open(const std::string& path);

    FileWindow(FileWindow&& other) noexcept;
    FileWindow& operator=(FileWindow&& other) noexcept;
    FileWindow(const FileWindow&) = delete;
    FileWindow& operator=(const FileWindow&) = delete;
    ~FileWindow();

    const FileIdentity& identity() const { return m_identity; }
    std::uint64_t size() const { return m_identity.bytes; }
    const std::byte* data() const { return m_base; }

    /// Makes bytes [0, end) readable at data(). `end` <= size(). Errors: Io, Changed (the file became shorter),
    /// OutOfMemory.
    Result<void> ensure(std::uint64_t end);
    /// Reads bytes [offset, offset + out.size()) past the window, into the caller's memory. Errors: Io, Changed.
    Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

private:
    FileWindow() = default;
    void close();

    FileIdentity m_identity;
    int m_descriptor = -1;
    std::byte* m_base = nullptr;
    std::uint64_t m_reserved = 0;
    std::uint64_t m_filled = 0;
};

} // namespace kvscope::model

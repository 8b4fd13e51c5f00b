// SPDX-License-Identifier: GPL-3.0-or-later
//
// Session logs as files: JSON lines, CSV, and `.kvscope` (the JSON lines in independent zstd frames, so that
// `zstd -dc` shows them and a frame lost to a crash costs only itself).
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

enum class LogFormat { JsonLines, Csv, Kvscope };
/// By the ending: ".csv", ".kvscope"; everything else is JSON lines.
LogFormat logFormatOf(const std::string& path);

/// Time between two key frames in memory and in `.kvscope`: what a player has to replay at most after a jump.
inline constexpr Nanos kKeyFrameInterval = 10'000'000'000;

/// Writes one log file. A file made by `create` appears under its name only when `finish` succeeds; until then it is
/// written beside it, and removed if it never does. Thread: any one at a time.
class LogWriter {
public:
    static Result<std::unique_ptr<LogWriter>> create(const std::string& path, LogFormat format,
                                                     const LogHeader& header);
    /// Onto an open stream, which stays the caller's.
    static Result<std::unique_ptr<LogWriter>> onStream(std::FILE* stream, LogFormat format, const LogHeader& header);
    /// A `.kvscope` segment that is readable at any time up to its last whole frame.
    static Result<std::unique_ptr<LogWriter>> createSegment(const std::string& path, const LogHeader& header);
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    /// Errors: Full, Io; the writer is of no use afterwards.
    Result<void> write(const LogRecord& record);
    /// Hands what was written so far to the file: as a frame of its own in `.kvscope`.
    Result<void> closeFrame();
    Result<void> finish();
    std::uint64_t bytesWritten() const { return m_bytes; }

private:
    enum class Target { File, InPlace, Stream };
    LogWriter(std::string path, LogFormat format, Target target);
    Result<void> openFile();
    void writeHeader(const LogHeader& header);
    Result<void> put(const std::string& bytes);
    Error writeError() const;

    std::string m_path;
    std::string m_partial; ///< the name while it is written
    LogFormat m_format;
    Target m_target;
    std::FILE* m_file = nullptr;
    std::string m_pending; ///< text of the open frame
    Nanos m_frameStart = 0;
    std::uint64_t m_bytes = 0;
};

/// A place in a log that could not be read.
struct LogProblem {
    std::size_t line = 0;
    std::string message;
};

/// A log as far as it is readable.
struct SessionLog {
    LogHeader header;
    std::vector<LogRecord> records;
    std::vector<LogProblem> problems; ///< the first hundred; the rest of the log was kept
    std::size_t problemCount = 0;
};

/// Reads any of the three formats (told apart by content). Damaged lines become problems with their numbers, what is
/// readable is kept. Errors: NotFound, Io, Corrupt (no header), Unsupported (newer major version, named).
Result<SessionLog> readLog(const std::string& path);
/// As readLog, one record at a time, without keeping them: for converting long logs. The header comes first.
Result<void> scanLog(const std::string& path, const std::function<void(const LogHeader&)>& header,
                     const std::function<void(LogRecord&&)>& record,
                     const std::function<void(const LogProblem&)>& problem);

} // namespace kvscope::metrics

// SPDX-License-Identifier: GPL-3.0-or-later
#include <cerrno>
#include <cstring>
#include <system_error>

#include <zstd.h>

#include "engine/metrics/log_csv.h"
#include "engine/metrics/log_file.h"
#include "engine/metrics/log_json.h"

namespace kvscope::metrics {

namespace {

constexpr std::size_t kReadBytes = 1 << 16;
constexpr std::size_t kLongestLine = 64 << 20; ///< far above a key frame of 131,072 blocks that all differ
constexpr std::size_t kProblemsKept = 100;
constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";

/// The bytes of a log, decompressed where they are compressed. A damaged frame is passed over up to the next one.
class ByteSource {
public:
    explicit ByteSource(std::FILE* file) : m_file(file) {
        refill();
        m_compressed = m_input.compare(0, kZstdMagic.size(), kZstdMagic) == 0;
    }
    /// Appends some bytes; false at the end.
    bool more(std::string& out) {
        if (!m_compressed) {
            if (m_input.empty() && !refill())
                return false;
            out += m_input;
            m_input.clear();
            return true;
        }
        return inflate(out);
    }
    /// Set once after each damaged frame: what stood open is lost.
    bool takeDamage() { return std::exchange(m_damaged, false); }
    bool failed() const { return std::ferror(m_file) != 0; }

private:
    bool refill() {
        m_input.erase(0, m_position);
        m_position = 0;
        const std::size_t old = m_input.size();
        m_input.resize(old + kReadBytes);
        const std::size_t read = std::fread(m_input.data() + old, 1, kReadBytes, m_file);
        m_input.resize(old + read);
        return read > 0;
    }
    bool inflate(std::string& out) {
        if (m_position == m_input.size() && !refill()) {
            m_damaged |= std::exchange(m_insideFrame, false); // the file ends in the middle of a frame
            return m_damaged;
        }
        const std::size_t start = out.size();
        out.resize(start + ZSTD_DStreamOutSize());
        ZSTD_inBuffer in{m_input.data(), m_input.size(), m_position};
        ZSTD_outBuffer decoded{out.data() + start, out.size() - start, 0};
        const std::size_t left = ZSTD_decompressStream(m_stream.get(), &decoded, &in);
        out.resize(start + decoded.pos);
        m_insideFrame = left != 0;
        if (ZSTD_isError(left))
            return skipDamage();
        m_position = in.pos;
        return true;
    }
    bool skipDamage() {
        m_damaged = true;
        m_insideFrame = false;
        ZSTD_DCtx_reset(m_stream.get(), ZSTD_reset_session_only);
        ++m_position;
        for (;;) {
            const std::size_t next = m_input.find(kZstdMagic, m_position);
            if (next != std::string::npos) {
                m_position = next;
                return true;
            }
            m_position = std::max(m_position, m_input.size() - std::min(m_input.size(), kZstdMagic.size() - 1));
            if (!refill()) {
                m_position = m_input.size();
                return true;
            }
        }
    }

    struct FreeStream {
        void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
    };
    std::FILE* m_file;
    std::string m_input;
    std::size_t m_position = 0;
    std::unique_ptr<ZSTD_DStream, FreeStream> m_stream{ZSTD_createDStream()};
    bool m_compressed = false;
    bool m_insideFrame = false;
    bool m_damaged = false;
};

/// Lines without their ends, numbered from 1.
class LineSource {
public:
    explicit LineSource(std::FILE* file) : m_bytes(file) {}

    /// False at the end. `damaged`: something before this line is lost.
    bool next(std::string& line, bool& damaged) {
        damaged = false;
        for (;;) {
            const std::size_t end = m_text.find('\n', m_searched);
            if (end != std::string::npos) {
                line.assign(m_text, m_start, end - m_start);
                m_start = m_searched = end + 1;
                if (!line.empty() && line.back() == '\r')
                    line.pop_back();
                ++number;
                return true;
            }
            m_text.erase(0, m_start);
            m_searched = m_text.size();
            m_start = 0;
            if (m_text.size() > kLongestLine) {
                m_text.clear();
                m_searched = 0;
                damaged = true;
            }
            const bool more = m_bytes.more(m_text);
            if (m_bytes.takeDamage()) {
                m_text.erase(m_text.rfind('\n') + 1); // a line that the damage cut; npos + 1 = 0: all of it
                m_searched = std::min(m_searched, m_text.size());
                damaged = true;
                return lineAfterDamage(line);
            }
            if (!more)
                return lastLine(line);
        }
    }
    bool failed() const { return m_bytes.failed(); }
    std::size_t number = 0;

private:
    bool lineAfterDamage(std::string& line) {
        line.clear();
        return true;
    }
    bool lastLine(std::string& line) {
        if (m_text.empty())
            return false;
        line = std::exchange(m_text, {});
        m_searched = 0;
        ++number;
        return true;
    }

    ByteSource m_bytes;
    std::string m_text;
    std::size_t m_start = 0;
    std::size_t m_searched = 0;
};

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Joins the lines of a row whose quoted cells contain line ends.
bool nextRow(LineSource& lines, std::string& row, bool& damaged) {
    if (!lines.next(row, damaged))
        return false;
    std::string line;
    bool ignored = false;
    while (!damaged && CsvReader::endsInsideQuotes(row) && row.size() < kLongestLine && lines.next(line, ignored))
        row += "\n" + line;
    return true;
}

} // namespace

Result<void> scanLog(const std::string& path, const std::function<void(const LogHeader&)>& header,
                     const std::function<void(LogRecord&&)>& record,
                     const std::function<void(const LogProblem&)>& problem) {
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
    if (!file)
        return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                    "The session log " + path + " cannot be opened (" +
                        std::error_code(errno, std::generic_category()).message() + ").");
    LineSource lines(file.get());
    std::string line;
    bool damaged = false;
    if (!lines.next(line, damaged) || damaged)
        return fail(ErrorCode::Corrupt, path + " is not a KVScope session log: it has no header.");
    const bool csv = line.compare(0, 4, "type") == 0;
    CsvReader table;
    if (csv) {
        if (auto named = table.readColumns(line); !named)
            return named;
        if (!nextRow(lines, line, damaged))
            return fail(ErrorCode::Corrupt, path + " is not a KVScope session log: it has no session row.");
    }
    const auto begun = csv ? table.readHeader(line) : parseJsonHeader(line);
    if (!begun)
        return fail(begun.error().code, path + ": " + begun.error().message);
    header(*begun);
    while (csv ? nextRow(lines, line, damaged) : lines.next(line, damaged)) {
        if (damaged)
            problem({lines.number + 1, "A part of the file before this line is damaged and was passed over."});
        if (line.empty())
            continue;
        auto parsed = csv ? table.readRecord(line) : parseJsonRecord(line);
        if (!parsed) {
            // a later segment of the same session repeats the header
            if (!csv && parseJsonHeader(line))
                continue;
            problem({lines.number,
                     "Line " + std::to_string(lines.number) + " was passed over: " + parsed.error().message + "."});
        } else if (*parsed) {
            record(std::move(**parsed));
        }
    }
    if (lines.failed())
        return fail(ErrorCode::Io, "Reading " + path + " failed; check the disk.");
    return {};
}

Result<SessionLog> readLog(const std::string& path) {
    SessionLog log;
    return scanLog(
               path, [&](const LogHeader& header) { log.header = header; },
               [&](LogRecord&& record) { log.records.push_back(std::move(record)); },
               [&](const LogProblem& problem) {
                   if (++log.problemCount <= kProblemsKept)
                       log.problems.push_back(problem);
               })
        .map([&] { return std::move(log); });
}

} // namespace kvscope::metrics

// SPDX-License-Identifier: GPL-3.0-or-later
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <zstd.h>

#include "engine/metrics/log_csv.h"
#include "engine/metrics/log_file.h"
#include "engine/metrics/log_json.h"

namespace kvscope::metrics {

namespace {
constexpr std::size_t kFlushBytes = 256 << 10;
constexpr std::size_t kFrameBytes = 4 << 20; ///< a frame is closed at this size even without a key frame
constexpr int kCompressionLevel = 3;

/// One zstd frame with a checksum; "" = no memory.
std::string compressFrame(const std::string& text) {
    const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
    if (!context)
        return {};
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    std::string frame(ZSTD_compressBound(text.size()), '\0');
    const std::size_t size = ZSTD_compress2(context.get(), frame.data(), frame.size(), text.data(), text.size());
    frame.resize(ZSTD_isError(size) ? 0 : size);
    return frame;
}
} // namespace

LogFormat logFormatOf(const std::string& path) {
    const auto endsWith = [&](std::string_view ending) {
        return path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
    };
    return endsWith(".csv") ? LogFormat::Csv : endsWith(".kvscope") ? LogFormat::Kvscope : LogFormat::JsonLines;
}

LogWriter::LogWriter(std::string path, LogFormat format, Target target)
    : m_path(std::move(path))
    , m_partial(target == Target::File ? m_path + ".part" : m_path)
    , m_format(format)
    , m_target(target) {}

LogWriter::~LogWriter() {
    if (!m_file || m_target == Target::Stream)
        return;
    std::fclose(m_file);
    if (m_target == Target::File)
        std::remove(m_partial.c_str()); // never finished: no half file stays behind
}

Error LogWriter::writeError() const {
    const int code = errno;
    return {code == ENOSPC || code == EDQUOT ? ErrorCode::Full : ErrorCode::Io,
            "The session log " + m_path + " could not be written (" +
                std::error_code(code, std::generic_category()).message() + "); choose another place."};
}

Result<std::unique_ptr<LogWriter>> LogWriter::create(const std::string& path, LogFormat format,
                                                     const LogHeader& header) {
    // Renaming onto a device or a pipe would put a file in its place.
    std::error_code unknown;
    const auto status = std::filesystem::status(path, unknown);
    const bool inPlace = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
                         !std::filesystem::is_directory(status);
    std::unique_ptr<LogWriter> writer(new LogWriter(path, format, inPlace ? Target::InPlace : Target::File));
    return writer->openFile().map([&] {
        writer->writeHeader(header);
        return std::move(writer);
    });
}

Result<std::unique_ptr<LogWriter>> LogWriter::createSegment(const std::string& path, const LogHeader& header) {
    std::unique_ptr<LogWriter> writer(new LogWriter(path, LogFormat::Kvscope, Target::InPlace));
    auto opened = writer->openFile();
    if (opened) {
        writer->writeHeader(header);
        opened = writer->closeFrame(); // a segment without a header would be unreadable after a crash
    }
    return opened.map([&] { return std::move(writer); });
}

Result<std::unique_ptr<LogWriter>> LogWriter::onStream(std::FILE* stream, LogFormat format, const LogHeader& header) {
    std::unique_ptr<LogWriter> writer(new LogWriter("on the standard output", format, Target::Stream));
    writer->m_file = stream;
    writer->writeHeader(header);
    return writer;
}

Result<void> LogWriter::openFile() {
    m_file = std::fopen(m_partial.c_str(), "wbe");
    if (!m_file)
        return tl::unexpected<Error>(writeError());
    return {};
}

void LogWriter::writeHeader(const LogHeader& header) {
    m_frameStart = header.clockOrigin;
    if (m_format == LogFormat::Csv)
        appendCsvHeader(m_pending, header);
    else
        appendJsonHeader(m_pending, header);
}

Result<void> LogWriter::write(const LogRecord& record) {
    if (m_format == LogFormat::Kvscope) {
        const auto* block = std::get_if<BlockRecord>(&record);
        const bool key = block && block->key;
        if (key || m_pending.size() >= kFrameBytes || timeOf(record) - m_frameStart >= kKeyFrameInterval) {
            if (auto closed = closeFrame(); !closed)
                return closed;
            m_frameStart = timeOf(record);
        }
        appendJsonRecord(m_pending, record);
        return {};
    }
    if (m_format == LogFormat::Csv)
        appendCsvRecord(m_pending, record);
    else
        appendJsonRecord(m_pending, record);
    if (m_pending.size() >= kFlushBytes)
        return closeFrame();
    return {};
}

Result<void> LogWriter::put(const std::string& bytes) {
    m_bytes += bytes.size();
    if (std::fwrite(bytes.data(), 1, bytes.size(), m_file) != bytes.size() || std::fflush(m_file) != 0)
        return tl::unexpected<Error>(writeError());
    return {};
}

Result<void> LogWriter::closeFrame() {
    if (m_pending.empty())
        return {};
    std::string bytes;
    if (m_format == LogFormat::Kvscope) {
        bytes = compressFrame(m_pending);
        if (bytes.empty())
            return fail(ErrorCode::OutOfMemory, "The session log could not be compressed: there is no memory left.");
        m_pending.clear();
    } else {
        bytes.swap(m_pending);
    }
    return put(bytes);
}

Result<void> LogWriter::finish() {
    if (auto closed = closeFrame(); !closed)
        return closed;
    if (m_target == Target::Stream)
        return {};
    const int closed = std::fclose(m_file);
    m_file = nullptr;
    if (closed != 0 || (m_target == Target::File && std::rename(m_partial.c_str(), m_path.c_str()) != 0)) {
        Error error = writeError();
        if (m_target == Target::File)
            std::remove(m_partial.c_str());
        return tl::unexpected<Error>(std::move(error));
    }
    return {};
}

} // namespace kvscope::metrics

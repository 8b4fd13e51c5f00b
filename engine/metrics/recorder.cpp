// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/recorder.h"

#include <filesystem>

#include "engine/base/thread_name.h"
#include "engine/metrics/session_folder.h"

namespace kvscope::metrics {

namespace {
constexpr std::uint64_t kSegmentsPerCap = 8;
} // namespace

Recorder::Recorder(RecorderOptions options) : m_options(std::move(options)), m_history(m_options.memory) {
    m_history.clear();
    m_thread = std::thread([this] {
        nameThisThread("kv-recorder");
        run();
    });
}

Recorder::~Recorder() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_wake.notify_one();
    m_thread.join();
    // The producer has stopped: what its side of the channel had spilled is ours to move on.
    do
        drain();
    while (!m_messages.flush());
    drain();
    if (m_running)
        endSession(m_newest);
}

// ---- producer ----

void Recorder::begin(LogHeader header) {
    m_messages.push(Begin{std::move(header)});
}

void Recorder::add(LogRecord record) {
    m_messages.push(std::move(record));
}

void Recorder::map(const BlockMapSnapshot& map) {
    m_maps.writeSlot() = map; // the slot keeps its memory: no allocation once it has grown
    m_maps.publish();
}

void Recorder::table(const SequencesRecord& table) {
    m_tables.writeSlot() = table;
    m_tables.publish();
}

void Recorder::end(Nanos time) {
    m_messages.push(End{time});
}

// ---- consumer ----

std::int64_t Recorder::save(SaveRequest request) {
    const std::int64_t job = ++m_lastJob;
    {
        const std::lock_guard lock(m_mutex);
        m_saves.emplace_back(job, std::move(request));
    }
    m_wake.notify_one();
    return job;
}

// ---- recorder thread ----

void Recorder::run() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_wake.wait_for(lock, m_options.poll, [this] { return m_stop || !m_saves.empty(); });
        const bool stop = m_stop;
        std::deque<std::pair<std::int64_t, SaveRequest>> saves;
        saves.swap(m_saves);
        lock.unlock();
        drain();
        for (auto& [job, request] : saves)
            m_results.push(saveNow(job, request));
        m_results.flush();
        lock.lock();
        if (stop)
            return;
    }
}

void Recorder::drain() {
    while (auto message = m_messages.pop()) {
        if (auto* record = std::get_if<LogRecord>(&*message))
            take(std::move(*record));
        else if (auto* begin = std::get_if<Begin>(&*message))
            beginSession(std::move(begin->header));
        else if (const auto* end = std::get_if<End>(&*message))
            endSession(end->time);
    }
    takeMap();
    takeTable(false);
}

void Recorder::beginSession(LogHeader header) {
    if (m_running)
        endSession(m_newest);
    m_header = std::move(header);
    if (m_header.session.empty())
        m_header.session = sessionName(m_header.wallOrigin);
    m_history.clear();
    m_totals = {};
    m_encoder.reset();
    m_lastTable = {};
    m_newest = m_lastKey = m_header.clockOrigin;
    m_running = m_known = true;
    m_segments.clear();
    if (!m_options.folder.empty())
        openSegment();
}

void Recorder::endSession(Nanos time) {
    if (!m_running)
        return;
    takeMap();
    takeTable(true);
    EventRecord ended;
    ended.time = time;
    ended.kind = EventKind::SessionEnded;
    take(ended);
    closeSegment();
    m_running = false;
}

void Recorder::take(LogRecord record) {
    if (!m_running)
        return;
    m_newest = std::max(m_newest, timeOf(record));
    m_totals.add(record);
    if (m_segment && !std::holds_alternative<TextRecord>(record)) // no text on the disk unless the user asks for it
        if (auto written = m_segment->write(record); !written)
            giveUpDisk(written.error());
    m_history.add(std::move(record));
    if (m_newest - m_lastKey >= kKeyFrameInterval)
        keyFrame();
}

void Recorder::takeMap() {
    if (!m_maps.take() || !m_running)
        return;
    const BlockMapSnapshot& map = m_maps.readSlot();
    if (map.time < m_header.clockOrigin)
        return; // the last map of the session before
    if (auto record = m_encoder.encode(map)) {
        if (record->key)
            m_lastKey = m_newest;
        take(std::move(*record));
    }
}

void Recorder::takeTable(bool atEnd) {
    // Left in the buffer until its turn, so that the newest one is written and not the first of many.
    if (!m_running || (!atEnd && m_newest - m_lastTable.time < m_options.tableInterval) || !m_tables.take())
        return;
    const SequencesRecord& table = m_tables.readSlot();
    if (table.time < m_header.clockOrigin || table.rows == m_lastTable.rows)
        return;
    m_lastTable = table;
    take(table);
}

/// Every ten seconds the map and the table stand whole in the log, so that a player can begin there; on the disk a new
/// frame begins with them, and a new segment where the old one is large enough.
void Recorder::keyFrame() {
    m_lastKey = m_newest;
    if (m_segment && m_segment->bytesWritten() >= m_options.diskCap / kSegmentsPerCap) {
        closeSegment();
        openSegment();
    }
    if (auto key = m_encoder.keyFrame(m_newest))
        take(std::move(*key));
    if (m_lastTable.time != 0) {
        SequencesRecord table = m_lastTable;
        table.time = m_newest;
        take(std::move(table));
    }
}

void Recorder::openSegment() {
    std::error_code error;
    std::filesystem::create_directories(m_options.folder, error);
    const std::string path = segmentPath(m_options.folder, m_header.session, static_cast<int>(m_segments.size()));
    trimSessions(m_options.folder, m_options.diskCap - m_options.diskCap / kSegmentsPerCap, path);
    auto segment = LogWriter::createSegment(path, m_header);
    if (!segment)
        return giveUpDisk(segment.error());
    m_segment = std::move(*segment);
    m_segments.emplace_back(path, m_history.nextSerial());
}

void Recorder::closeSegment() {
    if (!m_segment)
        return;
    if (auto finished = m_segment->finish(); !finished)
        giveUpDisk(finished.error());
    m_segment.reset();
}

void Recorder::giveUpDisk(const Error& error) {
    m_segment.reset(); // memory goes on; the next session tries the disk again
    SaveResult result;
    result.path = m_options.folder;
    result.error = error;
    m_results.push(std::move(result));
}

Recorder::SaveResult Recorder::saveNow(std::int64_t job, const SaveRequest& request) {
    SaveResult result;
    result.job = job;
    result.path = request.path;
    result.totals = m_totals;
    const auto save = [&]() -> Result<std::uint64_t> {
        if (!m_known)
            return fail(ErrorCode::NotFound, "There is no session to save yet; load a model first.");
        auto writer = LogWriter::create(request.path, request.format, m_header);
        if (!writer)
            return tl::unexpected<Error>(writer.error());
        auto records = writeSession(**writer, request);
        if (!records)
            return records;
        if (auto finished = (*writer)->finish(); !finished)
            return tl::unexpected<Error>(finished.error());
        return records;
    };
    const auto saved = save();
    if (saved)
        result.records = *saved;
    else
        result.error = saved.error();
    return result;
}

Result<std::uint64_t> Recorder::writeSession(LogWriter& writer, const SaveRequest& request) {
    if (m_segment) // what the disk does not have yet is in memory, unless memory is very small
        if (auto closed = m_segment->closeFrame(); !closed)
            giveUpDisk(closed.error());
    std::uint64_t records = 0;
    Result<void> state;
    const auto put = [&](const LogRecord& record) {
        if (!state)
            return;
        state = writer.write(record);
        records += state ? 1 : 0;
    };
    visitRecorded(put);
    if (request.withText)
        m_history.visitTexts(put);
    if (!state)
        return tl::unexpected<Error>(state.error());
    return records;
}

/// Every record once, by its serial: from the disk where memory has thinned it out, thinned where the disk's segment
/// was trimmed too, and whole from memory.
void Recorder::visitRecorded(const SessionHistory::Visit& visit) const {
    const std::uint64_t wholeFrom = m_history.wholeFrom();
    std::uint64_t next = 0;
    for (const auto& segment : m_segments) {
        const std::uint64_t first = segment.second;
        if (first >= wholeFrom)
            break;
        std::uint64_t serial = first;
        bool opened = false;
        (void)scanLog( // a segment that is gone or unreadable is bridged by what memory has kept of it
            segment.first,
            [&](const LogHeader&) {
                opened = true;
                m_history.visitThin(next, first, visit);
            },
            [&](LogRecord&& record) {
                if (serial++ < wholeFrom)
                    visit(record);
            },
            [](const LogProblem&) {});
        if (opened)
            next = serial;
    }
    m_history.visitThin(next, wholeFrom, visit);
    m_history.visitWhole(visit, next < wholeFrom);
}

} // namespace kvscope::metrics

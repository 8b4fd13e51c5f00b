// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "engine/base/channel.h"
#include "engine/base/triple_buffer.h"
#include "engine/metrics/block_history.h"
#include "engine/metrics/log_file.h"
#include "engine/metrics/log_totals.h"
#include "engine/metrics/session_history.h"

namespace kvscope::metrics {

struct RecorderOptions {
    std::string folder;                ///< for the disk's copy; "" = memory only
    std::uint64_t diskCap = 256 << 20; ///< of all recorded sessions together
    HistoryLimits memory;
    Nanos tableInterval = 100'000'000;  ///< at most one sequence table in this time
    std::chrono::milliseconds poll{50}; ///< how often the thread looks; also the shortest time between two block maps
};

/// Records sessions: takes records from the engine thread, keeps them in memory, writes them to the disk and saves
/// them as files, all on its own thread.
///
/// What it costs the engine: copying fixed-size records into a ring and block maps into a buffer that exists already
/// (latest wins). Encoding, compression and files are the recorder thread's. Frames of ten seconds go to the disk as
/// they become full, so that a crash leaves all but the last of them.
///
/// Threads: `begin`, `add`, `map`, `table`, `end` come from one producer; the constructor, the destructor, `save` and
/// `nextResult` from one consumer; the producer has stopped before the destructor runs.
class Recorder {
public:
    explicit Recorder(RecorderOptions options);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // ---- producer; never waits ----
    /// A session begins; one that still runs is ended first. An empty `header.session` is named by its wall time.
    void begin(LogHeader header);
    void add(LogRecord record);
    void map(const BlockMapSnapshot& map);
    void table(const SequencesRecord& table);
    void end(Nanos time);

    // ---- consumer ----
    struct SaveRequest {
        std::string path;
        LogFormat format = LogFormat::JsonLines;
        bool withText = false; ///< messages and token ids too, as far as they are in memory
    };
    /// A request to save has been carried out, or (job 0) the disk's copy had to be given up.
    struct SaveResult {
        std::int64_t job = 0;
        std::string path;
        std::optional<Error> error;
        std::uint64_t records = 0;
        LogTotals totals; ///< of the session until now, as the recorder counted them
    };
    /// Saves the session that runs, or the last one. Returns the job that `nextResult` will name.
    std::int64_t save(SaveRequest request);
    std::optional<SaveResult> nextResult() { return m_results.pop(); }

private:
    struct Begin {
        LogHeader header;
    };
    struct End {
        Nanos time = 0;
    };
    using Message = std::variant<std::monostate, LogRecord, Begin, End>;

    // recorder thread
    void run();
    void drain();
    void beginSession(LogHeader header);
    void endSession(Nanos time);
    void take(LogRecord record);
    void takeMap();
    void takeTable(bool atEnd);
    void keyFrame();
    void openSegment();
    void closeSegment();
    void giveUpDisk(const Error& error);
    SaveResult saveNow(std::int64_t job, const SaveRequest& request);
    Result<std::uint64_t> writeSession(LogWriter& writer, const SaveRequest& request);
    void visitRecorded(const SessionHistory::Visit& visit) const;

    RecorderOptions m_options;
    EventChannel<Message> m_messages{8192};
    TripleBuffer<BlockMapSnapshot> m_maps;
    TripleBuffer<SequencesRecord> m_tables;
    EventChannel<SaveResult> m_results{64};
    std::int64_t m_lastJob = 0; ///< consumer

    std::mutex m_mutex; ///< guards the two below
    std::condition_variable m_wake;
    std::deque<std::pair<std::int64_t, SaveRequest>> m_saves;
    bool m_stop = false;

    // recorder thread only
    bool m_running = false; ///< a session runs
    bool m_known = false;   ///< there is one to save
    LogHeader m_header;
    SessionHistory m_history;
    LogTotals m_totals;
    BlockMapEncoder m_encoder;
    SequencesRecord m_lastTable;
    Nanos m_newest = 0;
    Nanos m_lastKey = 0;
    std::unique_ptr<LogWriter> m_segment;
    /// Segments of this session on the disk and the serial of their first record; the trimmed ones included.
    std::vector<std::pair<std::string, std::uint64_t>> m_segments;

    std::thread m_thread; ///< last: it uses all of the above
};

} // namespace kvscope::metrics

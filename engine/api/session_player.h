// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/api/sources.h"
#include "engine/metrics/log_file.h"

namespace kvscope::api {

/// Plays a recorded session as if it happened now: the second implementation of CacheSource, which needs neither a
/// model nor an engine. Shows the same map, samples and table at a position however it was reached.
///
/// Positions are nanoseconds since the session's first moment. Samples come in order up to the position; a jump back
/// makes `generation` move, and samples then start again from the first (a history of curves is cleared and refilled).
///
/// Thread: one. Answers no queries: a log holds no tokens of blocks (capabilities().blockDetail is false).
class SessionPlayer final : public CacheSource {
public:
    /// `clock` drives the playing and outlives the player. Starts paused at position 0.
    SessionPlayer(metrics::SessionLog log, const Clock& clock);
    /// Errors: those of metrics::readLog.
    static Result<std::unique_ptr<SessionPlayer>> open(const std::string& path, const Clock& clock);

    const metrics::LogHeader& header() const { return m_log.header; }
    /// Everything recorded, in order of time: requests, events and receipts for a time line.
    const std::vector<metrics::LogRecord>& records() const { return m_log.records; }
    const std::vector<metrics::LogProblem>& problems() const { return m_log.problems; }
    Nanos duration() const { return m_end - m_begin; }

    Nanos position() const;
    bool playing() const { return m_playing; } ///< still true at the end: there is nothing more to come
    void play();
    void pause();
    void setSpeed(double speed); ///< > 0; 1 = as it was
    double speed() const { return m_speed; }
    void seek(Nanos position); ///< clamped to 0..duration()
    std::uint64_t generation() const { return m_generation; }

    CacheCapabilities capabilities() const override;
    bool nextSample(metrics::StepSample& sample) override;
    bool nextMemorySample(metrics::MemorySample& sample) override;
    std::uint64_t droppedSamples() const override { return 0; }
    const metrics::BlockMapSnapshot* takeBlockMap() override;
    const std::vector<SequenceRow>* takeSequences() override;
    void queryBlock(BlockId) override {}
    void queryOwner(OwnerId) override {}

private:
    /// Indices into m_log.records of one record type, in order of time, and how far it has been played.
    struct Track {
        std::vector<std::size_t> records;
        std::size_t next = 0;
    };
    template <class Record> const Record& at(const Track& track, std::size_t i) const {
        return std::get<Record>(m_log.records[track.records[i]]);
    }
    template <class Record> bool nextOf(Track& track, Record& record);
    /// Number of records of the track up to the absolute time.
    std::size_t countUntil(const Track& track, Nanos time) const;
    void rebase();

    metrics::SessionLog m_log;
    const Clock& m_clock;
    Nanos m_begin = 0, m_end = 0; ///< absolute

    bool m_playing = false;
    double m_speed = 1;
    Nanos m_base = 0;   ///< position at m_baseAt
    Nanos m_baseAt = 0; ///< time of m_clock
    std::uint64_t m_generation = 0;

    Track m_samples, m_memory, m_blocks, m_sequences;
    std::vector<std::size_t> m_keyFrames; ///< positions in m_blocks.records
    metrics::BlockMapSnapshot m_map;
    std::vector<SequenceRow> m_rows;
};

} // namespace kvscope::api

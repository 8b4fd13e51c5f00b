// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "engine/api/trace_collector.h"

namespace kvscope::api {

/// Writes the block log of one loaded model (`--log-blocks`). The file is written as things happen; what a crash leaves
/// behind is readable up to its last whole line. Thread: that of the engine.
class BlockLog final : public TraceSink {
public:
    /// Errors: Io (the file cannot be made; the sentence says what to do).
    static Result<std::unique_ptr<BlockLog>> create(const std::string& path, std::string program);
    ~BlockLog() override;
    BlockLog(const BlockLog&) = delete;
    BlockLog& operator=(const BlockLog&) = delete;

    /// Writes the header and listens to the scheduler from now on. Once; both outlive the listening.
    void begin(const kv::KvCache& cache, sched::Scheduler& scheduler, const TraceOptions& options,
               const std::string& modelFingerprint);
    /// Everything is in the file. Errors: Full, Io.
    Result<void> finish();

    void add(const TraceEvent& event) override;
    void add(const TraceStep& step) override;
    void add(SequenceId id, const TraceAnswer& answer) override;
    void add(const TraceAdmission& admission) override;
    void add(const TraceEviction& eviction) override;
    void add(const TracePreemption& preemption) override;

private:
    BlockLog(std::string path, std::string program, std::FILE* file);
    void put(const std::string& line);

    std::string m_path, m_program;
    std::FILE* m_file;
    bool m_failed = false;
    std::unique_ptr<TraceCollector> m_collector;
};

} // namespace kvscope::api

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "engine/base/channel.h"
#include "engine/base/clock.h"
#include "engine/metrics/step_sample.h"

namespace kvscope::api {

/// Value of a line such as "MemAvailable:  123 kB" in bytes; none when the line is missing or malformed.
std::optional<std::uint64_t> procField(std::string_view text, std::string_view name);

/// MemAvailable of this machine in bytes; 0 when it cannot be read.
std::uint64_t availableMemory();

/// Memory of this process (Pss, shared pages divided among their users) in bytes; 0 when it cannot be read.
std::uint64_t processMemory();

/// Resident set of this process in bytes, from counters the kernel keeps anyway; 0 when it cannot be read.
std::uint64_t residentMemory();

/// Reads memory ten times a second on its own thread: summing up a process's pages takes the kernel milliseconds,
/// which neither a step nor a frame has to spare, and which count as load. So the Pss of this process is summed up once
/// a second at most, less often where that takes longer than 2 ms (0.2 % of a processor); in between it is moved by
/// what the resident set (statm) has grown or shrunk since. Two rings, since two threads listen; each has one consumer.
class MemoryProbe {
public:
    explicit MemoryProbe(const Clock& clock);
    ~MemoryProbe();
    MemoryProbe(const MemoryProbe&) = delete;
    MemoryProbe& operator=(const MemoryProbe&) = delete;

    /// The window's thread.
    bool nextForWindow(metrics::MemorySample& sample) { return m_window.pop(sample); }
    /// The engine's thread (it hands samples on to the session log).
    bool nextForEngine(metrics::MemorySample& sample) { return m_engine.pop(sample); }

private:
    void run();
    metrics::MemorySample read();

    const Clock& m_clock;
    SampleRing<metrics::MemorySample> m_window{64};
    SampleRing<metrics::MemorySample> m_engine{64};
    Nanos m_nextProcessRead = 0;      ///< probe thread only
    std::uint64_t m_processBytes = 0; ///< probe thread only: Pss as summed up last
    std::uint64_t m_residentThen = 0; ///< probe thread only: resident set at that moment
    std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_stop = false; ///< guarded by m_mutex
    std::thread m_thread;
};

} // namespace kvscope::api

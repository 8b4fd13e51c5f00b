// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/memory_probe.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

namespace kvscope::api {

namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr Nanos kRestPerWork = 100; ///< reading the process's pages takes at most a hundredth of the time

std::string slurp(const char* path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

} // namespace

std::optional<std::uint64_t> procField(std::string_view text, std::string_view name) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        if (line.substr(0, name.size()) != name || line.size() <= name.size() || line[name.size()] != ':')
            continue;
        line.remove_prefix(name.size() + 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        std::uint64_t kibibytes = 0;
        const auto parsed = std::from_chars(line.data(), line.data() + line.size(), kibibytes);
        const std::string_view unit(parsed.ptr, static_cast<std::size_t>(line.data() + line.size() - parsed.ptr));
        if (parsed.ec != std::errc() || unit != " kB")
            return std::nullopt;
        return kibibytes * 1024;
    }
    return std::nullopt;
}

std::uint64_t availableMemory() {
    return procField(slurp("/proc/meminfo"), "MemAvailable").value_or(0);
}

std::uint64_t processMemory() {
    return procField(slurp("/proc/self/smaps_rollup"), "Pss").value_or(0);
}

MemoryProbe::MemoryProbe(const Clock& clock) : m_clock(clock), m_thread([this] { run(); }) {}

MemoryProbe::~MemoryProbe() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_wake.notify_one();
    m_thread.join();
}

metrics::MemorySample MemoryProbe::read() {
    const Nanos start = m_clock.now();
    if (start >= m_nextProcessRead) {
        m_processBytes = processMemory();
        const Nanos took = m_clock.now() - start;
        m_nextProcessRead = start + took * kRestPerWork;
    }
    metrics::MemorySample sample;
    const std::string machine = slurp("/proc/meminfo");
    sample.totalBytes = procField(machine, "MemTotal").value_or(0);
    sample.availableBytes = procField(machine, "MemAvailable").value_or(0);
    sample.processBytes = m_processBytes;
    sample.time = m_clock.now();
    return sample;
}

void MemoryProbe::run() {
    std::unique_lock lock(m_mutex);
    while (!m_stop) {
        lock.unlock();
        const metrics::MemorySample sample = read();
        m_window.push(sample); // a full ring means nobody looks; the next sample is as good
        m_engine.push(sample);
        lock.lock();
        m_wake.wait_for(lock, kInterval, [this] { return m_stop; });
    }
}

} // namespace kvscope::api

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/memory_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "engine/base/thread_name.h"

namespace kvscope::api {

namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr Nanos kRestPerWork = 500; ///< summing up the process's pages takes at most 0.2 % of the time
constexpr Nanos kProcessInterval = 1'000'000'000;

/// A file of /proc as a whole: they are made while they are read and have no size before that.
std::string slurp(const char* path) {
    std::string text(4096, '\0');
    std::size_t size = 0;
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return {};
    for (ssize_t got = 0; (got = ::read(file, text.data() + size, text.size() - size)) > 0;) {
        size += static_cast<std::size_t>(got);
        if (size == text.size())
            text.resize(2 * size);
    }
    ::close(file);
    text.resize(size);
    return text;
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

std::uint64_t residentMemory() {
    const std::string pages = slurp("/proc/self/statm"); // "size resident shared ..." in pages
    const std::size_t space = pages.find(' ');
    if (space == std::string::npos)
        return 0;
    std::uint64_t resident = 0;
    std::from_chars(pages.data() + space + 1, pages.data() + pages.size(), resident);
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
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
        m_residentThen = residentMemory();
        m_processBytes = processMemory();
        const Nanos took = m_clock.now() - start;
        m_nextProcessRead = start + std::max(kProcessInterval, took * kRestPerWork);
    }
    const std::uint64_t resident = residentMemory();
    metrics::MemorySample sample;
    const std::string machine = slurp("/proc/meminfo");
    sample.totalBytes = procField(machine, "MemTotal").value_or(0);
    sample.availableBytes = procField(machine, "MemAvailable").value_or(0);
    // In this order: unsigned, and a process can have shrunk by more than its share.
    const std::uint64_t now = m_processBytes + resident;
    sample.processBytes = m_processBytes != 0 && now > m_residentThen ? now - m_residentThen : m_processBytes;
    sample.time = m_clock.now();
    return sample;
}

void MemoryProbe::run() {
    nameThisThread("kv-probe");
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

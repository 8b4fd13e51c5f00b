// SPDX-License-Identifier: GPL-3.0-or-later
//
// Any bytes as a session log: reading them, counting them and playing them must end without a fault, and what was read
// must survive being written and read again.
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

#include "engine/api/session_player.h"
#include "engine/metrics/log_json.h"
#include "engine/metrics/log_totals.h"

using namespace kvscope;
using namespace kvscope::metrics;

namespace {

std::string textOf(const LogRecord& record) {
    std::string text;
    appendJsonRecord(text, record);
    return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A file in memory: the reader wants a path, and a disk would make this many times slower.
    static const int descriptor = ::memfd_create("fuzz.log", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size))
        std::abort();
    auto log = readLog(path);
    if (!log)
        return 0;
    LogTotals totals;
    for (const LogRecord& record : log->records) {
        totals.add(record);
        const std::string line = textOf(record);
        const auto back = parseJsonRecord(std::string_view(line).substr(0, line.size() - 1));
        if (!back || !*back || textOf(**back) != line)
            std::abort();
    }
    ManualClock clock;
    api::SessionPlayer player(std::move(*log), clock);
    StepSample sample;
    for (const double share : {0.5, 1.0, 0.25, 0.75}) {
        player.seek(static_cast<Nanos>(static_cast<double>(player.duration()) * share));
        while (player.nextSample(sample)) {
        }
        (void)player.takeBlockMap();
        (void)player.takeSequences();
    }
    return 0;
}

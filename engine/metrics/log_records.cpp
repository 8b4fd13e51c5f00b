// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

const char* eventKindName(EventKind kind) {
    switch (kind) {
    case EventKind::Queued:
        return "queued";
    case EventKind::Waiting:
        return "waiting";
    case EventKind::Prefill:
        return "prefill";
    case EventKind::Faulted:
        return "faulted";
    case EventKind::FileChanged:
        return "file_changed";
    case EventKind::SessionEnded:
        return "session_ended";
    case EventKind::Preemption:
        return "preemption";
    }
    return "unknown";
}

} // namespace kvscope::metrics

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/log_totals.h"

#include "engine/metrics/block_history.h"

namespace kvscope::metrics {

void LogTotals::add(const LogRecord& record) {
    if (const auto* sample = std::get_if<StepSample>(&record)) {
        if (sample->time >= last.time)
            last = *sample;
    } else if (const auto* memory = std::get_if<MemorySample>(&record)) {
        if (memory->time >= lastMemory.time)
            lastMemory = *memory;
    } else if (std::holds_alternative<RequestRecord>(record)) {
        ++requests;
    } else if (const auto* event = std::get_if<EventRecord>(&record)) {
        faults += event->kind == EventKind::Faulted ? 1 : 0;
    } else if (const auto* receipt = std::get_if<ReceiptRecord>(&record)) {
        ++finished;
        cancelled += receipt->reason == "cancelled" ? 1 : 0;
        failed += receipt->reason == "error" ? 1 : 0;
        promptTokens += receipt->promptTokens;
        reusedTokens += receipt->reusedTokens;
        computedTokens += receipt->computedTokens;
        answerTokens += receipt->answerTokens;
        preemptions += receipt->preemptions;
    } else if (const auto* block = std::get_if<BlockRecord>(&record)) {
        if (!applyBlockRecord(*block, m_map))
            return;
        mapByState.fill(0);
        for (const BlockCell& cell : m_map.cells)
            ++mapByState[static_cast<std::size_t>(cell.state)];
    }
}

} // namespace kvscope::metrics

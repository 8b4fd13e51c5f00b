// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/session_history.h"

#include <algorithm>

namespace kvscope::metrics {

std::size_t SessionHistory::sizeOf(const LogRecord& record) {
    std::size_t size = sizeof(LogRecord);
    if (const auto* block = std::get_if<BlockRecord>(&record))
        size += block->runs.size() * sizeof(CellRun) + block->owners.size() * sizeof(OwnerId);
    else if (const auto* table = std::get_if<SequencesRecord>(&record))
        size += table->rows.size() * sizeof(SequenceEntry);
    else if (const auto* text = std::get_if<TextRecord>(&record))
        size += text->text.size() + text->tokens.size() * sizeof(TokenId);
    return size;
}

void SessionHistory::add(LogRecord record) {
    const std::size_t size = sizeOf(record);
    if (std::holds_alternative<TextRecord>(record)) {
        m_texts.push_back(std::move(record));
        m_textBytes += size;
        while (m_textBytes > m_limits.textBytes && !m_texts.empty()) {
            m_textBytes -= sizeOf(m_texts.front());
            m_texts.pop_front();
        }
        return;
    }
    m_newest = std::max(m_newest, timeOf(record));
    m_whole.push_back(std::move(record));
    ++m_nextSerial;
    m_wholeBytes += size;
    while (m_whole.size() > 1 &&
           (m_wholeBytes > m_limits.wholeBytes || timeOf(m_whole.front()) < m_newest - m_limits.whole))
        dropOldest();
    while (!m_thin.empty() && timeOf(m_thin.front().second) < m_newest - m_limits.thin)
        m_thin.pop_front();
}

void SessionHistory::dropOldest() {
    const std::uint64_t serial = wholeFrom();
    LogRecord record = std::move(m_whole.front());
    m_whole.pop_front();
    m_wholeBytes -= sizeOf(record);
    const Nanos time = timeOf(record);
    bool keep = std::holds_alternative<RequestRecord>(record) || std::holds_alternative<ReceiptRecord>(record) ||
                std::holds_alternative<EventRecord>(record);
    const auto thinOut = [&](Nanos& last) {
        keep = time - last >= m_limits.thinInterval;
        if (keep)
            last = time;
    };
    if (std::holds_alternative<StepSample>(record))
        thinOut(m_lastThinStep);
    else if (std::holds_alternative<MemorySample>(record))
        thinOut(m_lastThinMemory);
    if (keep)
        m_thin.emplace_back(serial, std::move(record));
}

void SessionHistory::clear() {
    m_whole.clear();
    m_thin.clear();
    m_texts.clear();
    m_wholeBytes = m_textBytes = 0;
    m_newest = 0;
    m_lastThinStep = m_lastThinMemory = kNoTime;
    m_nextSerial = 0;
}

void SessionHistory::visitThin(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
    for (const auto& [serial, record] : m_thin)
        if (serial >= begin && serial < end)
            visit(record);
}

void SessionHistory::visitWhole(const Visit& visit, bool fromKeyFrame) const {
    bool keySeen = !fromKeyFrame;
    for (const LogRecord& record : m_whole) {
        if (const auto* block = std::get_if<BlockRecord>(&record)) {
            keySeen |= block->key;
            if (!keySeen)
                continue;
        }
        visit(record);
    }
}

void SessionHistory::visitTexts(const Visit& visit) const {
    for (const LogRecord& record : m_texts)
        visit(record);
}

} // namespace kvscope::metrics

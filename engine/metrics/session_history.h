// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <functional>
#include <limits>

#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

struct HistoryLimits {
    Nanos whole = 600'000'000'000;            ///< everything of the last ten minutes ...
    std::size_t wholeBytes = 128 << 20;       ///< ... but never more than this
    Nanos thinInterval = 1'000'000'000;       ///< before that one sample a second ...
    Nanos thin = 24LL * 3600 * 1'000'000'000; ///< ... of the last day
    std::size_t textBytes = 32 << 20;         ///< newest texts
};

/// What of a session is kept in memory. Thread: one.
class SessionHistory {
public:
    explicit SessionHistory(HistoryLimits limits = {}) : m_limits(limits) {}

    void add(LogRecord record);
    void clear();

    /// Records count from 0 in order of arrival, texts apart. Number of the next one, and of the oldest one of the
    /// whole part: what came before is thinned.
    std::uint64_t nextSerial() const { return m_nextSerial; }
    std::uint64_t wholeFrom() const { return m_nextSerial - m_whole.size(); }
    using Visit = std::function<void(const LogRecord&)>;
    /// Thinned records with serials in [begin, end).
    void visitThin(std::uint64_t begin, std::uint64_t end, const Visit& visit) const;
    /// `fromKeyFrame`: what the first block records change is not known, so they are left out up to a key frame.
    void visitWhole(const Visit& visit, bool fromKeyFrame) const;
    void visitTexts(const Visit& visit) const;

    std::size_t wholeCount() const { return m_whole.size(); }
    std::size_t thinCount() const { return m_thin.size(); }
    std::size_t bytes() const { return m_wholeBytes + m_textBytes + m_thin.size() * sizeof(LogRecord); }

private:
    static constexpr Nanos kNoTime = std::numeric_limits<Nanos>::min() / 2; ///< half: differences must not wrap
    void dropOldest();
    static std::size_t sizeOf(const LogRecord& record);

    HistoryLimits m_limits;
    std::deque<LogRecord> m_whole;
    std::size_t m_wholeBytes = 0;
    std::uint64_t m_nextSerial = 0;
    std::deque<std::pair<std::uint64_t, LogRecord>>
        m_thin; ///< with serials; samples a second apart, all requests, receipts and events
    std::deque<LogRecord> m_texts;
    std::size_t m_textBytes = 0;
    Nanos m_newest = 0;
    Nanos m_lastThinStep = kNoTime, m_lastThinMemory = kNoTime;
};

} // namespace kvscope::metrics

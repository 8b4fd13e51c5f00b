// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace kvscope::bench {

namespace {

double milliseconds(Nanos nanos) {
    return static_cast<double>(nanos) / 1e6;
}

std::vector<KindFigures> byKind(const std::vector<RequestRecord>& records) {
    std::map<std::pair<RequestKind, std::int32_t>, KindFigures> kinds;
    std::map<std::pair<RequestKind, std::int32_t>, std::vector<double>> first;
    for (const RequestRecord& record : records) {
        if (record.status != RequestStatus::Ok)
            continue;
        const auto key = std::pair(record.kind, record.turn);
        KindFigures& figures = kinds[key];
        figures.kind = record.kind;
        figures.turn = record.turn;
        ++figures.requests;
        figures.promptTokens += record.promptTokens;
        figures.reusedTokens += record.reusedTokens;
        figures.computedTokens += record.computedTokens;
        first[key].push_back(milliseconds(record.firstToken()));
    }
    std::vector<KindFigures> out;
    for (auto& [key, figures] : kinds) {
        figures.ttftP50Ms = median(first[key]);
        out.push_back(figures);
    }
    return out;
}

} // namespace

const char* requestStatusName(RequestStatus status) {
    constexpr std::array kNames{"ok", "failed", "empty", "cut"};
    return kNames[static_cast<std::size_t>(status)];
}

std::vector<Nanos> RequestRecord::gaps() const {
    std::vector<Nanos> out;
    for (std::size_t i = 1; i < tokenTimes.size(); ++i)
        out.push_back(tokenTimes[i] - tokenTimes[i - 1]);
    return out;
}

double percentile(std::vector<double> values, double share) {
    if (values.empty())
        return 0;
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), at, values.end());
    if (below + 1 == values.size())
        return *at;
    const double next = *std::min_element(at + 1, values.end());
    return *at + (place - static_cast<double>(below)) * (next - *at);
}

double median(std::vector<double> values) {
    return percentile(std::move(values), 0.5);
}

void PoolMeter::add(const PoolState& state, Nanos duration) {
    const double time = static_cast<double>(duration);
    m_time += time;
    m_held += time * state.held;
    m_bytes += time * static_cast<double>(state.allocatedBytes);
    m_allocated += time * static_cast<double>(state.allocatedSlots);
    m_used += time * static_cast<double>(state.usedSlots);
    m_wasted += time * static_cast<double>(state.wastedSlots);
    if (state.externalFragmentation >= 0) {
        m_fragmentation += time * state.externalFragmentation;
        m_fragmentationTime += time;
    }
    m_peakHeld = std::max(m_peakHeld, state.held);
    m_peakBytes = std::max(m_peakBytes, state.allocatedBytes);
}

Row summarize(const std::vector<RequestRecord>& records, const PoolMeter& pool, const RunCounters& counters,
              double seconds) {
    Row row;
    std::vector<double> first, gaps;
    std::size_t tokens = 0;
    for (const RequestRecord& record : records) {
        if (record.status != RequestStatus::Ok)
            continue;
        ++row.finished;
        tokens += record.tokenTimes.size();
        first.push_back(milliseconds(record.firstToken()));
        for (const Nanos gap : record.gaps())
            gaps.push_back(milliseconds(gap));
    }
    row.planned = static_cast<std::int32_t>(records.size());
    row.seconds = seconds;
    row.throughput = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
    row.ttftP50Ms = percentile(first, 0.5);
    row.ttftP95Ms = percentile(std::move(first), 0.95);
    row.itlP50Ms = percentile(gaps, 0.5);
    row.itlP95Ms = percentile(std::move(gaps), 0.95);
    row.kvPeakBytes = static_cast<double>(pool.peakBytes());
    row.kvMeanBytes = pool.meanBytes();
    row.heldMean = pool.meanHeld();
    row.heldPeak = pool.peakHeld();
    row.waste = pool.waste();
    row.internalFragmentation = pool.internalFragmentation();
    row.externalFragmentation = pool.externalFragmentation();
    row.hitRate = counters.promptTokens == 0
                      ? 0
                      : static_cast<double>(counters.reusedTokens) / static_cast<double>(counters.promptTokens);
    row.counters = counters;
    row.kinds = byKind(records);
    return row;
}

} // namespace kvscope::bench

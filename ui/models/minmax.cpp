// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/minmax.h"

#include <algorithm>

namespace kvscope::ui {

CurveBuckets::CurveBuckets(Nanos width, std::size_t count)
    : m_width(std::max<Nanos>(width, 1))
    , m_buckets(std::max<std::size_t>(count, 1)) {}

std::int64_t CurveBuckets::indexOf(Nanos time) const {
    return time >= 0 ? time / m_width : -((-time + m_width - 1) / m_width);
}

const CurveBucket* CurveBuckets::bucket(std::int64_t index) const {
    if (index < 0)
        return nullptr;
    const CurveBucket& slot = m_buckets[std::size_t(index) % m_buckets.size()];
    return slot.index == index && slot.samples > 0 ? &slot : nullptr;
}

const CurveBucket* CurveBuckets::bucketAtOrBefore(std::int64_t index, std::int64_t reach) const {
    for (std::int64_t i = index; i >= 0 && i > index - reach; --i)
        if (const CurveBucket* found = bucket(i))
            return found;
    return nullptr;
}

void CurveBuckets::consume(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory,
                           Nanos from) {
    consumeUntil(samples, memory, from, std::numeric_limits<Nanos>::max());
}

void CurveBuckets::consumeUntil(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory,
                                Nanos from, Nanos until) {
    if (!m_started) {
        m_started = true;
        m_next = samples.firstAt(from);
        m_nextMemory = memory.firstAt(from);
        if (m_next > samples.begin()) { // rates of the first bucket count from the sample before it
            m_previous = samples.at(m_next - 1);
            m_hasPrevious = true;
        }
    }
    m_next = std::max(m_next, samples.begin());
    m_nextMemory = std::max(m_nextMemory, memory.begin());
    for (; m_next < samples.end() && samples.at(m_next).time < until; ++m_next) {
        const CurveSample& sample = samples.at(m_next);
        while (m_nextMemory < memory.end() && memory.at(m_nextMemory).time <= sample.time)
            ++m_nextMemory;
        const bool read = m_nextMemory > memory.begin();
        add(sample, read ? &memory.at(m_nextMemory - 1) : nullptr);
    }
}

void CurveBuckets::add(const CurveSample& sample, const metrics::MemorySample* memory) {
    const std::int64_t index = indexOf(sample.time);
    if (index < 0)
        return;
    CurveBucket& b = m_buckets[std::size_t(index) % m_buckets.size()];
    if (b.index != index) {
        b = CurveBucket();
        b.index = index;
    }
    ++b.samples;
    b.last = sample;
    if ((sample.presence & metrics::kHasPrefix) && sample.hitRate >= 0)
        b.hitRate.add(sample.hitRate);
    if (b.hasBlocks() && sample.fragmentation >= 0)
        b.fragmentation.add(sample.fragmentation);
    if (memory)
        b.host = *memory;
    if (m_hasPrevious) {
        b.evictions += sample.evictions - m_previous.evictions;
        b.preemptions += sample.preemptions - m_previous.preemptions;
    }
    if (m_hasPrevious && (sample.presence & metrics::kHasTokens)) {
        const auto written = double(sample.decodeTokens - m_previous.decodeTokens);
        const auto read = double(sample.prefillTokens - m_previous.prefillTokens);
        // Time inside steps where it is known: a pause between two answers is not slow writing.
        const Nanos busy = (sample.presence & metrics::kHasPhases) ? sample.stepTime - m_previous.stepTime
                                                                   : sample.time - m_previous.time;
        if (written > 0) {
            b.writtenTokens += written;
            b.writingSeconds += double(busy) * 1e-9;
        }
        if (read > 0) {
            b.readTokens += read;
            b.readingSeconds += double(busy) * 1e-9;
        }
    }
    m_previous = sample;
    m_hasPrevious = true;
}

} // namespace kvscope::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/metrics/step_sample.h"

namespace kvscope::ui {

/// The newest `capacity` values in order of arrival, in memory taken once. Every value has a number that it keeps while
/// it is there, so that a reader can go on where it stopped.
template <class T> class History {
public:
    explicit History(std::size_t capacity) : m_values(capacity) {}

    void push(const T& value) {
        m_values[std::size_t(m_end % m_values.size())] = value;
        ++m_end;
    }
    void clear() { m_begin = m_end; }
    bool empty() const { return begin() == m_end; }
    std::uint64_t begin() const { // number of the oldest value still there
        const std::uint64_t kept = m_end > m_values.size() ? m_end - m_values.size() : 0;
        return std::max(m_begin, kept);
    }
    std::uint64_t end() const { return m_end; }
    std::size_t size() const { return std::size_t(m_end - begin()); }
    std::size_t capacity() const { return m_values.size(); }
    const T& at(std::uint64_t number) const { return m_values[std::size_t(number % m_values.size())]; }
    const T& back() const { return at(m_end - 1); }

    /// The first value whose `time` is not before `time`; end() if there is none. Times never go back.
    std::uint64_t firstAt(Nanos time) const {
        std::uint64_t low = begin(), high = m_end;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            if (at(middle).time < time)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

private:
    std::vector<T> m_values;
    std::uint64_t m_begin = 0, m_end = 0;
};

/// What the curves keep of a StepSample: 120 bytes instead of more than 400, so that ten minutes at 200 steps a second
/// stay below 16 MB.
struct CurveSample {
    Nanos time = 0;
    std::uint32_t presence = 0; ///< metrics::Presence
    std::array<std::uint32_t, kv::kBlockStateCount> blocks{};
    float hitRate = -1, fragmentation = -1; ///< negative = a gap
    std::uint32_t bytesPerBlock = 0;
    std::uint64_t prefillTokens = 0, decodeTokens = 0; ///< cumulative
    Nanos stepTime = 0;                                ///< cumulative
    std::uint32_t evictions = 0, preemptions = 0;      ///< cumulative, modulo 2^32
    std::uint64_t weightsBytes = 0, activationsBytes = 0;
    /// KV beside the pool's blocks (window group, tails), and the host tier.
    std::uint32_t besideUsedKiB = 0, besideCachedKiB = 0, besideEmptyKiB = 0, hostTierKiB = 0;

    static CurveSample from(const metrics::StepSample& sample);
};
static_assert(sizeof(CurveSample) <= 120);

/// Ten minutes at 200 steps a second, and of memory at ten readings a second.
inline constexpr std::size_t kSampleCapacity = 1u << 17;
inline constexpr std::size_t kMemoryCapacity = 1u << 13;

} // namespace kvscope::ui

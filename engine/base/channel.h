// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "engine/base/spsc_ring.h"

namespace kvscope {

/// Lossless channel from one producer thread to one consumer thread. The producer never waits: what does not fit into
/// the ring spills into a list that only the producer touches and that `flush()` moves on, in order.
template <class T> class EventChannel {
public:
    explicit EventChannel(std::size_t capacity = 1024) : m_ring(capacity) {}
    /// Producer.
    void push(T value) {
        flush();
        if (!m_spill.empty() || !m_ring.tryPush(std::move(value)))
            m_spill.push_back(std::move(value));
    }
    /// Producer: move spilled values on. Call it regularly; returns true when nothing is left behind.
    bool flush() {
        while (!m_spill.empty() && m_ring.tryPush(std::move(m_spill.front())))
            m_spill.pop_front();
        return m_spill.empty();
    }
    /// Consumer.
    std::optional<T> pop() {
        T value;
        if (m_ring.tryPop(value))
            return value;
        return std::nullopt;
    }

private:
    SpscRing<T> m_ring;
    std::deque<T> m_spill;
};

/// Ring for samples: when the consumer is too slow the newest sample is dropped and counted (samples are cumulative,
/// so a lost one costs resolution, never totals).
template <class T> class SampleRing {
public:
    explicit SampleRing(std::size_t capacity = 4096) : m_ring(capacity) {}
    /// Producer: false when it was dropped.
    bool push(const T& value) { return m_ring.tryPush(value); }
    /// Consumer.
    bool pop(T& value) { return m_ring.tryPop(value); }

private:
    SpscRing<T> m_ring;
};

} // namespace kvscope

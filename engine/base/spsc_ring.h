// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace kvscope {

/// Bounded queue from one producer thread to one consumer thread. Nobody ever waits.
///
/// Why not the packaged readerwriterqueue: it orders with standalone fences, which ThreadSanitizer cannot follow, so
/// every engine test would need suppressions. This one orders with acquire/release on the two counters only.
template <class T> class SpscRing {
public:
    /// Room for at least `capacity` values (rounded up to a power of two).
    explicit SpscRing(std::size_t capacity) : m_slots(std::bit_ceil(capacity < 2 ? 2 : capacity)) {}

    /// Producer: false when full; `value` is moved from only on success.
    template <class U> bool tryPush(U&& value) {
        const std::size_t tail = m_tail.load(std::memory_order_relaxed);
        if (tail - m_head.load(std::memory_order_acquire) == m_slots.size())
            return false;
        m_slots[tail & (m_slots.size() - 1)] = std::forward<U>(value);
        m_tail.store(tail + 1, std::memory_order_release);
        return true;
    }
    /// Consumer: false when empty. The slot is left empty, so that a large value's memory is given back at once.
    bool tryPop(T& value) {
        const std::size_t head = m_head.load(std::memory_order_relaxed);
        if (head == m_tail.load(std::memory_order_acquire))
            return false;
        T& slot = m_slots[head & (m_slots.size() - 1)];
        value = std::move(slot);
        slot = T{};
        m_head.store(head + 1, std::memory_order_release);
        return true;
    }

private:
    std::vector<T> m_slots;
    alignas(64) std::atomic<std::size_t> m_head{0};
    alignas(64) std::atomic<std::size_t> m_tail{0};
};

} // namespace kvscope

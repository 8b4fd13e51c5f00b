// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace kvscope {

/// Latest-wins hand-over of a large value from one writer thread to one reader thread without locks or waiting.
/// Three slots: one the writer fills, one the reader reads, one in between; publishing and taking swap with the middle.
/// (A seqlock would be smaller, but is a data race to ThreadSanitizer and to the standard.)
template <class T> class TripleBuffer {
public:
    /// Writer thread: the slot to fill. Its old content is whatever an earlier publish left (reuse its capacity).
    T& writeSlot() { return m_slots[m_write]; }
    /// Writer thread: make the slot visible.
    void publish() { m_write = m_middle.exchange(m_write | kFresh, std::memory_order_acq_rel) & kIndex; }
    /// Reader thread: take the newest value if there is one; false keeps the current one.
    bool take() {
        if (!(m_middle.load(std::memory_order_relaxed) & kFresh))
            return false;
        m_read = m_middle.exchange(m_read, std::memory_order_acq_rel) & kIndex;
        return true;
    }
    /// Reader thread: the value taken last.
    const T& readSlot() const { return m_slots[m_read]; }

private:
    static constexpr std::uint32_t kFresh = 4;
    static constexpr std::uint32_t kIndex = 3;
    std::array<T, 3> m_slots{};
    std::uint32_t m_write = 0;
    std::atomic<std::uint32_t> m_middle{1};
    std::uint32_t m_read = 2;
};

} // namespace kvscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace kvscope::kernels {

/// A fixed team of threads that runs one body at a time, the caller being thread 0.
///
/// Inside a body the threads meet at `barrier()`; waiting spins for about 50 microseconds (a step has some 150
/// barriers, a system call at each would cost more than the work), then parks. Between runs workers park:
/// an idle team uses no processor time. A team of one has no worker threads and its barriers cost nothing.
class KernelTeam {
public:
    explicit KernelTeam(int threads);
    KernelTeam(const KernelTeam&) = delete;
    KernelTeam& operator=(const KernelTeam&) = delete;
    ~KernelTeam();

    int size() const { return m_size; }

    /// Runs body(thread) on every thread and returns when all have finished. The body must not throw.
    void run(const std::function<void(int)>& body);

    /// Inside a body, by every thread: returns when all have arrived. Also starts a new round of chunk claiming.
    void barrier();

    /// Inside a body, by every thread, at most once between two barriers: calls fn(chunk) for chunks 0..count-1, each
    /// exactly once over the team. Three quarters are split statically into contiguous ranges (caches and prefetchers
    /// like that); the last quarter goes to whoever is free, so that a disturbed core costs less. Which thread computes
    /// a chunk must not change its result.
    template <class Fn> void forChunks(int thread, std::int64_t count, Fn&& fn) {
        if (m_size == 1) {
            for (std::int64_t i = 0; i < count; ++i)
                fn(i);
            return;
        }
        const std::int64_t share = count * 3 / 4 / m_size;
        for (std::int64_t i = share * thread; i < share * (thread + 1); ++i)
            fn(i);
        const std::int64_t first = share * m_size;
        for (;;) {
            const std::int64_t i = first + m_claimed.fetch_add(1, std::memory_order_relaxed);
            if (i >= count)
                return;
            fn(i);
        }
    }

private:
    void work(int thread);
    void waitWhile(std::atomic<std::int32_t>& value, std::int32_t old);
    void advance(std::atomic<std::int32_t>& value);

    const int m_size;
    const std::function<void(int)>* m_body = nullptr; ///< published by m_epoch
    bool m_stop = false;                              ///< published by m_epoch
    // Each of these is hammered by another thread: own cache lines.
    alignas(64) std::atomic<std::int32_t> m_epoch{0}; ///< one more for each run
    alignas(64) std::atomic<std::int32_t> m_generation{0};
    alignas(64) std::atomic<std::int32_t> m_arrived{0};
    alignas(64) std::atomic<std::int64_t> m_claimed{0};
    alignas(64) std::atomic<std::int32_t> m_parked{0};
    std::vector<std::thread> m_workers;
};

} // namespace kvscope::kernels

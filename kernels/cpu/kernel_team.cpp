// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/kernel_team.h"

#include <chrono>

#include <pthread.h>

namespace kvscope::kernels {

namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerClockRead = 64;

inline void pauseCpu() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace

KernelTeam::KernelTeam(int threads) : m_size(std::max(1, threads)) {
    m_workers.reserve(static_cast<std::size_t>(m_size - 1));
    for (int i = 1; i < m_size; ++i)
        m_workers.emplace_back([this, i] { work(i); });
}

KernelTeam::~KernelTeam() {
    m_stop = true;
    advance(m_epoch);
    for (std::thread& worker : m_workers)
        worker.join();
}

void KernelTeam::run(const std::function<void(int)>& body) {
    if (m_size == 1) {
        body(0);
        return;
    }
    m_body = &body;
    advance(m_epoch);
    body(0);
    barrier();
}

void KernelTeam::work(int thread) {
    pthread_setname_np(pthread_self(), "kv-team"); // for `top -H`, debuggers and profilers
    std::int32_t seen = 0;
    for (;;) {
        waitWhile(m_epoch, seen);
        ++seen;
        if (m_stop)
            return;
        (*m_body)(thread);
        barrier();
    }
}

void KernelTeam::barrier() {
    if (m_size == 1)
        return;
    const std::int32_t generation = m_generation.load(std::memory_order_relaxed);
    if (m_arrived.fetch_add(1, std::memory_order_acq_rel) == m_size - 1) {
        m_arrived.store(0, std::memory_order_relaxed);
        m_claimed.store(0, std::memory_order_relaxed);
        advance(m_generation);
    } else {
        waitWhile(m_generation, generation);
    }
}

// Parking is a pair of "store mine, then look at yours": the waiter counts itself and looks at the value, the other
// side changes the value and looks at the count. Both are sequentially consistent, so one of them sees the other.

void KernelTeam::waitWhile(std::atomic<std::int32_t>& value, std::int32_t old) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
        for (int i = 0; i < kPausesPerClockRead; ++i) {
            if (value.load(std::memory_order_acquire) != old)
                return;
            pauseCpu();
        }
    } while (std::chrono::steady_clock::now() < until);
    // On a busy machine the sibling that everybody waits for may need this very core.
    m_parked.fetch_add(1);
    while (value.load() == old)
        value.wait(old);
    m_parked.fetch_sub(1);
}

void KernelTeam::advance(std::atomic<std::int32_t>& value) {
    value.fetch_add(1);
    if (m_parked.load() != 0)
        value.notify_all();
}

} // namespace kvscope::kernels

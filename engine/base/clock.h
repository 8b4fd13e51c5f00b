// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>

namespace kvscope {

/// Monotonic nanoseconds since an arbitrary origin (CLOCK_MONOTONIC for the real clock).
using Nanos = std::int64_t;

/// Passed in wherever time matters, so that tests and virtual benchmarks own it. Thread-safe.
class Clock {
public:
    virtual ~Clock() = default;
    virtual Nanos now() const = 0;
};

class MonotonicClock final : public Clock {
public:
    Nanos now() const override {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
};

/// For tests: stands still until told.
class ManualClock final : public Clock {
public:
    Nanos now() const override { return m_now; }
    void advance(Nanos by) { m_now += by; }

private:
    Nanos m_now = 0;
};

} // namespace kvscope

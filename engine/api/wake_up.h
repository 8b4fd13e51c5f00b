// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>

namespace kvscope::api {

/// A bell between threads: `ring` never waits and takes no lock, so the window's thread may always call it.
/// Rings while nobody sleeps are remembered, and several count as one.
class WakeUp {
public:
    WakeUp();
    ~WakeUp();
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    void ring();
    /// Sleeps until the bell rings or the time is over.
    void sleepFor(std::chrono::milliseconds longest);

private:
    int m_descriptor;
};

} // namespace kvscope::api

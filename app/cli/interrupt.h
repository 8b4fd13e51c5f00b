// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>

namespace kvscope::cli {

/// While it lives, the first SIGINT or SIGTERM only asks for the end, so that answers and counters of the run are still
/// given out; a second one ends the program at once. Also where they were ignored before, as SIGINT is in the
/// background jobs of a script: who sends one means it. Thread: made and ended by one thread, at most one at a time.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    bool asked() const { return flag()->load(std::memory_order_relaxed); }
    /// For loops that take a flag.
    static const std::atomic<bool>* flag();
    /// Ends the program as the signal would have done, so that shells and scripts see it. Does nothing unless asked.
    void passOn() const;
};

} // namespace kvscope::cli

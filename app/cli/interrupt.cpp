// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"

#include <csignal>
#include <cstdio>

namespace kvscope::cli {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// What a signal handler may touch: it has no other way to its owner.
std::atomic<bool> askedFor{false};
std::atomic<int> caught{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note(int signal) {
    caught.store(signal, std::memory_order_relaxed);
    askedFor.store(true, std::memory_order_relaxed);
}

} // namespace

Interrupt::Interrupt() {
    askedFor = false;
    for (const int signal : kSignals) {
        struct sigaction action {};
        action.sa_handler = note;
        action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART; // the second one is not caught
        ::sigaction(signal, &action, nullptr);
    }
}

Interrupt::~Interrupt() {
    for (const int signal : kSignals) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == note)
            std::signal(signal, SIG_DFL);
    }
}

const std::atomic<bool>* Interrupt::flag() {
    return &askedFor;
}

void Interrupt::passOn() const {
    if (!asked())
        return;
    std::fflush(nullptr);
    std::signal(caught.load(), SIG_DFL);
    std::raise(caught.load());
}

} // namespace kvscope::cli

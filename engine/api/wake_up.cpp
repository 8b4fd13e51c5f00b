// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/wake_up.h"

#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/check.h"

namespace kvscope::api {

// An eventfd and not a condition variable: the latter needs a mutex that both threads lock, and the standard atomics
// cannot wait with a timeout.
WakeUp::WakeUp() : m_descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    KV_CHECK(m_descriptor >= 0, "The system refused an eventfd");
}

WakeUp::~WakeUp() {
    ::close(m_descriptor);
}

void WakeUp::ring() {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the bell is ringing anyway.
    [[maybe_unused]] const auto written = ::write(m_descriptor, &one, sizeof one);
}

void WakeUp::sleepFor(std::chrono::milliseconds longest) {
    pollfd waiting{m_descriptor, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(longest.count())) > 0) {
        std::uint64_t rings = 0;
        [[maybe_unused]] const auto taken = ::read(m_descriptor, &rings, sizeof rings);
    }
}

} // namespace kvscope::api

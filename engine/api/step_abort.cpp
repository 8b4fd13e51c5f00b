// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/step_abort.h"

#include <thread>

namespace kvscope::api {

// All orders are sequentially consistent on purpose: attach/abortNow and beginStep/cancel are each a pair of "store
// mine, then look at yours", which weaker orders do not guarantee. None of this is hot.

void StepAbort::attach(kernels::Backend* backend) {
    m_backend.store(backend);
    while (m_inBackend.load())
        std::this_thread::yield();
}

bool StepAbort::beginStep(std::span<const RequestId> members) {
    m_count.store(0);
    if (members.size() <= kMostMembers) {
        for (std::size_t i = 0; i < members.size(); ++i)
            m_members[i].store(members[i].value());
        m_count.store(members.size());
    }
    return m_announced.load() == m_handled;
}

void StepAbort::cancel(RequestId id) {
    m_announced.fetch_add(1);
    const std::size_t count = m_count.load();
    bool struck = false;
    bool anybodyLeft = false;
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t expected = id.value();
        if (m_members[i].compare_exchange_strong(expected, kStruckOut))
            struck = true;
        else
            anybodyLeft |= expected != kStruckOut;
    }
    if (struck && !anybodyLeft)
        abortNow();
}

void StepAbort::abortNow() {
    m_inBackend.store(true);
    if (kernels::Backend* backend = m_backend.load())
        backend->requestAbort();
    m_inBackend.store(false);
}

} // namespace kvscope::api

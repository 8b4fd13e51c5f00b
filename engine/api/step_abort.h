// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/ids.h"
#include "kernels/backend.h"

namespace kvscope::api {

/// Lets the thread that cancels stop a running step between two layers when nobody is left who wants its result.
///
/// The command queue stays the authority on what is cancelled; this only saves the rest of a useless step. The
/// cancelling thread strikes ids out of an array of atomics while the engine may already be filling it for the next
/// step, so an abort can hit a step that somebody does want. The engine then simply runs that step again (the same K/V
/// goes to the same slots): a spurious abort costs time, never content.
class StepAbort {
public:
    // ---- engine thread ----
    /// The backend whose steps may be aborted from now on; nullptr before it is destroyed. Returns only when the
    /// cancelling thread is not inside the backend (it stays there for one store).
    void attach(kernels::Backend* backend);
    /// The engine has taken one cancel command from its queue.
    void handledCancel() { ++m_handled; }
    /// Publishes who is in the step about to be submitted. False: a cancel is on its way that the engine has not
    /// handled yet; do not run the step, look into the command queue first.
    bool beginStep(std::span<const RequestId> members);
    void endStep() { m_count.store(0); }

    // ---- cancelling thread ----
    /// Call after the cancel command was queued. Aborts the running step if `id` was the last wanted one in it.
    void cancel(RequestId id);
    /// The whole engine is going down: abort whatever runs.
    void abortNow();

private:
    static constexpr std::size_t kMostMembers = 1024; ///< of larger steps only the first are known: no abort for them
    static constexpr std::int64_t kStruckOut = -1;

    std::atomic<kernels::Backend*> m_backend{nullptr};
    std::atomic<bool> m_inBackend{false};
    std::atomic<std::uint64_t> m_announced{0};
    std::uint64_t m_handled = 0; ///< engine thread only
    std::atomic<std::size_t> m_count{0};
    std::array<std::atomic<std::int64_t>, kMostMembers> m_members{};
};

} // namespace kvscope::api

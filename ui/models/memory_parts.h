// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ui/models/history.h"

namespace kvscope::ui {

/// The memory of the engine's device, part by part, bytes: blocks of the window group and tails are in the parts of the
/// KV pool; the host tier is taken whole when the model is loaded. On a CPU there is no driver's part; it is absent,
/// not 0.
struct MemoryParts {
    enum Part { Weights, KvInUse, KvCached, KvEmpty, HostTier, Activations, Process, Others, Free, kCount };
    std::array<std::uint64_t, kCount> bytes{};
    std::uint64_t total = 0;
    bool hasEngine = false; ///< weights, pool and activations are reported
    bool hasHost = false;   ///< process, others, free and total are reported

    std::uint64_t pool() const { return bytes[KvInUse] + bytes[KvCached] + bytes[KvEmpty]; }
    /// Everything that is neither of the model nor free: the window's "other".
    std::uint64_t other() const { return bytes[Process] + bytes[Others]; }
    std::uint64_t sum() const;
};

/// Weights, pool and activations as the engine's allocators say; process rest = its Pss less those; others = total -
/// available - process. Memory that our allocators hold but have not touched yet still counts as available to the
/// system; it is promised, so it is taken off "free". The parts sum to the total (a test holds them to 2 %, the share
/// that Pss and MemAvailable, read one after the other, may disagree by).
MemoryParts memoryParts(const CurveSample* sample, const metrics::MemorySample* host);

} // namespace kvscope::ui

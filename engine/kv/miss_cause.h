// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace kvscope::kv {

/// Why a prompt was not (wholly) served from cached blocks.
enum class MissKind : std::uint8_t {
    None,             ///< everything that could be reused was
    Disabled,         ///< prefix caching is off
    ColdStart,        ///< nothing that is still known begins like this prompt
    ShorterThanBlock, ///< something that is still here begins alike, but the common part ends inside a block
    Diverged,         ///< the prompt left its owner's previous sequence at `divergingToken`
    Evicted,          ///< it was cached, and its block was needed by somebody else
    PastWindow,       ///< what lies behind the first sinks and window is never published
    CheaperToCompute, ///< a lower tier has it, but loading it was estimated to take longer than computing it again
};

/// The cause in data; the window has the words.
struct MissCause {
    MissKind kind = MissKind::None;
    std::int64_t commonPrefix = 0;    ///< tokens in common with what it was compared with (ShorterThanBlock, Diverged)
    std::int64_t divergingToken = -1; ///< index of the first token that differs from the owner's previous sequence
    OwnerId evictedBy;                ///< Evicted: whose need took the block; invalid when too long ago to know
    Nanos evictedAt = -1;             ///< Evicted: when; -1 when too long ago to know
    Nanos evictedAge = -1;            ///< Evicted: how long nobody had read it by then; -1 as above
};

} // namespace kvscope::kv

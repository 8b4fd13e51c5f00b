// SPDX-License-Identifier: GPL-3.0-or-later
//
// Block maps as a stream of changes with key frames, and back.
#pragma once

#include <optional>

#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

/// Turns whole maps into records that hold only what changed.
class BlockMapEncoder {
public:
    /// The record that leads from the map given last to this one; a key frame when there was none, when the pool's size
    /// changed or when `key` asks for it. None: nothing changed.
    std::optional<BlockRecord> encode(const BlockMapSnapshot& map, bool key = false);
    /// A key frame of the map given last, dated `time`; none before the first map.
    std::optional<BlockRecord> keyFrame(Nanos time) const;
    void reset() { *this = BlockMapEncoder(); }

private:
    BlockMapSnapshot m_last;
    bool m_started = false;
};

/// Applies `record` to `map`. False, map unchanged: a change without the map that it changes, or a run that leaves the
/// pool (a damaged log).
bool applyBlockRecord(const BlockRecord& record, BlockMapSnapshot& map);

} // namespace kvscope::metrics

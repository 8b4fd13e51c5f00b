// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the blocks of the map to the messages of a chat and back. Pure functions.
#pragma once

#include <QString>
#include <utility>
#include <vector>

#include "engine/api/sources.h"
#include "engine/metrics/block_map_snapshot.h"
#include "ui/models/conversation_list_model.h"

namespace kvscope::ui {

/// Blocks that hold tokens [first, second) of an owner's sequence, those that are still in the pool.
std::vector<BlockId> blocksOfTokens(const api::OwnerBlocksEvent& owner, std::pair<std::int64_t, std::int64_t> tokens);

/// The characters of a message that a block's text covers: [first, second), empty if it covers none. The block's text
/// may begin before the message, end behind it and hold template marks; `share` (0..1) says about where in the message
/// it begins, so that of equal passages the nearest is taken.
std::pair<int, int> charactersOfBlock(const QString& message, const QString& blockText, double share);

/// How much of an owner's sequence the pool still holds, by the states of its blocks.
Warmth warmthOf(const api::OwnerBlocksEvent& owner, const metrics::BlockMapSnapshot& map);

} // namespace kvscope::ui

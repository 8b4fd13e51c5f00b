// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/palette.h"
#include "ui/theme/theme.h"

namespace kvscope::ui {

/// The block map's colours out of the program's tokens.
BlockPalette blockPalette(const Theme& theme);

/// The tier below the pool: like the pool, from farther away.
QColor hostTierColor(const Theme& theme);

/// Sizes that panels of the cockpit share, so that rulers, bars and plots stand under each other.
inline constexpr int kGutter = 48;      ///< left of map and plots: labels end 8 px before it
inline constexpr int kRightMargin = 14; ///< of everything in a panel

} // namespace kvscope::ui

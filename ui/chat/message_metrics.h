// SPDX-License-Identifier: GPL-3.0-or-later
//
// Measures that geometry and painting of a message share.
#pragma once

namespace kvscope::ui {

inline constexpr int kLine = 24; // receipt, state
inline constexpr int kActions = 28;
inline constexpr int kDetailsPadding = 12;
inline constexpr int kFactNames = 104;

} // namespace kvscope::ui

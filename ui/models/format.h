// SPDX-License-Identifier: GPL-3.0-or-later
//
// Figures as the whole window writes them: comma for thousands in every language, U+2212 for minus, U+202F between a
// number and its unit (it does not break), KiB/MiB/GiB.
#pragma once

#include <QString>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/kv/block_state.h"

namespace kvscope::ui {

inline constexpr QChar kNarrowSpace(0x202F);
inline constexpr QChar kMinus(0x2212);
inline constexpr QChar kEnDash(0x2013);

QString formatNumber(std::int64_t value);                 ///< 65,536; −3
QString formatDecimal(double value, int decimals);        ///< 1,234.5
QString formatBytes(std::uint64_t bytes);                 ///< 512 B, 4.2 KiB, 92 MiB, 1.41 GiB, 62.8 GiB
QString formatGib(std::uint64_t bytes);                   ///< the bare figure in GiB with two decimals: 0.21
QString formatPercent(double fraction, int decimals = 0); ///< 0.364 -> 36 %
QString formatSeconds(double seconds);                    ///< 0.10 s, 2.3 s, 41 s, 3 min 05 s
QString formatMilliseconds(double milliseconds);          ///< 8.4 ms, 21 ms; from one second as formatSeconds
QString formatRate(double tokensPerSecond);               ///< 48.7 tok/s, 655 tok/s
/// How long ago: "0.02 s ago", "4 min ago", "2 h ago".
QString formatAgo(Nanos elapsed);
/// A place on a time axis: 09:52, 1:02:10.
QString formatClock(double seconds);
/// An axis tick in at most four signs: 0, 12, 2.4K, 64K, 1M.
QString formatTick(double value);
/// The window's word for a drawn state ("moving" for a block in transfer).
QString stateWord(kv::BlockState state);

} // namespace kvscope::ui

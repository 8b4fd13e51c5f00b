// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <string>

namespace kvscope::cli {

/// One line on standard error that is written over, at most ten times a second. Nothing where standard error is no
/// terminal. Its end clears the line.
class ProgressBar {
public:
    ProgressBar();
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    /// `share` of the whole, 0 to 1; `what` runs now.
    void show(double share, const std::string& what);

private:
    using SteadyClock = std::chrono::steady_clock;
    bool m_shown;
    bool m_dirty = false;
    SteadyClock::time_point m_start = SteadyClock::now();
    SteadyClock::time_point m_last{};
};

/// "[#####-----] 50 %  paged at 8, 12 of 24  0:31 left"; without a guess of what is left where `share` is too small.
std::string progressLine(double share, const std::string& what, double secondsSoFar);

/// "0:05", "12:40", "3:02:10".
std::string durationText(double seconds);

} // namespace kvscope::cli

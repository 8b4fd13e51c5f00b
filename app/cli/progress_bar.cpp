// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress_bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <unistd.h>

namespace kvscope::cli {

namespace {

constexpr int kWidth = 24;
constexpr double kSmallestShare = 0.01; ///< below it a guess of what is left would jump about
constexpr auto kInterval = std::chrono::milliseconds(100);

} // namespace

std::string durationText(double seconds) {
    const auto whole = static_cast<long>(std::lround(std::max(0.0, seconds)));
    std::array<char, 48> text{};
    if (whole >= 3600)
        std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        std::snprintf(text.data(), text.size(), "%ld:%02ld", whole / 60, whole % 60);
    return text.data();
}

std::string progressLine(double share, const std::string& what, double secondsSoFar) {
    share = std::clamp(share, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(share * kWidth);
    std::string line = "[" + std::string(full, '#') + std::string(kWidth - full, '-') + "] " +
                       std::to_string(static_cast<int>(share * 100)) + " %  " + what;
    if (share >= kSmallestShare)
        line += "  " + durationText(secondsSoFar * (1 - share) / share) + " left";
    return line;
}

ProgressBar::ProgressBar() : m_shown(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (m_dirty)
        std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double share, const std::string& what) {
    const auto now = SteadyClock::now();
    if (!m_shown || now - m_last < kInterval)
        return;
    m_last = now;
    m_dirty = true;
    const std::string line = progressLine(share, what, std::chrono::duration<double>(now - m_start).count());
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    std::fflush(stderr);
}

} // namespace kvscope::cli

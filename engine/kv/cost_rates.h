// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace kvscope::kv {

/// What computing and moving cost here, in nanoseconds; told from outside, so that every estimate is a pure function of
/// what was told and a recorded run decides again as it did.
struct CostRates {
    double nanosPerToken = 0;            ///< to read a token at position 0, in company; 0 = not known yet
    double nanosPerTokenAndPosition = 0; ///< more for each position before it: attention
    double nanosPerByteStored = 0;       ///< device to host
    double nanosPerByteLoaded = 0;       ///< host to device

    bool known() const { return nanosPerToken > 0; }
    /// Reading the tokens at positions [from, to).
    double toRead(std::int64_t from, std::int64_t to) const {
        const auto a = static_cast<double>(from), b = static_cast<double>(to);
        return nanosPerToken * (b - a) + nanosPerTokenAndPosition * (b * (b - 1) - a * (a - 1)) / 2;
    }
    bool operator==(const CostRates&) const = default;
};

} // namespace kvscope::kv

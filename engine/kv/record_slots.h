// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace kvscope::kv {

/// Index of a record for a new handle: one that was given back, as it was left, or a new one. Records stay where they
/// are and keep their memory, so that a handle allocates nothing as a rule.
template <class Record> std::int32_t takeRecord(std::deque<Record>& records, std::vector<std::int32_t>& free) {
    if (free.empty()) {
        records.emplace_back();
        return static_cast<std::int32_t>(records.size()) - 1;
    }
    const std::int32_t index = free.back();
    free.pop_back();
    return index;
}

} // namespace kvscope::kv

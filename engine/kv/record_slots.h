// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
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

/// What a move-only handle holds: a record of its keeper, which is given back once. `Handle` says how, by a static
/// `giveBack(Keeper&, record)` that does not throw.
template <class Keeper, class Handle> class RecordOwner {
public:
    RecordOwner() = default;
    RecordOwner(Keeper* keeper, std::int32_t record) : m_keeper(keeper), m_record(record) {}
    RecordOwner(RecordOwner&& other) noexcept
        : m_keeper(std::exchange(other.m_keeper, nullptr))
        , m_record(std::exchange(other.m_record, -1)) {}
    RecordOwner& operator=(RecordOwner&& other) noexcept {
        if (this != &other) {
            release();
            m_keeper = std::exchange(other.m_keeper, nullptr);
            m_record = std::exchange(other.m_record, -1);
        }
        return *this;
    }
    RecordOwner(const RecordOwner&) = delete;
    RecordOwner& operator=(const RecordOwner&) = delete;
    ~RecordOwner() { release(); }

    void release() noexcept {
        if (m_keeper != nullptr)
            Handle::giveBack(*std::exchange(m_keeper, nullptr), std::exchange(m_record, -1));
    }
    Keeper* keeper() const { return m_keeper; } ///< nullptr = it holds nothing
    std::size_t record() const { return static_cast<std::size_t>(m_record); }

private:
    Keeper* m_keeper = nullptr;
    std::int32_t m_record = -1;
};

} // namespace kvscope::kv

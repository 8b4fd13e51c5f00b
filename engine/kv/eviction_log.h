// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/block_key.h"

namespace kvscope::kv {

/// What a cached block's room was needed for.
enum class EvictionReason : std::uint8_t {
    Admission, ///< a request was admitted
    Growth,    ///< a running sequence needed its next block
    Copy,      ///< a copy of a shared tail
    Replaced,  ///< its key was needed for other content (a collision, or its parent was recomputed)
};
inline constexpr std::size_t kEvictionReasonCount = 4;
const char* evictionReasonName(EvictionReason reason); ///< "admission", "growth", "copy", "replaced"

struct Eviction {
    BlockKey key;
    OwnerId owner; ///< who had used the block last
    OwnerId by;    ///< who needed its room
    Nanos time = 0;
    Nanos age = 0;                  ///< since it was read last
    std::int32_t firstPosition = 0; ///< of its first slot in the sequence that filled it
    std::uint32_t uses = 0;         ///< sequences that had taken it
    BlockId block;
    EvictionReason reason = EvictionReason::Admission;
};

/// Hears of evictions. Thread: that of the cache; must not call it back.
class CacheObserver {
public:
    virtual ~CacheObserver() = default;
    virtual void evicted(const Eviction& eviction) = 0;
};

/// Remembers the keys evicted last, so that a miss can be explained ("evicted by ..."). Bounded; the oldest is
/// forgotten.
class EvictionLog {
public:
    explicit EvictionLog(std::int32_t capacity);

    void record(const Eviction& eviction);
    /// A hint: an eviction of `key` comes soon.
    void prefetch(const BlockKey& key) const { __builtin_prefetch(&m_newest[home(key)]); }
    /// The newest eviction of this key; null when there is none or it was too long ago. Valid until the next record.
    const Eviction* find(const BlockKey& key) const;

private:
    static constexpr std::int32_t kNone = -1;
    std::size_t home(const BlockKey& key) const { return key.low & (m_newest.size() - 1); }

    std::vector<Eviction> m_ring;
    std::int32_t m_count = 0; ///< entries in use
    std::int32_t m_next = 0;
    // Entries whose keys share a home are chained, the newest first. The oldest of all is the last of its chain.
    std::vector<std::int32_t> m_newest; ///< by home
    std::vector<std::int32_t> m_older;  ///< by place in the ring
};

} // namespace kvscope::kv

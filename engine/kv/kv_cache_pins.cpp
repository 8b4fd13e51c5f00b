// SPDX-License-Identifier: GPL-3.0-or-later
//
// Pins: blocks that are never evicted as long as a handle lives.
#include <algorithm>

#include "engine/kv/kv_cache.h"
#include "engine/kv/record_slots.h"

namespace kvscope::kv {

std::span<const BlockId> PinnedBlocks::blocks() const {
    return m_own.keeper() ? std::span<const BlockId>(m_own.keeper()->m_pins[m_own.record()].blocks)
                          : std::span<const BlockId>();
}
void PinnedBlocks::giveBack(KvCache& cache, std::int32_t record) noexcept {
    cache.releasePins(record);
}

PinnedBlocks KvCache::pin(const BlockTable& handle, std::int32_t blocks) {
    rethrowBroken();
    const std::size_t leading = record(handle).passedEnd > 0 ? record(handle).passedFrom : handle.blocks().size();
    const auto pinned = handle.blocks().first(contiguous() ? 0 : std::min(static_cast<std::size_t>(blocks), leading));
    const std::int32_t index = takeRecord(m_pins, m_freePins);
    PinRecord& pins = m_pins[static_cast<std::size_t>(index)];
    pins.blocks.assign(pinned.begin(), pinned.end());
    pins.live = true;
    for (const BlockId block : pins.blocks)
        m_pool.addPin(block);
    return {this, index};
}

void KvCache::releasePins(std::int32_t index) noexcept {
    if (m_abandoned)
        return;
    try {
        PinRecord& pins = m_pins[static_cast<std::size_t>(index)];
        for (auto block = pins.blocks.rbegin(); block != pins.blocks.rend(); ++block)
            dropPin(*block);
        pins.blocks.clear();
        pins.live = false;
        m_freePins.push_back(index);
    } catch (...) {
        m_broken = std::current_exception();
    }
}

} // namespace kvscope::kv

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory of device and host as lists of numbers, one a slot of a block, and a mover between them that looks at whom it
// is asked to move. A byte takes it a nanosecond.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/kv/kv_cache.h"

namespace kvscope::test {

class FakeHost final : public kv::BlockMover {
public:
    static constexpr std::uint64_t kGarbage = 0xbadbadbadbadbad1ULL;
    static constexpr int kTailPieces = 2;

    FakeHost(int blocks, int windowBlocks, int tails, int hostSlots, int blockSize)
        : m_size(static_cast<std::size_t>(blockSize))
        , m_pool(at(blocks) * m_size, kGarbage)
        , m_window(at(windowBlocks) * m_size, kGarbage)
        , m_tails(at(tails) * m_size, kGarbage)
        , m_host(at(hostSlots) * 2 * m_size, kGarbage) {}

    /// The sizes that go with it, in bytes of numbers.
    kv::HostConfig config(int hostSlots) {
        kv::HostConfig config;
        config.slotCount = hostSlots;
        config.blockBytes = m_size * 8;
        config.windowBytes = m_window.empty() ? 0 : m_size * 8;
        config.tailBytes = m_tails.empty() ? 0 : (config.slotBytes() + 1) * (kTailPieces - 1);
        m_tailBytes = config.tailBytes;
        config.mover = this;
        return config;
    }

    std::span<std::uint64_t> pool() { return m_pool; }
    std::span<std::uint64_t> tails() { return m_tails; }
    std::span<std::uint64_t> block(BlockId block) { return part(m_pool, block.value()); }
    std::span<std::uint64_t> windowBlock(BlockId block) { return part(m_window, block.value()); }
    std::span<std::uint64_t> tail(std::int32_t slot) { return part(m_tails, slot); }
    std::span<const std::uint64_t> hostBlock(std::int32_t slot) const {
        return std::span(m_host).subspan(at(slot) * 2 * m_size, m_size);
    }
    /// Whose blocks are looked at while they move.
    void watch(const kv::KvCache& cache) { m_cache = &cache; }

    void store(const kv::DeviceBlock& from, std::int32_t slot) override {
        const auto to = hostSlot(slot);
        if (from.block.valid())
            copy(block(from.block), to.first(m_size));
        if (from.companion.valid())
            copy(windowBlock(from.companion), to.last(m_size));
        m_times.store += static_cast<Nanos>(from.bytes(m_size * 8, m_size * 8));
    }
    void load(std::int32_t slot, const kv::DeviceBlock& to) override {
        const auto from = hostSlot(slot);
        if (to.block.valid()) {
            const kv::BlockFacts& facts = m_cache->pool().facts(to.block);
            if (!facts.inTransfer || facts.references == 0 || m_cache->pool().freeList().contains(to.block))
                throw std::runtime_error("a block is loaded that nobody keeps from being evicted");
            copy(from.first(m_size), block(to.block));
        }
        if (to.companion.valid())
            copy(from.last(m_size), windowBlock(to.companion));
        m_times.load += static_cast<Nanos>(to.bytes(m_size * 8, m_size * 8));
    }
    void storeTail(std::int32_t tailSlot, std::int32_t piece, std::int32_t slot) override {
        copy(pieceOf(tail(tailSlot), piece), hostSlot(slot).first(m_size / kTailPieces));
        m_times.store += piece == 0 ? static_cast<Nanos>(m_tailBytes) : 0;
    }
    void loadTail(std::int32_t slot, std::int32_t piece, std::int32_t tailSlot) override {
        copy(hostSlot(slot).first(m_size / kTailPieces), pieceOf(tail(tailSlot), piece));
        m_times.load += piece == 0 ? static_cast<Nanos>(m_tailBytes) : 0;
    }
    kv::MoveTimes times() const override { return m_times; }

private:
    static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
    std::span<std::uint64_t> part(std::vector<std::uint64_t>& memory, std::int32_t index) const {
        return std::span(memory).subspan(at(index) * m_size, m_size);
    }
    std::span<std::uint64_t> hostSlot(std::int32_t slot) {
        return std::span(m_host).subspan(at(slot) * 2 * m_size, 2 * m_size);
    }
    std::span<std::uint64_t> pieceOf(std::span<std::uint64_t> tail, std::int32_t piece) const {
        return tail.subspan(at(piece) * (m_size / kTailPieces), m_size / kTailPieces);
    }
    static void copy(std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
        std::copy(from.begin(), from.end(), to.begin());
    }

    std::size_t m_size;
    std::vector<std::uint64_t> m_pool, m_window, m_tails;
    std::vector<std::uint64_t> m_host; ///< (slots, 2, blockSize)
    std::uint64_t m_tailBytes = 0;
    kv::MoveTimes m_times;
    const kv::KvCache* m_cache = nullptr;
};

} // namespace kvscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A model without arithmetic: each slot holds a fingerprint of the whole history that wrote it, and "attention" at
// position p reads the fingerprints of slots 0..p through the block table. One wrong, stale or missing slot anywhere
// changes the next token, and is reported. So a scheduler can be run for thousands of steps and compared with the pure
// function of the token history that a sequence alone would follow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/sched/step_plan.h"
#include "tests/support/fake_host.h"

namespace kvscope::test {

class SimulatedModel {
public:
    /// With tails the block that a sequence fills lies in its tail slot until it is full, as quantized KV wants it.
    /// With a window a token reads the first `sinks` and the last `window` positions only, itself included. `host`: its
    /// memory of the device is the model's, and it outlives the model.
    SimulatedModel(std::int32_t numBlocks, std::int32_t blockSize, TokenId vocabulary, std::int32_t tailSlots = 0,
                   std::int64_t sinks = 0, std::int64_t window = 0, FakeHost* host = nullptr)
        : m_blockSize(blockSize)
        , m_vocabulary(vocabulary)
        , m_sinks(sinks)
        , m_window(window)
        , m_ownSlots(static_cast<std::size_t>(numBlocks) * static_cast<std::size_t>(blockSize), kGarbage)
        , m_ownTails(static_cast<std::size_t>(tailSlots) * static_cast<std::size_t>(blockSize), kGarbage)
        , m_slots(host ? host->pool() : std::span(m_ownSlots))
        , m_tails(host ? host->tails() : std::span(m_ownTails)) {}
    SimulatedModel(const SimulatedModel&) = delete; // it looks into its own memory
    SimulatedModel& operator=(const SimulatedModel&) = delete;

    /// What the model says after this history: a function of the tokens alone.
    TokenId nextToken(std::span<const TokenId> history) const {
        std::uint64_t state = kSeed;
        std::uint64_t attention = 0;
        for (std::size_t i = 0; i < history.size(); ++i) {
            state = mix(state, static_cast<std::uint64_t>(history[i]));
            if (sees(static_cast<std::int64_t>(history.size()) - 1, static_cast<std::int64_t>(i)))
                attention += mix(state, i);
        }
        return tokenOf(attention);
    }

    /// Computes a plan whole and returns the tokens drawn, one for each item that samples.
    std::vector<TokenId> run(const sched::StepPlan& plan) {
        copyBlocks(plan, plan.copies.size());
        std::vector<TokenId> drawn;
        for (const sched::StepItem& item : plan.items) {
            const std::uint64_t attention = computeItem(item);
            if (item.samples)
                drawn.push_back(tokenOf(attention));
        }
        return drawn;
    }

    /// Begins a plan and stops somewhere: some copies are made, some are not, the slots to write hold garbage.
    void runAborted(const sched::StepPlan& plan, std::size_t copiesMade) {
        copyBlocks(plan, std::min(copiesMade, plan.copies.size()));
        for (const sched::StepItem& item : plan.items)
            for (std::int64_t p = item.from; p < item.to; ++p)
                slot(item, p) = whileComputed(item, p) = kGarbage;
    }

private:
    static constexpr std::uint64_t kSeed = 0x243f6a8885a308d3ULL;
    static constexpr std::uint64_t kGarbage = FakeHost::kGarbage;

    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
        std::uint64_t x = a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return x ^ (x >> 31);
    }
    bool sees(std::int64_t position, std::int64_t at) const {
        return m_window == 0 || at < m_sinks || at > position - m_window;
    }
    TokenId tokenOf(std::uint64_t attention) const {
        return static_cast<TokenId>(mix(attention, 1) % static_cast<std::uint64_t>(m_vocabulary));
    }

    std::uint64_t& slot(const sched::StepItem& item, std::int64_t position) {
        const BlockId block = item.blocks[static_cast<std::size_t>(position / m_blockSize)];
        if (!block.valid())
            throw std::runtime_error("a position was read that the window had given back");
        return m_slots[static_cast<std::size_t>(static_cast<std::int64_t>(block.value()) * m_blockSize +
                                                position % m_blockSize)];
    }

    /// Where the slot lies while the step computes, and after it unless its block became full.
    std::uint64_t& whileComputed(const sched::StepItem& item, std::int64_t position) {
        const std::int64_t first = position / m_blockSize * m_blockSize;
        const bool full = first + m_blockSize <= item.to, begun = first < item.from;
        if (m_tails.empty() || first + m_blockSize <= item.from || (full && !begun))
            return slot(item, position);
        if (item.tailSlot < 0)
            throw std::runtime_error("a block is filled without a tail slot");
        return m_tails[static_cast<std::size_t>(item.tailSlot * m_blockSize + position % m_blockSize)];
    }

    /// All sources are read before any destination is written: a result that depends on the order of copies is wrong.
    void copyBlocks(const sched::StepPlan& plan, std::size_t count) {
        std::vector<std::uint64_t> read;
        const auto first = [&](BlockId block) { return static_cast<std::ptrdiff_t>(block.value()) * m_blockSize; };
        for (std::size_t i = 0; i < count; ++i)
            read.insert(read.end(), m_slots.begin() + first(plan.copies[i].from),
                        m_slots.begin() + first(plan.copies[i].from) + plan.copies[i].slotCount);
        auto next = read.begin();
        for (std::size_t i = 0; i < count; ++i) {
            const auto copied = plan.copies[i].slotCount;
            std::copy(next, next + copied, m_slots.begin() + first(plan.copies[i].to));
            next += copied;
        }
    }

    std::uint64_t computeItem(const sched::StepItem& item) {
        const std::int64_t size = m_blockSize;
        if (!m_tails.empty() && item.from % size != 0 && item.to % size != 0 && item.from / size != item.to / size)
            throw std::runtime_error("a step wants two half filled blocks in one tail slot");
        for (std::int64_t p = item.from; p < item.to; ++p) {
            const std::uint64_t before = p == 0 ? kSeed : whileComputed(item, p - 1);
            whileComputed(item, p) =
                mix(before, static_cast<std::uint64_t>(item.tokens[static_cast<std::size_t>(p - item.from)]));
        }
        for (std::int64_t p = item.from / size * size; p < item.to / size * size; ++p)
            slot(item, p) = whileComputed(item, p); // sealed
        std::uint64_t attention = 0;
        for (std::int64_t p = 0; p < item.to; ++p) {
            if (!sees(item.to - 1, p))
                continue;
            const std::uint64_t read = p < item.to / size * size ? slot(item, p) : whileComputed(item, p);
            if (read == kGarbage)
                throw std::runtime_error("sequence " + std::to_string(item.sequence.value()) + " read slot " +
                                         std::to_string(p) + " that nobody had written");
            attention += mix(read, static_cast<std::uint64_t>(p));
        }
        return attention;
    }

    std::int32_t m_blockSize;
    TokenId m_vocabulary;
    std::int64_t m_sinks, m_window;
    std::vector<std::uint64_t> m_ownSlots, m_ownTails;
    std::span<std::uint64_t> m_slots, m_tails;
};

} // namespace kvscope::test

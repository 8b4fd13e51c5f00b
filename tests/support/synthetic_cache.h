// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/api/sources.h"

namespace kvscope::test {

/// A CacheSource without an engine: a small simulation of chats over a pool, the same on every machine and in every
/// run. It keeps true books (states partition the pool, totals only grow), so that views and models can be held to
/// what it says.
class SyntheticCache final : public api::CacheSource {
public:
    struct Options {
        std::int32_t blocks = 4096;
        std::int32_t blockSize = 16;
        int chats = 8;
        int running = 4; ///< places
        std::uint32_t seed = 1;
        Nanos stepTime = 20'000'000;
        bool pins = false; ///< pin the first blocks of the shared beginning and show some as moving
    };
    explicit SyntheticCache(const Options& options);

    Nanos now() const { return m_now; }
    /// Runs steps of the simulation; each makes a sample, and the last one a map.
    void run(int steps);
    /// Time passes without a step: a sample every 100 ms.
    void idle(Nanos duration);
    /// All cells as they are now.
    const metrics::BlockMapSnapshot& snapshot() const { return m_map; }
    std::vector<BlockId> blocksOf(OwnerId owner) const;
    /// Where an answered `queryBlock` goes.
    std::function<void(const api::BlockDetailEvent&)> onDetail;

    api::CacheCapabilities capabilities() const override { return {true, true, true}; }
    bool nextSample(metrics::StepSample& sample) override;
    bool nextMemorySample(metrics::MemorySample& sample) override;
    std::uint64_t droppedSamples() const override { return 0; }
    const metrics::BlockMapSnapshot* takeBlockMap() override;
    const std::vector<api::SequenceRow>* takeSequences() override;
    void queryBlock(BlockId block) override;
    void queryOwner(OwnerId) override {}

private:
    struct Block {
        std::int32_t references = 0;
        std::int32_t fill = 0;
        std::int32_t owner = -1; ///< chat
        std::int32_t position = -1;
        bool sealed = false;
        std::uint64_t read = 0; ///< step of the last read, for eviction
    };
    struct Chat {
        std::vector<std::int32_t> table;
        std::int64_t tokens = 0;
        std::int64_t toRead = 0, prompt = 0, reused = 0; ///< of the turn that runs
        std::int64_t toWrite = 0;
        std::int64_t request = -1;
        bool runs = false, waits = false;
    };
    std::uint32_t random(std::uint32_t below);
    kv::BlockState stateOf(const Block& block) const;
    std::int32_t take(int chat, std::int32_t position);
    bool append(int chat, std::int64_t tokens);
    void startTurn(int chat);
    void endTurn(int chat);
    void sample();
    void buildMap();
    void buildRows();

    Options m_options;
    std::uint32_t m_state;
    Nanos m_now = 1'000'000'000;
    Nanos m_lastMemory = 0;
    std::vector<Block> m_blocks;
    std::deque<std::int32_t> m_empty;
    std::vector<Chat> m_chats;
    std::vector<std::int32_t> m_sharedPrefix;
    metrics::StepSample m_totals;
    std::deque<metrics::StepSample> m_samples;
    std::deque<metrics::MemorySample> m_memory;
    metrics::BlockMapSnapshot m_map;
    std::vector<api::SequenceRow> m_rows;
    std::deque<std::pair<std::int64_t, std::int64_t>> m_recent; ///< reused, prompt
    bool m_mapNew = false, m_rowsNew = false;
    std::int64_t m_nextRequest = 1;
};

} // namespace kvscope::test

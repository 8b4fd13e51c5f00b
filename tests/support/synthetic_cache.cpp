// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/synthetic_cache.h"

#include <algorithm>

namespace kvscope::test {
namespace {
constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kBytesPerToken = 23040;
constexpr int kSharedBlocks = 40;
constexpr std::int64_t kChunk = 128;
} // namespace

SyntheticCache::SyntheticCache(const Options& options)
    : m_options(options)
    , m_state(options.seed * 2654435761u + 1)
    , m_blocks(std::size_t(options.blocks))
    , m_chats(std::size_t(options.chats)) {
    for (std::int32_t i = 0; i < options.blocks; ++i)
        m_empty.push_back(i);
    m_totals.presence = metrics::kHasBlocks | metrics::kHasPrefix | metrics::kHasTokens | metrics::kHasRequests |
                        metrics::kHasEngineMemory | metrics::kHasPhases;
    m_map.blockSize = options.blockSize;
    m_map.cells.resize(std::size_t(options.blocks));
    for (int i = 0; i < options.chats; ++i)
        m_map.owners.push_back(OwnerId(100 + i));
    buildMap();
}

std::uint32_t SyntheticCache::random(std::uint32_t below) {
    m_state = m_state * 1664525u + 1013904223u;
    return (m_state >> 9) % below;
}

kv::BlockState SyntheticCache::stateOf(const Block& block) const {
    const auto index = std::int32_t(&block - m_blocks.data());
    if (block.references == 0)
        return block.sealed ? kv::BlockState::Cached : kv::BlockState::Empty;
    if (!block.sealed)
        return kv::BlockState::Filling;
    const auto place = std::find(m_sharedPrefix.begin(), m_sharedPrefix.end(), index);
    if (m_options.pins && place != m_sharedPrefix.end())
        return place - m_sharedPrefix.begin() < kSharedBlocks / 2 ? kv::BlockState::Pinned : kv::BlockState::InTransfer;
    return block.references > 1 ? kv::BlockState::Shared : kv::BlockState::Active;
}

std::int32_t SyntheticCache::take(int chat, std::int32_t position) {
    std::int32_t index = -1;
    if (!m_empty.empty()) {
        index = m_empty.front();
        m_empty.pop_front();
    } else {
        for (std::int32_t i = 0; i < m_options.blocks; ++i)
            if (const Block& b = m_blocks[std::size_t(i)];
                b.references == 0 && (index < 0 || b.read < m_blocks[std::size_t(index)].read))
                index = i;
        if (index < 0)
            return -1;
        ++m_totals.totalEvictions;
        for (Chat& other : m_chats) // whoever kept it can no longer find it, nor what stood behind it
            if (const auto at = std::find(other.table.begin(), other.table.end(), index);
                at != other.table.end() && !other.runs)
                other.table.erase(at, other.table.end());
    }
    m_blocks[std::size_t(index)] = {1, 0, chat, position, false, m_totals.step};
    return index;
}

bool SyntheticCache::append(int chat, std::int64_t tokens) {
    Chat& c = m_chats[std::size_t(chat)];
    while (tokens > 0) {
        const auto slot = std::int32_t(c.tokens % m_options.blockSize);
        if (slot == 0) {
            const std::int32_t block = take(chat, std::int32_t(c.tokens));
            if (block < 0)
                return false;
            c.table.push_back(block);
        }
        Block& b = m_blocks[std::size_t(c.table.back())];
        const std::int64_t now = std::min<std::int64_t>(tokens, m_options.blockSize - slot);
        b.fill += std::int32_t(now);
        b.sealed = b.fill == m_options.blockSize;
        c.tokens += now;
        tokens -= now;
    }
    return true;
}

void SyntheticCache::startTurn(int chat) {
    Chat& c = m_chats[std::size_t(chat)];
    c.request = m_nextRequest++;
    c.runs = true;
    c.waits = false;
    const bool fresh = c.table.empty();
    if (fresh) {
        c.tokens = 0;
        for (const std::int32_t block : m_sharedPrefix)
            if (m_blocks[std::size_t(block)].sealed) {
                c.table.push_back(block);
                c.tokens += m_options.blockSize;
            }
    }
    c.tokens = std::int64_t(c.table.size()) * m_options.blockSize;
    for (const std::int32_t block : c.table) {
        ++m_blocks[std::size_t(block)].references;
        m_blocks[std::size_t(block)].read = m_totals.step;
    }
    c.reused = c.tokens;
    const std::int64_t room = std::int64_t(m_options.blocks) * m_options.blockSize / (m_options.running * 3);
    c.prompt = c.tokens + 30 + random(std::uint32_t(std::clamp<std::int64_t>(room / 4, 20, 1500)));
    c.toRead = c.prompt - c.tokens;
    c.toWrite = 40 + random(160);
    ++m_totals.totalAdmitted;
    m_totals.totalPrefixQueryTokens += std::uint64_t(c.prompt);
    m_totals.totalPrefixHitTokens += std::uint64_t(c.reused);
    m_recent.emplace_back(c.reused, c.prompt);
    if (m_recent.size() > 32)
        m_recent.pop_front();
}

void SyntheticCache::endTurn(int chat) {
    Chat& c = m_chats[std::size_t(chat)];
    c.runs = false;
    ++m_totals.totalFinished;
    if (m_sharedPrefix.empty() && c.table.size() > kSharedBlocks)
        m_sharedPrefix.assign(c.table.begin(), c.table.begin() + kSharedBlocks);
    for (auto block = c.table.rbegin(); block != c.table.rend(); ++block) {
        Block& b = m_blocks[std::size_t(*block)];
        if (--b.references == 0 && !b.sealed) {
            m_empty.push_front(*block);
            b = Block();
        }
    }
    while (!c.table.empty() && !m_blocks[std::size_t(c.table.back())].sealed)
        c.table.pop_back();
    if (c.table.size() * std::size_t(m_options.running) > m_blocks.size())
        c.table.clear(); // the user begins a new chat
}

void SyntheticCache::run(int steps) {
    for (int s = 0; s < steps; ++s) {
        ++m_totals.step;
        m_now += m_options.stepTime;
        m_totals.totalStep += m_options.stepTime;
        int running = 0;
        for (const Chat& c : m_chats)
            running += c.runs ? 1 : 0;
        for (int i = 0; i < m_options.chats; ++i) {
            Chat& c = m_chats[std::size_t(i)];
            if (!c.runs && (c.waits || random(60) == 0)) {
                c.waits = running >= m_options.running;
                if (!c.waits) {
                    startTurn(i);
                    ++running;
                }
            }
        }
        std::int64_t budget = kChunk;
        for (int i = 0; i < m_options.chats; ++i) {
            Chat& c = m_chats[std::size_t(i)];
            if (!c.runs)
                continue;
            const std::int64_t read = std::min(c.toRead, budget);
            const std::int64_t wrote = c.toRead == 0 ? 1 : 0;
            budget -= read;
            const bool room = append(i, read + wrote);
            c.toRead -= read;
            c.toWrite -= wrote;
            m_totals.totalPrefillTokens += std::uint64_t(read);
            m_totals.totalDecodeTokens += std::uint64_t(wrote);
            if (!room)
                ++m_totals.totalPreemptions;
            if (!room || c.toWrite <= 0)
                endTurn(i);
        }
        sample();
    }
    buildMap();
    buildRows();
}

void SyntheticCache::idle(Nanos duration) {
    for (const Nanos end = m_now + duration; m_now < end;) {
        m_now += 100'000'000;
        sample();
    }
}

void SyntheticCache::sample() {
    metrics::StepSample s = m_totals;
    s.time = m_now;
    s.numBlocks = std::uint32_t(m_options.blocks);
    s.blockSize = std::uint32_t(m_options.blockSize);
    for (const Block& b : m_blocks) {
        ++s.blocksByState[std::size_t(stateOf(b))];
        if (b.references > 0) {
            ++s.referencedBlocks;
            s.usedSlots += std::uint64_t(b.fill);
        }
    }
    for (const auto& [reused, prompt] : m_recent) {
        s.recentReusedTokens += std::uint64_t(reused);
        s.recentPromptTokens += std::uint64_t(prompt);
    }
    s.weightsBytes = 92 * kMiB;
    s.bytesPerBlock = kBytesPerToken * std::uint64_t(m_options.blockSize);
    s.poolBytes = s.bytesPerBlock * std::uint64_t(m_options.blocks);
    s.activationsPeakBytes = 58 * kMiB;
    m_samples.push_back(s);
    if (m_now - m_lastMemory >= 100'000'000) {
        m_lastMemory = m_now;
        const std::uint64_t process = 92 * kMiB + 58 * kMiB + s.poolBytes + 140 * kMiB;
        const std::uint64_t total = std::max<std::uint64_t>(4096, process / kMiB + 2400) * kMiB;
        m_memory.push_back({m_now, total, total - process - 472 * kMiB, process});
    }
}

void SyntheticCache::buildMap() {
    for (std::size_t i = 0; i < m_blocks.size(); ++i) {
        const Block& b = m_blocks[i];
        metrics::BlockCell& cell = m_map.cells[i];
        cell.state = stateOf(b);
        cell.fill = std::uint8_t(b.fill);
        cell.owner = cell.state == kv::BlockState::Empty ? std::uint16_t(0) : std::uint16_t(b.owner + 1);
        cell.references = std::uint16_t(b.references);
    }
    m_map.time = m_now;
    ++m_map.epoch;
    m_mapNew = true;
}

void SyntheticCache::buildRows() {
    m_rows.clear();
    for (std::size_t i = 0; i < m_chats.size(); ++i) {
        const Chat& c = m_chats[i];
        if (!c.runs && !c.waits)
            continue;
        api::SequenceRow row;
        row.request = RequestId(c.runs ? c.request : 1'000'000 + std::int64_t(i));
        row.owner = m_map.owners[i];
        row.state = c.waits        ? api::SequenceState::Waiting
                    : c.toRead > 0 ? api::SequenceState::Reading
                                   : api::SequenceState::Writing;
        row.tokens = c.tokens;
        row.promptTokens = c.prompt;
        row.computedTokens = c.prompt - c.toRead;
        row.cachedPrefix = c.reused;
        row.blocks = std::int32_t(c.table.size());
        for (const std::int32_t block : c.table)
            row.sharedBlocks += m_blocks[std::size_t(block)].references > 1 ? 1 : 0;
        if (row.state == api::SequenceState::Writing) {
            row.ttftMs = 50 + double(c.request % 9) * 17;
            row.itlMs = double(m_options.stepTime) * 1e-6;
        }
        row.runningLimit = c.waits ? m_options.running : 0;
        m_rows.push_back(row);
    }
    m_rowsNew = true;
}

std::vector<BlockId> SyntheticCache::blocksOf(OwnerId owner) const {
    std::vector<BlockId> out;
    for (const std::int32_t block : m_chats[std::size_t(owner.value() - 100)].table)
        out.emplace_back(block);
    return out;
}

bool SyntheticCache::nextSample(metrics::StepSample& sample) {
    if (m_samples.empty())
        return false;
    sample = m_samples.front();
    m_samples.pop_front();
    return true;
}

bool SyntheticCache::nextMemorySample(metrics::MemorySample& sample) {
    if (m_memory.empty())
        return false;
    sample = m_memory.front();
    m_memory.pop_front();
    return true;
}

const metrics::BlockMapSnapshot* SyntheticCache::takeBlockMap() {
    return std::exchange(m_mapNew, false) ? &m_map : nullptr;
}

const std::vector<api::SequenceRow>* SyntheticCache::takeSequences() {
    return std::exchange(m_rowsNew, false) ? &m_rows : nullptr;
}

void SyntheticCache::queryBlock(BlockId block) {
    const Block& b = m_blocks[std::size_t(block.value())];
    api::BlockDetailEvent detail;
    detail.block = block;
    detail.state = stateOf(b);
    detail.fill = b.fill;
    detail.references = b.references;
    detail.firstPosition = b.position;
    if (b.owner >= 0)
        detail.owners.push_back(m_map.owners[std::size_t(b.owner)]);
    if (b.references > 1)
        detail.owners.push_back(m_map.owners[std::size_t(b.owner + 1) % m_map.owners.size()]);
    detail.text = "so the tokenizer keeps a table of merges, and each";
    if (b.sealed)
        detail.key = "9f3a10b277d94e02a6c1884200e3c41e";
    detail.lastRead = m_now - 20'000'000;
    if (onDetail)
        onDetail(detail);
}

} // namespace kvscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sequences that keep their first and their last tokens only. A table has a hole where its window has passed blocks by;
// what these held is nowhere any more, so a table can only go on from where it is, or from its sinks.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

std::int32_t BlockTable::heldBlocks() const {
    if (m_own.keeper() == nullptr)
        return 0;
    const KvCache::TableRecord& table = m_own.keeper()->record(*this);
    return static_cast<std::int32_t>(table.blocks.size() - table.passedBlocks());
}

/// Gives back what no token from here on sees, the last one first.
void KvCache::slideSinks(TableRecord& table) {
    if (!m_sight.on())
        return;
    const std::size_t from = std::max(table.passedEnd, m_sight.sinkBlocks());
    const std::size_t end = m_sight.passedBefore(table.tokens);
    if (end <= from)
        return;
    for (std::size_t i = from; i < end; ++i) {
        const auto tokens = m_pool.tokens(table.blocks[i]);
        table.passed.insert(table.passed.end(), tokens.begin(), tokens.end());
    }
    for (std::size_t i = end; i-- > from;)
        dropReference(std::exchange(table.blocks[i], BlockId()));
    table.passedFrom = m_sight.sinkBlocks();
    table.passedEnd = end;
}

/// Of so many leading tokens of a table those that it can be cut to, or forked at: all, if what the next token sees is
/// there, else what lies before the hole.
std::int64_t KvCache::stillHeld(const TableRecord& table, std::int64_t tokens) const {
    if (table.passedEnd == 0 || m_sight.passedBefore(tokens) >= table.passedEnd)
        return tokens;
    return std::min(tokens, static_cast<std::int64_t>(table.passedFrom) * blockSize());
}

/// The table has taken over, or kept, so many leading tokens of `source`.
void KvCache::takePassed(TableRecord& table, const TableRecord& source) {
    const bool behind = static_cast<std::size_t>(blocksFor(table.tokens)) > source.passedFrom;
    table.passedFrom = behind ? source.passedFrom : 0;
    table.passedEnd = behind ? source.passedEnd : 0;
    if (!behind)
        table.passed.clear();
    else if (&table != &source)
        table.passed = source.passed;
}

/// Where the blocks of a table end that is admitted with those in m_match.blocks: all that are needed for `total`
/// tokens, or as many as it may come to have while it is read in chunks of `chunk`.
std::int32_t KvCache::endAtAdmission(std::int64_t total, std::int64_t chunk) const {
    const auto found = static_cast<std::int64_t>(m_match.blocks.size());
    if (!m_sight.on())
        return blocksFor(total);
    const auto there =
        std::count_if(m_match.blocks.begin(), m_match.blocks.end(), [](BlockId block) { return block.valid(); });
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(blocksFor(total), found + std::max<std::int64_t>(0, m_sight.mostHeld(chunk) - there)));
}

std::int32_t KvCache::mostBlocks(std::int64_t tokens, std::int64_t chunk) const {
    const std::int64_t all = (tokens + blockSize() - 1) / blockSize();
    return static_cast<std::int32_t>(m_sight.on() ? std::min(all, m_sight.mostHeld(chunk)) : all);
}

std::int64_t KvCache::longestTable() const {
    if (m_sight.on() && m_sight.mostHeld(1) <= numBlocks())
        return std::numeric_limits<std::int32_t>::max();
    return static_cast<std::int64_t>(numBlocks()) * blockSize();
}

void KvCache::checkSinks(const TableRecord& table) const {
    KV_CHECK(table.passedEnd == 0 || (m_sight.on() && table.passedFrom == m_sight.sinkBlocks() &&
                                      table.passedEnd <= m_sight.passedBefore(table.tokens)),
             "a table has lost blocks that its next token sees");
    KV_CHECK(table.passed.size() == table.passedBlocks() * static_cast<std::size_t>(blockSize()),
             "a table does not know what its passed blocks held");
    for (std::size_t i = 0; i < table.blocks.size(); ++i)
        KV_CHECK(table.blocks[i].valid() == (i < table.passedFrom || i >= table.passedEnd),
                 "a table has a hole that its window has not passed, or the other way round");
}

} // namespace kvscope::kv

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache's window group: which companions a table holds. A table that computes holds those of the blocks
// [window.from, window.end): the ones its next token sees, and the ones that it is about to write.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

/// How many of the blocks hold as a prefix in the window group too: the last window before the next token is there.
std::size_t KvCache::heldByWindow(std::span<const BlockId> blocks, std::span<const std::int32_t> slots) const {
    if (!m_window)
        return blocks.size();
    const auto hasCompanion = [&](std::size_t i) { // on the device, or in the host tier
        return (blocks[i].valid() && m_window->companion(blocks[i]).valid()) ||
               (!slots.empty() && slots[i] != BlockStore::kNone && m_host->hasCompanion(slots[i]));
    };
    std::size_t best = 0, complete = 0; // all blocks of [complete, i) have companions
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (!hasCompanion(i))
            complete = i + 1;
        if (complete <= m_window->firstSeen(static_cast<std::int64_t>(i + 1) * blockSize()))
            best = i + 1;
    }
    return best;
}

/// Of so many leading tokens of a table with these blocks those that another table may have in common with it.
std::int64_t KvCache::shareable(std::span<const BlockId> blocks, std::int64_t tokens) const {
    tokens = shareable(tokens);
    if (!m_window)
        return tokens;
    const auto whole = static_cast<std::size_t>(tokens / blockSize());
    return static_cast<std::int64_t>(heldByWindow(blocks.first(whole))) * blockSize();
}

/// The table goes on behind its tokens: what the next one sees is held.
void KvCache::openWindow(TableRecord& table) {
    if (!m_window)
        return;
    WindowTable& held = table.window;
    held.end = static_cast<std::size_t>(blocksFor(table.tokens));
    held.from = std::min(m_window->firstSeen(table.tokens), held.end);
    held.blocks.assign(held.end, BlockId());
    // Those that are here are held before room is made for those that are not.
    for (std::size_t i = held.from; i < held.end; ++i)
        if (m_window->companion(table.blocks[i]).valid())
            held.blocks[i] = m_window->hold(table.blocks[i]);
    for (std::size_t i = held.from; i < held.end; ++i)
        if (!held.blocks[i].valid())
            held.blocks[i] = loadCompanion(table, i);
    held.open = true;
}

void KvCache::growWindow(TableRecord& table, std::int64_t upTo) {
    if (!m_window)
        return;
    WindowTable& held = table.window;
    KV_CHECK(held.open, "a table that rests was to write");
    const auto wanted = static_cast<std::size_t>(blocksFor(upTo));
    for (; held.end < wanted; ++held.end)
        held.blocks.push_back(m_window->take(table.blocks[held.end]));
}

/// Gives back what the next token does not see any more.
void KvCache::slideWindow(TableRecord& table) {
    if (!m_window)
        return;
    WindowTable& held = table.window;
    const std::size_t from = std::min(m_window->firstSeen(table.tokens), held.end);
    for (; held.from < from; ++held.from) {
        m_window->drop(table.blocks[held.from], true);
        held.blocks[held.from] = BlockId();
    }
}

/// Gives everything back, the last one first.
void KvCache::closeWindow(TableRecord& table) {
    if (!m_window)
        return;
    WindowTable& held = table.window;
    while (held.end > held.from)
        m_window->drop(table.blocks[--held.end], false);
    held.from = held.end = 0;
    held.blocks.clear();
    held.open = false;
}

/// After a table's block became `known`, an equal one.
void KvCache::switchCompanion(TableRecord& table, std::size_t index, BlockId block, BlockId known) {
    if (!m_window)
        return;
    if (!m_window->companion(known).valid()) {
        m_window->move(block, known);
        return;
    }
    table.window.blocks[index] = m_window->hold(known);
    m_window->drop(block, false); // and is forgotten with its block
}

void KvCache::dropPin(BlockId block) {
    m_pool.dropPin(block);
    forgetCompanion(block);
}

/// Without references a block that cannot be found is empty, and what its companion holds is of no use.
void KvCache::forgetCompanion(BlockId block) {
    if (m_window && m_pool.facts(block).count() == 0 && !m_pool.facts(block).findable)
        m_window->forget(block);
}

void KvCache::rest(BlockTable& handle) {
    rethrowBroken();
    closeWindow(record(handle));
}

void KvCache::checkWindow() const {
    std::vector<std::int32_t> references(static_cast<std::size_t>(m_window->numBlocks()), 0);
    for (const TableRecord& table : m_tables) {
        const WindowTable& held = table.window;
        KV_CHECK((table.live && held.open) || held.end == 0, "a table that does not compute holds companions");
        if (!held.open)
            continue;
        KV_CHECK(held.blocks.size() == held.end && held.end <= table.blocks.size(),
                 "a table holds companions of blocks that it does not have");
        KV_CHECK(held.from <= m_window->firstSeen(table.tokens) &&
                     static_cast<std::int64_t>(held.end) * blockSize() >= table.tokens,
                 "a table does not hold what its next token sees");
        for (std::size_t i = 0; i < held.end; ++i) {
            KV_CHECK(held.blocks[i] == (i < held.from ? BlockId() : m_window->companion(table.blocks[i])),
                     "a table lists a companion that is not its block's");
            if (i >= held.from)
                ++references[static_cast<std::size_t>(held.blocks[i].value())];
        }
    }
    for (std::int32_t i = 0; i < m_window->numBlocks(); ++i) {
        const BlockId owner = m_window->ownerOf(BlockId(i));
        KV_CHECK(m_window->references(BlockId(i)) == references[static_cast<std::size_t>(i)],
                 "the references of a companion are not the tables that hold it");
        KV_CHECK(!owner.valid() || m_pool.facts(owner).count() > 0 || m_pool.facts(owner).findable,
                 "a companion is kept of a block that nobody can find");
    }
    m_window->checkInvariants();
}

} // namespace kvscope::kv

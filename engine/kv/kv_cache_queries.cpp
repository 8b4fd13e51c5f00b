// SPDX-License-Identifier: GPL-3.0-or-later
//
// The questions that can be put to the cache; none of them changes it.
#include <algorithm>
#include <array>

#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

namespace {

std::int64_t commonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
    const std::size_t length = std::min(a.size(), b.size());
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(length);
    return std::mismatch(a.begin(), end, b.begin()).first - a.begin();
}

} // namespace

BlockKey KvCache::keyOf(BlockId parent, std::uint64_t adapter) const {
    return parent.valid() ? m_pool.identity(parent).key : m_hasher->root(adapter);
}

/// The key only leads to a candidate. Its own tokens are compared, and its parent must be the very block that was
/// found (and so compared) before it: the whole prefix is equal then, whatever the hash did.
bool KvCache::sameContent(BlockId block, std::span<const TokenId> tokens, std::uint64_t parentGeneration,
                          std::uint64_t adapter) const {
    const BlockIdentity& identity = m_pool.identity(block);
    const auto own = m_pool.tokens(block);
    return identity.parentGeneration == parentGeneration && identity.adapter == adapter &&
           std::equal(own.begin(), own.end(), tokens.begin(), tokens.end());
}

void KvCache::findPrefix(std::span<const TokenId> tokens, std::uint64_t adapter, std::vector<BlockId>& found) const {
    if (!m_prefixCaching)
        return;
    const auto size = static_cast<std::size_t>(blockSize());
    const std::size_t limit = (tokens.size() - 1) / size; // the last token is computed for its logits
    // Some blocks at a time, so that the memory of all of them is fetched at once instead of one after the other.
    constexpr std::size_t kTogether = 8;
    std::array<BlockKey, kTogether> keys;
    std::array<std::int32_t, kTogether> candidates{};
    BlockId parent;
    BlockKey key = m_hasher->root(adapter);
    while (found.size() < limit) {
        const std::size_t first = found.size();
        const std::size_t count = std::min(kTogether, limit - first);
        for (std::size_t i = 0; i < count; ++i) {
            key = m_hasher->block(key, tokens.subspan((first + i) * size, size));
            keys[i] = key;
            m_index.prefetch(key);
        }
        for (std::size_t i = 0; i < count; ++i) {
            candidates[i] = m_index.find(keys[i]);
            if (candidates[i] == KeyTable::kNotFound)
                break;
            m_pool.prefetch(BlockId(candidates[i]));
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (candidates[i] == KeyTable::kNotFound ||
                !sameContent(BlockId(candidates[i]), tokens.subspan((first + i) * size, size), generationOf(parent),
                             adapter))
                return;
            parent = BlockId(candidates[i]);
            found.push_back(parent);
        }
    }
}

std::int64_t KvCache::lookup(std::span<const TokenId> tokens, std::uint64_t adapter) const {
    if (tokens.empty())
        return 0;
    std::vector<BlockId> found;
    findPrefix(tokens, adapter, found);
    return static_cast<std::int64_t>(heldByWindow(found)) * blockSize();
}

/// Why m_match, which takes of `found` blocks of the pool's prefix what can be used, is no longer.
MissCause KvCache::causeOf(const AdmitRequest& request, std::size_t found) const {
    MissCause cause;
    if (m_match.declined > 0)
        cause.kind = MissKind::CheaperToCompute;
    else if (m_match.blocks.size() < found)
        cause.kind = MissKind::Evicted; // from the window group
    else
        cause = explainMiss(request, endOf(m_match, request.adapter));
    return cause;
}

MissCause KvCache::explainMiss(const AdmitRequest& request, const PrefixEnd& found) const {
    MissCause cause;
    if (!m_prefixCaching) {
        cause.kind = MissKind::Disabled;
        return cause;
    }
    const auto tokens = request.tokens;
    const auto size = static_cast<std::size_t>(blockSize());
    const std::size_t limit = (tokens.size() - 1) / size;
    if (found.blocks == limit)
        return cause;
    if (m_sight.on() && static_cast<std::int64_t>((found.blocks + 1) * size) > m_sight.unaffected()) {
        cause.kind = MissKind::PastWindow;
        return cause;
    }

    const BlockKey next = m_hasher->block(found.key, tokens.subspan(found.blocks * size, size));
    if (const Eviction* eviction = m_evicted.find(next)) {
        cause.kind = MissKind::Evicted;
        cause.evictedBy = eviction->by;
        cause.evictedAt = eviction->time;
        cause.evictedAge = eviction->age;
        return cause;
    }
    if (const RememberedSequence* previous = m_memory.find(request.owner)) {
        cause.commonPrefix = commonPrefix(previous->tokens, tokens);
        const auto common = static_cast<std::size_t>(cause.commonPrefix);
        if (common < previous->tokens.size() && common < tokens.size()) {
            cause.kind = MissKind::Diverged;
            cause.divergingToken = cause.commonPrefix;
        } else if (found.blocks < std::min(common / size, limit)) {
            cause.kind = MissKind::Evicted;
        }
        return cause;
    }
    const auto reused = static_cast<std::int64_t>(found.blocks * size);
    if (const std::int64_t common = commonWithChildren(found, request); common > 0) {
        cause.kind = MissKind::ShorterThanBlock;
        cause.commonPrefix = reused + common;
    } else if (found.blocks == 0) {
        cause.kind = MissKind::ColdStart;
    }
    return cause;
}

/// The longest beginning that the prompt has in common, behind what was found, with a block that follows that.
std::int64_t KvCache::commonWithChildren(const PrefixEnd& found, const AdmitRequest& request) const {
    const auto rest = request.tokens.subspan(found.blocks * static_cast<std::size_t>(blockSize()));
    std::int64_t longest = 0;
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockId block(i);
        if (m_pool.facts(block).fill == 0 || m_pool.identity(block).parentGeneration != found.generation ||
            m_pool.identity(block).adapter != request.adapter)
            continue;
        longest = std::max(longest, commonPrefix(m_pool.tokens(block), rest));
    }
    return longest;
}

/// What the table's owner had, for those who ask when it is gone.
void KvCache::remember(const TableRecord& table) {
    if (table.tokens == 0 || !table.owner.valid())
        return;
    RememberedSequence& memory = m_memory.renew(table.owner);
    std::int64_t left = table.tokens;
    for (std::size_t i = 0; i < table.blocks.size() && left > 0; ++i) {
        const BlockId block = table.blocks[i];
        const auto passed = [&] {
            return std::span(table.passed).subspan((i - table.passedFrom) * static_cast<std::size_t>(blockSize()));
        };
        const auto held = block.valid() ? m_pool.tokens(block) : passed();
        const auto tokens = held.first(static_cast<std::size_t>(
            std::min({left, static_cast<std::int64_t>(held.size()), static_cast<std::int64_t>(blockSize())})));
        memory.tokens.insert(memory.tokens.end(), tokens.begin(), tokens.end());
        memory.blocks.push_back({block, block.valid() ? m_pool.identity(block).generation : 0});
        left -= static_cast<std::int64_t>(tokens.size());
    }
}

BlockDetail KvCache::detail(BlockId block) const {
    BlockDetail detail;
    detail.facts = m_pool.facts(block);
    detail.state = drawnState(detail.facts);
    const auto tokens = m_pool.tokens(block);
    detail.tokens.assign(tokens.begin(), tokens.end());
    detail.hasKey = detail.facts.findable;
    detail.key = m_pool.identity(block).key;
    for (const TableRecord& table : m_tables) {
        const bool lists =
            table.live && std::find(table.blocks.begin(), table.blocks.end(), block) != table.blocks.end();
        if (lists && std::find(detail.owners.begin(), detail.owners.end(), table.owner) == detail.owners.end())
            detail.owners.push_back(table.owner);
    }
    if (detail.owners.empty() && m_pool.owner(block).valid())
        detail.owners.push_back(m_pool.owner(block));
    return detail;
}

OwnerBlocks KvCache::ownerBlocks(OwnerId owner) const {
    OwnerBlocks result;
    const TableRecord* newest = nullptr;
    for (const TableRecord& table : m_tables)
        if (table.live && table.owner == owner && (newest == nullptr || table.serial > newest->serial))
            newest = &table;
    if (newest != nullptr) {
        result.live = true;
        result.tokens = newest->tokens;
        result.blocks.assign(newest->blocks.begin(), newest->blocks.begin() + blocksFor(newest->tokens));
        return result;
    }
    if (const RememberedSequence* memory = m_memory.find(owner)) {
        result.tokens = static_cast<std::int64_t>(memory->tokens.size());
        for (const BlockMemory& was : memory->blocks)
            result.blocks.push_back(stillThere(was) ? was.block : BlockId());
    }
    return result;
}

void KvCache::idleOwners(std::size_t most, std::vector<IdleOwner>& out) const {
    std::vector<const RememberedSequence*> newest;
    for (const RememberedSequence& memory : m_memory.all()) {
        const auto live = [&](const TableRecord& table) { return table.live && table.owner == memory.owner; };
        if (memory.owner.valid() && std::none_of(m_tables.begin(), m_tables.end(), live))
            newest.push_back(&memory);
    }
    std::sort(newest.begin(), newest.end(), [](const auto* a, const auto* b) { return a->lastUse > b->lastUse; });
    newest.resize(std::min(newest.size(), most));
    out.clear();
    for (const RememberedSequence* memory : newest) {
        const auto whole = static_cast<std::ptrdiff_t>(memory->tokens.size()) / blockSize();
        const auto begin = memory->blocks.begin(), end = begin + whole;
        const auto gone = std::find_if_not(begin, end, [this](const BlockMemory& was) { return stillThere(was); });
        out.push_back({memory->owner, static_cast<std::int64_t>(memory->tokens.size()),
                       static_cast<std::int32_t>(whole), static_cast<std::int32_t>(gone - begin)});
    }
}

bool KvCache::stillThere(const BlockMemory& was) const {
    return was.block.valid() && m_pool.identity(was.block).generation == was.generation &&
           m_pool.state(was.block) != BlockState::Empty;
}

std::int32_t KvCache::sharedBlocks(const BlockTable& table) const {
    const auto blocks = table.blocks();
    return static_cast<std::int32_t>(std::count_if(
        blocks.begin(), blocks.end(), [this](BlockId b) { return b.valid() && m_pool.facts(b).references > 1; }));
}

} // namespace kvscope::kv

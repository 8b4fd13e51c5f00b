// SPDX-License-Identifier: GPL-3.0-or-later
//
// The contiguous allocator: one extent for a sequence's whole life, so that nobody ever needs room in between.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

std::int32_t KvCache::extentFor(std::int64_t tokens, std::int64_t longest) const {
    const std::int64_t slots = static_cast<std::int64_t>(numBlocks()) * blockSize();
    return blocksFor(std::min(std::max(tokens, longest), slots));
}

AdmitResult KvCache::admitContiguous(const AdmitRequest& request, Nanos now) {
    const auto total = static_cast<std::int64_t>(request.tokens.size());
    const std::int32_t count = std::max(extentFor(total, request.longest), blocksFor(total));
    const BlockId first = m_pool.holes()->bestFit(count);
    if (!first.valid())
        return tl::unexpected(Shortage{count, largestExtent(), available() >= count});
    if (hasTails() && m_freeTails.empty())
        return tl::unexpected(Shortage{count, largestExtent(), false, true});

    Admission admission;
    if (request.explain)
        admission.cause = explainMiss(request, {});
    admission.table = newTable(request.owner, request.adapter);
    TableRecord& table = record(admission.table);
    takeTailSlot(table);
    for (std::int32_t i = 0; i < count; ++i) {
        const BlockId block(first.value() + i);
        m_pool.take(block, table.owner, i * blockSize(), i == 0 ? BlockId() : table.blocks.back(), table.adapter, now);
        m_pool.rewind(block, 0);
        table.blocks.push_back(block);
    }
    if (const std::int64_t forked = forkableTokens(request); forked > 0)
        copyForked(record(*request.forkFrom), forked, table, now);
    admission.reusedTokens = table.tokens;
    admission.newBlocks = count;
    return admission;
}

/// What a fork has in common with its source lies in the source's extent, so all of it is copied.
void KvCache::copyForked(const TableRecord& source, std::int64_t tokens, TableRecord& table, Nanos now) {
    for (std::size_t i = 0; static_cast<std::int64_t>(i) * blockSize() < tokens; ++i) {
        const auto slots = static_cast<std::int32_t>(
            std::min<std::int64_t>(tokens - static_cast<std::int64_t>(i) * blockSize(), blockSize()));
        m_pool.write(table.blocks[i], 0, m_pool.tokens(source.blocks[i]).first(static_cast<std::size_t>(slots)), now);
        planCopy(source.blocks[i], table.blocks[i], slots);
        if (slots == blockSize())
            m_pool.seal(table.blocks[i]);
    }
    table.tokens = tokens;
}

/// The extent stays; what is behind the tokens that are left is only reserved again.
void KvCache::truncateContiguous(TableRecord& table, std::int64_t tokens) {
    for (std::size_t i = static_cast<std::size_t>(tokens / blockSize()); i < table.blocks.size(); ++i) {
        const std::int64_t left = std::max<std::int64_t>(0, tokens - static_cast<std::int64_t>(i) * blockSize());
        m_pool.rewind(table.blocks[i], static_cast<std::int32_t>(left));
    }
    table.tokens = tokens;
    if (tokens % blockSize() == 0)
        giveTailSlot(table);
}

} // namespace kvscope::kv

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Short words for tests of the cache: tables as lists of numbers, prompts made of ranges.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "engine/kv/kv_cache.h"

namespace kvscope::test {

using Ids = std::vector<int>;
using Tokens = std::vector<TokenId>;

inline Ids idsOf(std::span<const BlockId> blocks) {
    Ids ids;
    for (const BlockId block : blocks)
        ids.push_back(block.value());
    return ids;
}

/// The free list from front (taken next) to back.
inline Ids freeIds(const kv::KvCache& cache) {
    Ids ids;
    const kv::FreeList& list = cache.pool().freeList();
    for (BlockId block = list.front(); block.valid(); block = list.after(block))
        ids.push_back(block.value());
    return ids;
}

/// first, first + 1, ... (count tokens)
inline Tokens tokenRange(TokenId first, int count) {
    Tokens tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

inline kv::CacheConfig cacheConfig(int numBlocks, int blockSize = 8) {
    kv::CacheConfig config;
    config.numBlocks = numBlocks;
    config.blockSize = blockSize;
    config.keys.modelFingerprint = "test model";
    config.keys.salt = 1;
    return config;
}

inline std::uint32_t countOf(const kv::KvCache& cache, kv::BlockState state) {
    return cache.pool().counts()[static_cast<std::size_t>(state)];
}

/// Admits, computes everything in one go, as a step of its own would. The request must fit.
struct Computed {
    kv::BlockTable table;
    std::int64_t reused = 0;
    kv::MissCause cause;
};
inline Computed compute(kv::KvCache& cache, const Tokens& tokens, OwnerId owner = OwnerId(1), Nanos now = 0,
                        std::uint64_t adapter = 0) {
    kv::AdmitRequest request;
    request.tokens = tokens;
    request.owner = owner;
    request.adapter = adapter;
    request.explain = true;
    kv::Admission admission = std::move(cache.admit(request, now).value());
    cache.commitCopies();
    cache.advance(admission.table, std::span(tokens).subspan(static_cast<std::size_t>(admission.reusedTokens)), now);
    cache.checkInvariants();
    return {std::move(admission.table), admission.reusedTokens, admission.cause};
}

/// One more token: room, then advance.
inline void append(kv::KvCache& cache, kv::BlockTable& table, const Tokens& tokens, Nanos now = 0) {
    cache.grow(table, table.tokens() + static_cast<std::int64_t>(tokens.size()), now).value();
    cache.commitCopies();
    cache.advance(table, tokens, now);
    cache.checkInvariants();
}

/// A hasher that gives one key to everything, so that only comparing content can tell blocks apart.
class CollidingHasher final : public kv::BlockHasher {
public:
    kv::BlockKey root(std::uint64_t) const override { return {7, 7}; }
    kv::BlockKey block(const kv::BlockKey&, std::span<const TokenId>) const override { return {7, 7}; }
};

/// Keys that depend on the tokens of the block only, not on what comes before: parents collide.
class ParentBlindHasher final : public kv::BlockHasher {
public:
    kv::BlockKey root(std::uint64_t) const override { return {}; }
    kv::BlockKey block(const kv::BlockKey&, std::span<const TokenId> tokens) const override {
        std::uint64_t sum = 1469598103934665603ULL;
        for (const TokenId token : tokens)
            sum = (sum ^ static_cast<std::uint64_t>(token)) * 1099511628211ULL;
        return {sum, sum >> 7};
    }
};

} // namespace kvscope::test

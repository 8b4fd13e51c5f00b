// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/eviction_policy.h"

#include <algorithm>
#include <array>

#include "engine/kv/free_list.h"

namespace kvscope::kv {

namespace {

constexpr std::array<const char*, kEvictionKindCount> kNames{"lru", "lfu", "position", "cost"};

class LruEviction final : public EvictionPolicy {
public:
    const char* name() const override { return kNames[0]; }
    std::uint64_t rank(const EvictionFacts&) const override { return 0; } // the order of coming is the order of going
};

/// A beginning is worth at least what hangs on it: without it nothing of that can be found.
class LfuEviction final : public EvictionPolicy {
public:
    const char* name() const override { return kNames[1]; }
    std::uint64_t rank(const EvictionFacts& block) const override {
        return std::max(block.behind, std::uint64_t(block.reuse.clock) + octaves(block.reuse.fame) - octaves(kOneUse));
    }
};

class PositionEviction final : public EvictionPolicy {
public:
    const char* name() const override { return kNames[2]; }
    std::uint64_t rank(const EvictionFacts& block) const override {
        constexpr std::uint64_t kLast = FreeList::kRankSpan - 1;
        return kLast - std::min(static_cast<std::uint64_t>(block.index), kLast);
    }
};

class CostEviction final : public EvictionPolicy {
public:
    explicit CostEviction(const RecomputeCost& cost) : m_cost(cost) {}
    const char* name() const override { return kNames[3]; }
    std::uint64_t rank(const EvictionFacts& block) const override {
        const double before = (static_cast<double>(block.index) + 0.5) * m_cost.blockSize; // of its middle token
        const double cost = std::min(1 + m_cost.attentionPerToken * before, kMostCost);
        const auto fixed = static_cast<std::uint64_t>(cost * kCostUnit);
        return std::max(block.behind, std::uint64_t(block.reuse.clock) + octaves(block.reuse.expected * fixed) -
                                          octaves(kOneUse * kCostUnit));
    }

private:
    static constexpr std::uint64_t kCostUnit = 256;
    static constexpr double kMostCost = 1 << 20;
    RecomputeCost m_cost;
};

} // namespace

const char* evictionKindName(EvictionKind kind) {
    return kNames[static_cast<std::size_t>(kind)];
}

std::optional<EvictionKind> evictionKindOf(std::string_view name) {
    const auto* const found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end())
        return std::nullopt;
    return static_cast<EvictionKind>(found - kNames.begin());
}

std::unique_ptr<EvictionPolicy> makeEviction(EvictionKind kind, const RecomputeCost& cost) {
    switch (kind) {
    case EvictionKind::Lru:
        break;
    case EvictionKind::Lfu:
        return std::make_unique<LfuEviction>();
    case EvictionKind::Position:
        return std::make_unique<PositionEviction>();
    case EvictionKind::Cost:
        return std::make_unique<CostEviction>(cost);
    }
    return std::make_unique<LruEviction>();
}

} // namespace kvscope::kv

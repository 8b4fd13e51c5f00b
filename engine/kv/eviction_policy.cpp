// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/eviction_policy.h"

namespace kvscope::kv {

namespace {

class LruEviction final : public EvictionPolicy {
public:
    const char* name() const override { return "lru"; }
    BlockId insertBefore(const BlockPool&, BlockId) const override { return BlockId(); }
};

} // namespace

std::unique_ptr<EvictionPolicy> makeLruEviction() {
    return std::make_unique<LruEviction>();
}

} // namespace kvscope::kv

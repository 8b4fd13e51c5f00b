// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/kv_budget.h"

#include <algorithm>
#include <limits>
#include <string>

#include "engine/base/figures.h"

namespace kvscope::exec {

namespace {

constexpr std::int64_t kDefaultContexts = 8;

struct Choice {
    std::int64_t blocks;
    KvBudgetRule rule;
};

Choice choose(const KvBudgetInputs& in) {
    const auto blocksIn = [&](std::uint64_t bytes) {
        const std::uint64_t left = bytes > in.tailBytes ? bytes - in.tailBytes : 0;
        // Up to windowBlocks each block has one of the window group beside it, after that none.
        const std::uint64_t pair = in.bytesPerBlock + in.bytesPerWindowBlock;
        const auto pairs = static_cast<std::uint64_t>(in.windowBlocks);
        return static_cast<std::int64_t>(
            left / pair <= pairs ? left / pair : (left - pairs * in.bytesPerWindowBlock) / in.bytesPerBlock);
    };
    const auto part = [&](double share) {
        return blocksIn(static_cast<std::uint64_t>(static_cast<double>(in.availableBytes) * share));
    };
    if (in.numBlocks > 0)
        return {in.numBlocks, KvBudgetRule::NumBlocks};
    if (in.cacheBytes > 0)
        return {blocksIn(in.cacheBytes), KvBudgetRule::CacheBytes};
    if (in.share)
        return {part(*in.share), KvBudgetRule::Share};
    const std::int64_t quarter = part(kDefaultShare);
    const std::int64_t contexts = (kDefaultContexts * in.maxModelLen + in.blockSize - 1) / in.blockSize;
    return quarter < contexts ? Choice{quarter, KvBudgetRule::QuarterShare}
                              : Choice{contexts, KvBudgetRule::EightContexts};
}

} // namespace

const char* kvBudgetRuleName(KvBudgetRule rule) {
    switch (rule) {
    case KvBudgetRule::NumBlocks:
        return "--num-blocks";
    case KvBudgetRule::CacheBytes:
        return "--kv-cache-memory-bytes";
    case KvBudgetRule::Share:
        return "--gpu-memory-utilization";
    case KvBudgetRule::QuarterShare:
        return "25 % of available memory";
    case KvBudgetRule::EightContexts:
        return "8 x max-model-len";
    }
    return "";
}

std::uint64_t kvPoolBytes(const KvBudgetInputs& in, std::int64_t blocks) {
    return in.bytesPerBlock * static_cast<std::uint64_t>(blocks) + in.tailBytes +
           in.bytesPerWindowBlock * static_cast<std::uint64_t>(std::min(blocks, in.windowBlocks));
}

Result<KvBudget> planKvBudget(const KvBudgetInputs& in) {
    if (in.bytesPerBlock == 0 || in.blockSize <= 0 || in.maxModelLen <= 0)
        return fail(ErrorCode::InvalidArgument,
                    "The size of the KV cache needs a block size and a model length above 0.");
    if (in.share && !(*in.share > 0 && *in.share <= 1))
        return fail(ErrorCode::InvalidArgument, "--gpu-memory-utilization must be above 0 and at most 1.");
    const Choice choice = choose(in);
    if (choice.blocks < 1) {
        const std::string tails =
            in.tailBytes > 0 ? " beside " + sizeText(in.tailBytes) + " for the blocks being filled" : std::string();
        const std::string window = in.windowBlocks > 0 ? " and its " + sizeText(in.bytesPerWindowBlock) +
                                                             " in the layers that look back over a window"
                                                       : std::string();
        return fail(ErrorCode::OutOfMemory, "Not even one KV block of " + sizeText(in.bytesPerBlock) + window + tails +
                                                " fits by the rule '" + kvBudgetRuleName(choice.rule) +
                                                "'; give the cache more memory or use a smaller block size.");
    }
    // A slot number (block x blockSize + slot) travels to the kernels as 32 bits.
    const std::int64_t mostBlocks = std::numeric_limits<std::int32_t>::max() / in.blockSize;
    if (choice.blocks > mostBlocks)
        return fail(ErrorCode::InvalidArgument,
                    "At most " + countText(mostBlocks) + " blocks of this size can be addressed; ask for fewer.");
    KvBudget out;
    out.numBlocks = static_cast<std::int32_t>(choice.blocks);
    out.bytes = kvPoolBytes(in, choice.blocks);
    out.tokens = choice.blocks * in.blockSize;
    out.rule = choice.rule;
    if (out.bytes > in.availableBytes)
        return fail(ErrorCode::OutOfMemory, "A KV cache of " + sizeText(out.bytes) + " (" + kvBudgetRuleName(out.rule) +
                                                ") does not fit into the " + sizeText(in.availableBytes) +
                                                " of memory that are left after the weights; ask for fewer blocks.");
    return out;
}

} // namespace kvscope::exec

// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "engine/api/engine_config.h"
#include "engine/api/request.h"
#include "engine/base/figures.h"

namespace kvscope::api {

namespace {

/// One numeric setting with its range; `openLow` excludes the lower bound itself.
struct Range {
    const char* name;
    double value;
    double low, high;
    bool openLow = false;
    bool openHigh = false;
};

std::string number(double value) {
    return formatted(std::fabs(value) < 1e6 ? "%g" : "%.0f", value);
}

bool inside(const Range& r) {
    // NaN compares false with everything, so it never counts as inside.
    const bool aboveLow = r.openLow ? r.value > r.low : r.value >= r.low;
    const bool belowHigh = r.openHigh ? r.value < r.high : r.value <= r.high;
    return aboveLow && belowHigh;
}

std::string outside(const Range& r) {
    return std::string(r.name) + " must be between " + number(r.low) + (r.openLow ? " (excluded)" : "") + " and " +
           number(r.high) + (r.openHigh ? " (excluded)" : "") +
           (std::isfinite(r.value) ? ", not " + number(r.value) + "." : ", and a number.");
}

} // namespace

Result<void> validate(const SamplingParams& p) {
    const Range ranges[] = {
        {"temperature", p.temperature, 0, 2},           {"top-p", p.topP, 0, 1, true},
        {"min-p", p.minP, 0, 1, false, true},           {"repeat penalty", p.repeatPenalty, 0.5, 2},
        {"presence penalty", p.presencePenalty, -2, 2}, {"frequency penalty", p.frequencyPenalty, -2, 2},
        {"top-k", static_cast<double>(p.topK), 0, 1e9}, {"logprobs", static_cast<double>(p.logprobs), 0, 20},
    };
    for (const Range& range : ranges)
        if (!inside(range))
            return fail(ErrorCode::InvalidArgument, outside(range));
    if (p.maxTokens < 1)
        return fail(ErrorCode::InvalidArgument, "max tokens must be at least 1.");
    for (const std::string& stop : p.stop)
        if (stop.empty())
            return fail(ErrorCode::InvalidArgument, "A stop string must not be empty.");
    for (const auto& [token, bias] : p.logitBias) {
        if (token < 0)
            return fail(ErrorCode::InvalidArgument,
                        "A logit bias names token " + std::to_string(token) + "; token ids start at 0.");
        if (!(bias >= -100 && bias <= 100))
            return fail(ErrorCode::InvalidArgument, outside({"logit bias", bias, -100, 100}));
    }
    return {};
}

namespace {

Result<void> validateWindow(const EngineConfig& c) {
    const bool sinks = c.windowPolicy == kv::WindowPolicy::Sinks;
    if (sinks && c.window == 0)
        return fail(ErrorCode::InvalidArgument, "--window-policy sinks needs --window: how many of the latest tokens "
                                                "are kept.");
    if (sinks && c.allocator == kv::AllocatorKind::Contiguous)
        return fail(ErrorCode::InvalidArgument, "--window-policy sinks gives blocks back that lie inside a sequence, "
                                                "which an extent cannot; leave --allocator contiguous out.");
    if (c.maxModelLen > 0 && c.window > c.maxModelLen)
        return fail(ErrorCode::InvalidArgument, "--window " + std::to_string(c.window) +
                                                    " is more than --max-model-len " + std::to_string(c.maxModelLen) +
                                                    "; give less.");
    return {};
}

} // namespace

Result<void> validate(const EngineConfig& c) {
    if (c.blockSize != 8 && c.blockSize != 16 && c.blockSize != 32 && c.blockSize != 64)
        return fail(ErrorCode::InvalidArgument, "--block-size must be 8, 16, 32 or 64.");
    const Range ranges[] = {
        {"--threads", static_cast<double>(c.threads), 0, 1024},
        {"--num-blocks", static_cast<double>(c.numBlocks), 0, 1e9},
        {"--max-model-len", static_cast<double>(c.maxModelLen), 0, 1e9},
        {"--sinks", static_cast<double>(c.sinks), 0, 1e9},
        {"--window", static_cast<double>(c.window), 0, 1e9},
        {"--max-num-seqs", static_cast<double>(c.maxSequences), 1, 1024},
        {"--max-num-batched-tokens", static_cast<double>(c.maxBatchedTokens), 0, 65536},
        {"--watermark", c.watermark, 0, 1, false, true},
        {"--long-prefill-token-threshold", static_cast<double>(c.longPrefillThreshold), 0, 1e9},
        {"--max-long-partial-prefills", static_cast<double>(c.maxLongPartialPrefills), 1, 1024},
        {"--gpu-memory-utilization", c.memoryUtilization.value_or(1), 0, 1, true},
    };
    for (const Range& range : ranges)
        if (!inside(range))
            return fail(ErrorCode::InvalidArgument, outside(range));
    if (c.hostCacheBytes > 0 && c.allocator != kv::AllocatorKind::Paged)
        return fail(ErrorCode::InvalidArgument,
                    "--host-cache-bytes needs --allocator paged: an extent is never moved.");
    if (c.hostCacheBytes > 0 && c.windowPolicy == kv::WindowPolicy::Sinks)
        return fail(ErrorCode::InvalidArgument, "--host-cache-bytes needs --window-policy stop or trim: with sinks, a "
                                                "sequence gives up the blocks behind its window and never moves them.");
    return validateWindow(c);
}

} // namespace kvscope::api

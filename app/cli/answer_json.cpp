// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/answer_json.h"

#include "app/cli/command.h"
#include "engine/model/unicode.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

json stopReasonJson(const api::Answer& answer) {
    if (const auto* token = std::get_if<TokenId>(&answer.stopReason))
        return *token;
    if (const auto* text = std::get_if<std::string>(&answer.stopReason))
        return model::toValidUtf8(*text);
    return nullptr;
}

json blocksJson(const std::array<std::uint32_t, kv::kBlockStateCount>& blocks) {
    json out = json::object();
    for (std::size_t i = 0; i < blocks.size(); ++i)
        out[kv::blockStateName(static_cast<kv::BlockState>(i))] = blocks[i];
    return out;
}

double milliseconds(Nanos nanos) {
    return static_cast<double>(nanos) / 1e6;
}

/// A gap is null.
json shareJson(double share) {
    return share < 0 ? json() : json(share);
}

json allocatorJson(const api::EngineStats& stats) {
    const metrics::StepSample& s = stats.last;
    json out{{"name", stats.allocator}, {"internal_fragmentation", shareJson(s.internalFragmentation())}};
    if ((s.presence & metrics::kHasExtents) != 0) {
        out["largest_free_extent"] = s.largestFreeExtent;
        out["external_fragmentation"] = shareJson(s.externalFragmentation());
        out["refused"] = s.totalRefused;
    }
    return out;
}

/// Of the layers that look back over a window only; null = all layers keep everything.
json windowGroupJson(const api::ModelInfo& model) {
    if (model.windowLayers == 0)
        return nullptr;
    return {{"window", model.window},
            {"layers", model.windowLayers},
            {"total", model.windowBlocks},
            {"bytes_per_block", model.bytesPerWindowBlock}};
}

json preemptedJson(const api::EngineStats::Preempted& p) {
    return {{"count", p.count}, {"estimated_ms", milliseconds(p.estimated)}, {"took_ms", milliseconds(p.took)}};
}

/// Null = there is no host tier.
json hostJson(const api::EngineStats& stats) {
    const metrics::StepSample& s = stats.last;
    if ((s.presence & metrics::kHasHostTier) == 0)
        return nullptr;
    return {{"blocks", s.hostBlocks},
            {"used_blocks", s.hostUsedBlocks},
            {"held_blocks", s.hostHeldBlocks},
            {"bytes", s.hostBytes},
            {"swaps_out", s.totalSwapsOut},
            {"swaps_in", s.totalSwapsIn},
            {"swapped_blocks", s.totalSwappedBlocks},
            {"hit_blocks", s.totalHostHitBlocks},
            {"declined_blocks", stats.hostDeclinedBlocks},
            {"refused_blocks", stats.hostRefusedBlocks},
            {"evictions", s.totalHostEvictions},
            {"stored_bytes", s.totalStoredBytes},
            {"loaded_bytes", s.totalLoadedBytes},
            {"store_ms", milliseconds(s.totalStore)},
            {"load_ms", milliseconds(s.totalLoad)},
            {"preempted_by_swap", preemptedJson(stats.swaps)},
            {"preempted_by_recompute", preemptedJson(stats.rereads)},
            {"rates",
             {{"ns_per_token", stats.rates.nanosPerToken},
              {"ns_per_token_and_position", stats.rates.nanosPerTokenAndPosition},
              {"ns_per_byte_stored", stats.rates.nanosPerByteStored},
              {"ns_per_byte_loaded", stats.rates.nanosPerByteLoaded}}}};
}

} // namespace

json answerJson(const api::Answer& answer) {
    json out;
    putText(out, answer.text);
    out["token_ids"] = answer.tokenIds;
    out["prompt_token_ids"] = answer.promptTokenIds;
    out["finish_reason"] = api::finishReasonName(answer.reason);
    out["stop_reason"] = stopReasonJson(answer);
    if (answer.error)
        out["error"] = errorJson(*answer.error);
    const api::Timings& t = answer.timings;
    out["timings"] = {{"load_ms", t.loadMs},     {"queue_ms", t.queueMs}, {"prefill_ms", t.prefillMs},
                      {"decode_ms", t.decodeMs}, {"ttft_ms", t.ttftMs},   {"e2e_ms", t.e2eMs}};
    const api::CacheReceipt& c = answer.cache;
    out["cache"] = {{"reused_tokens", c.reusedTokens},
                    {"computed_tokens", c.computedTokens},
                    {"preemptions", c.preemptions},
                    {"swapped_blocks", c.swappedBlocks},
                    {"loaded_blocks", c.loadedBlocks},
                    {"miss_reason", api::missReasonName(c.missReason)},
                    {"blocks_peak", c.blocksPeak},
                    {"blocks_available_after", c.blocksAvailableAfter},
                    {"blocks_cached_after", c.blocksCachedAfter}};
    if (c.cut.messages > 0)
        out["window_cut"] = {{"messages", c.cut.messages}, {"tokens", c.cut.tokens}};
    if (!answer.logprobs.empty()) {
        json list = json::array();
        for (const api::TokenLogprob& token : answer.logprobs) {
            json top = json::array();
            for (const auto& [id, logprob] : token.top)
                top.push_back({id, logprob});
            list.push_back({{"token", token.token}, {"logprob", token.logprob}, {"top", std::move(top)}});
        }
        out["logprobs"] = std::move(list);
    }
    return out;
}

json statsJson(const api::EngineStats& stats, const api::ModelInfo& model) {
    const metrics::StepSample& s = stats.last;
    json evictions = json::object();
    for (const auto& [reason, evicted] : stats.evictionsByReason)
        evictions[reason] = evicted;
    const std::uint64_t count = s.totalEvictions;
    return {
        {"model",
         {{"path", model::toValidUtf8(model.path)}, {"fingerprint", model.fingerprint}, {"backend", model.backend}}},
        {"blocks",
         {{"total", s.numBlocks},
          {"block_size", s.blockSize},
          {"bytes_per_block", s.bytesPerBlock},
          {"tail_bytes", model.tailBytes},
          {"window_group", windowGroupJson(model)},
          {"k_dtype", model.keyDtype},
          {"v_dtype", model.valueDtype},
          {"decided_by", model.poolRule},
          {"peak_referenced", stats.peakReferencedBlocks},
          {"at_peak", blocksJson(stats.peakBlocksByState)},
          {"at_end", blocksJson(s.blocksByState)}}},
        {"prefix",
         {{"query_tokens", s.totalPrefixQueryTokens},
          {"hit_tokens", s.totalPrefixHitTokens},
          {"readmit_query_tokens", s.totalReadmitTokens},
          {"readmit_hit_tokens", s.totalReadmitHitTokens}}},
        {"eviction", stats.eviction},
        {"evictions", std::move(evictions)},
        {"evicted_age_mean_ms",
         count == 0 ? json() : json(milliseconds(stats.evictedAge) / static_cast<double>(count))},
        {"allocator", allocatorJson(stats)},
        {"preemptions", s.totalPreemptions},
        {"swaps", s.totalSwapsOut},
        {"host", hostJson(stats)},
        {"copies", s.totalCopies},
        {"requests", {{"admitted", s.totalAdmitted}, {"finished", s.totalFinished}}},
        {"tokens", {{"prefill", s.totalPrefillTokens}, {"decode", s.totalDecodeTokens}}},
        {"steps", s.step},
        {"phases_ms",
         {{"schedule", milliseconds(s.totalSchedule)},
          {"embed", milliseconds(s.totalEmbed)},
          {"qkv", milliseconds(s.totalQkv)},
          {"attention", milliseconds(s.totalAttention)},
          {"mlp", milliseconds(s.totalMlp)},
          {"logits", milliseconds(s.totalLogits)},
          {"sampling", milliseconds(s.totalSampling)},
          {"postprocess", milliseconds(s.totalPostprocess)},
          {"publish", milliseconds(s.totalPublish)},
          {"step", milliseconds(s.totalStep)}}},
        {"memory",
         {{"weights_bytes", s.weightsBytes},
          {"pool_bytes", s.poolBytes},
          {"host_bytes", s.hostBytes},
          {"activations_peak_bytes", s.activationsPeakBytes}}},
    };
}

} // namespace kvscope::cli

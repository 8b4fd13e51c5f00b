// SPDX-License-Identifier: GPL-3.0-or-later
//
// The names of all fields, once: JSON writer, JSON reader, CSV writer, CSV reader and the tests visit records through
// these functions, so that no format can know a counter that another has forgotten.
//
// `visit(name, reference)` is called for every field, in the order in which it is written. `Record` may be const.
#pragma once

#include <string>

#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

template <class Visitor, class Record> void visitStep(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("step", r.step);
    visit("presence", r.presence);
    // Literal names: a state's name in a log must not change with the name shown anywhere else.
    static constexpr const char* kBlocks[kv::kBlockStateCount] = {
        "blocks_empty",  "blocks_filling", "blocks_active",      "blocks_shared",
        "blocks_cached", "blocks_pinned",  "blocks_in_transfer", "blocks_reserved"};
    for (std::size_t i = 0; i < kv::kBlockStateCount; ++i)
        visit(kBlocks[i], r.blocksByState[i]);
    visit("num_blocks", r.numBlocks);
    visit("block_size", r.blockSize);
    visit("referenced_blocks", r.referencedBlocks);
    visit("used_slots", r.usedSlots);
    visit("largest_free_extent", r.largestFreeExtent);
    visit("host_blocks", r.hostBlocks);
    visit("host_used_blocks", r.hostUsedBlocks);
    visit("host_held_blocks", r.hostHeldBlocks);
    visit("running", r.running);
    visit("waiting", r.waiting);
    visit("recent_reused_tokens", r.recentReusedTokens);
    visit("recent_prompt_tokens", r.recentPromptTokens);
    visit("total_prefill_tokens", r.totalPrefillTokens);
    visit("total_decode_tokens", r.totalDecodeTokens);
    visit("total_prefix_query_tokens", r.totalPrefixQueryTokens);
    visit("total_prefix_hit_tokens", r.totalPrefixHitTokens);
    visit("total_readmit_tokens", r.totalReadmitTokens);
    visit("total_readmit_hit_tokens", r.totalReadmitHitTokens);
    visit("total_admitted", r.totalAdmitted);
    visit("total_finished", r.totalFinished);
    visit("total_preemptions", r.totalPreemptions);
    visit("total_refused", r.totalRefused);
    visit("total_evictions", r.totalEvictions);
    visit("total_copies", r.totalCopies);
    visit("total_swaps_out", r.totalSwapsOut);
    visit("total_swaps_in", r.totalSwapsIn);
    visit("total_swapped_blocks", r.totalSwappedBlocks);
    visit("total_host_hit_blocks", r.totalHostHitBlocks);
    visit("total_host_evictions", r.totalHostEvictions);
    visit("total_stored_bytes", r.totalStoredBytes);
    visit("total_loaded_bytes", r.totalLoadedBytes);
    visit("total_store_ns", r.totalStore);
    visit("total_load_ns", r.totalLoad);
    visit("total_schedule_ns", r.totalSchedule);
    visit("total_embed_ns", r.totalEmbed);
    visit("total_qkv_ns", r.totalQkv);
    visit("total_attention_ns", r.totalAttention);
    visit("total_mlp_ns", r.totalMlp);
    visit("total_logits_ns", r.totalLogits);
    visit("total_sampling_ns", r.totalSampling);
    visit("total_postprocess_ns", r.totalPostprocess);
    visit("total_publish_ns", r.totalPublish);
    visit("total_step_ns", r.totalStep);
    visit("weights_bytes", r.weightsBytes);
    visit("pool_bytes", r.poolBytes);
    visit("bytes_per_block", r.bytesPerBlock);
    visit("window_used_bytes", r.windowUsedBytes);
    visit("window_cached_bytes", r.windowCachedBytes);
    visit("window_bytes", r.windowBytes);
    visit("tail_used_bytes", r.tailUsedBytes);
    visit("tail_bytes", r.tailBytes);
    visit("host_bytes", r.hostBytes);
    visit("activations_peak_bytes", r.activationsPeakBytes);
}

template <class Visitor, class Record> void visitMemory(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("total_bytes", r.totalBytes);
    visit("available_bytes", r.availableBytes);
    visit("process_bytes", r.processBytes);
}

template <class Visitor, class Record> void visitRequest(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("request", r.request);
    visit("owner", r.owner);
    visit("prompt", r.prompt);
    visit("messages", r.messages);
    visit("fork_of", r.forkOf);
    visit("fork_at", r.forkAt);
    visit("adapter", r.adapter);
    visit("temperature", r.temperature);
    visit("top_k", r.topK);
    visit("top_p", r.topP);
    visit("min_p", r.minP);
    visit("repeat_penalty", r.repeatPenalty);
    visit("presence_penalty", r.presencePenalty);
    visit("frequency_penalty", r.frequencyPenalty);
    visit("seed", r.seed);
    visit("max_tokens", r.maxTokens);
    visit("logprobs", r.logprobs);
    visit("ignore_eos", r.ignoreEos);
    visit("stop", r.stop);
    visit("logit_bias", r.logitBias);
}

template <class Visitor, class Record> void visitEvent(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("kind", r.kind);
    visit("request", r.request);
    visit("prompt_tokens", r.promptTokens);
    visit("needed_blocks", r.neededBlocks);
    visit("available_blocks", r.availableBlocks);
    visit("running_limit", r.runningLimit);
    visit("long_prefill_limit", r.longPrefillLimit);
    visit("preempted", r.preempted);
    visit("lent_to", r.lentTo);
    visit("reused_tokens", r.reusedTokens);
    visit("done_tokens", r.doneTokens);
    visit("total_tokens", r.totalTokens);
    visit("message", r.message);
    visit("swapped", r.swapped);
    visit("blocks", r.blocks);
    visit("sequence_tokens", r.tokens);
    visit("estimated_swap_ms", r.estimatedSwapMs);
    visit("estimated_recompute_ms", r.estimatedRecomputeMs);
    visit("restored_tokens", r.restored);
    visit("expected_ms", r.expectedMs);
    visit("took_ms", r.tookMs);
}

template <class Visitor, class Record> void visitReceipt(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("request", r.request);
    visit("owner", r.owner);
    visit("reason", r.reason);
    visit("error", r.error);
    visit("prompt_tokens", r.promptTokens);
    visit("reused_tokens", r.reusedTokens);
    visit("computed_tokens", r.computedTokens);
    visit("answer_tokens", r.answerTokens);
    visit("new_blocks", r.newBlocks);
    visit("preemptions", r.preemptions);
    visit("swapped_blocks", r.swappedBlocks);
    visit("loaded_blocks", r.loadedBlocks);
    visit("blocks_peak", r.blocksPeak);
    visit("blocks_available_after", r.blocksAvailableAfter);
    visit("blocks_cached_after", r.blocksCachedAfter);
    visit("block_size", r.blockSize);
    visit("miss_reason", r.missReason);
    visit("diverging_token", r.divergingToken);
    visit("queue_ms", r.queueMs);
    visit("prefill_ms", r.prefillMs);
    visit("decode_ms", r.decodeMs);
    visit("ttft_ms", r.ttftMs);
    visit("e2e_ms", r.e2eMs);
}

template <class Visitor, class Record> void visitBlock(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("epoch", r.epoch);
    visit("key", r.key);
    visit("block_size", r.blockSize);
    visit("num_blocks", r.numBlocks);
    visit("owners_changed", r.ownersChanged);
    visit("owners", r.owners);
    visit("runs", r.runs); //< [first, count, state, fill, owner, references, last_read]
}

template <class Visitor, class Record> void visitSequences(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("rows", r.rows);
}

template <class Visitor, class Record> void visitSequence(Visitor&& visit, Record& r) {
    visit("request", r.request);
    visit("owner", r.owner);
    visit("state", r.state);
    visit("tokens", r.tokens);
    visit("prompt_tokens", r.promptTokens);
    visit("computed_tokens", r.computedTokens);
    visit("blocks", r.blocks);
    visit("shared_blocks", r.sharedBlocks);
    visit("cached_blocks", r.cachedBlocks);
    visit("cached_prefix", r.cachedPrefix);
    visit("ttft_ms", r.ttftMs);
    visit("itl_ms", r.itlMs);
    visit("needed_blocks", r.neededBlocks);
    visit("available_blocks", r.availableBlocks);
    visit("running_limit", r.runningLimit);
    visit("long_prefill_limit", r.longPrefillLimit);
}

template <class Visitor, class Record> void visitText(Visitor&& visit, Record& r) {
    visit("time", r.time);
    visit("request", r.request);
    visit("part", r.part);
    visit("text", r.text);
    visit("tokens", r.tokens);
}

template <class Visitor, class Record> void visitHeader(Visitor&& visit, Record& r) {
    visit("program", r.program);
    visit("session", r.session);
    visit("model", r.modelName);
    visit("model_fingerprint", r.modelFingerprint);
    visit("backend", r.backend);
    visit("configuration", r.configuration);
    visit("clock_origin_ns", r.clockOrigin);
    visit("wall_origin_ms", r.wallOrigin);
}

/// Name of each record type in a log, and the visit of its fields.
template <class Visitor, class Record> void visitFields(Visitor&& visit, Record& r) {
    using Type = std::remove_const_t<Record>;
    if constexpr (std::is_same_v<Type, StepSample>)
        visitStep(visit, r);
    else if constexpr (std::is_same_v<Type, MemorySample>)
        visitMemory(visit, r);
    else if constexpr (std::is_same_v<Type, RequestRecord>)
        visitRequest(visit, r);
    else if constexpr (std::is_same_v<Type, EventRecord>)
        visitEvent(visit, r);
    else if constexpr (std::is_same_v<Type, ReceiptRecord>)
        visitReceipt(visit, r);
    else if constexpr (std::is_same_v<Type, BlockRecord>)
        visitBlock(visit, r);
    else if constexpr (std::is_same_v<Type, SequencesRecord>)
        visitSequences(visit, r);
    else if constexpr (std::is_same_v<Type, SequenceEntry>)
        visitSequence(visit, r);
    else if constexpr (std::is_same_v<Type, LogHeader>)
        visitHeader(visit, r);
    else
        visitText(visit, r);
}

template <class Record> constexpr const char* recordTypeName() {
    if constexpr (std::is_same_v<Record, StepSample>)
        return "step";
    else if constexpr (std::is_same_v<Record, MemorySample>)
        return "memory";
    else if constexpr (std::is_same_v<Record, RequestRecord>)
        return "request";
    else if constexpr (std::is_same_v<Record, EventRecord>)
        return "event";
    else if constexpr (std::is_same_v<Record, ReceiptRecord>)
        return "receipt";
    else if constexpr (std::is_same_v<Record, BlockRecord>)
        return "block";
    else if constexpr (std::is_same_v<Record, SequencesRecord>)
        return "sequences";
    else
        return "text";
}

} // namespace kvscope::metrics

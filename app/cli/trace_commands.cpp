// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli trace replay: what a recorded run would have hit and evicted under other options.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/cli/command.h"
#include "engine/api/block_trace.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

struct ReplayOptions {
    std::string file;
    std::int64_t numBlocks = 0;
    int blockSize = 0;
    std::string eviction, allocator, contiguousReserve;
    bool noPrefixCaching = false;
    std::optional<std::uint64_t> hostCacheBytes;
    int maxSequences = 0;
    std::string schedulingPolicy;
    std::optional<double> watermark;
    bool asJson = false;
};

/// An enumeration by its name; none = not given.
template <class Kind>
void choose(Kind& into, const std::string& name, std::optional<Kind> (*of)(std::string_view), const char* sentence) {
    if (name.empty())
        return;
    const auto kind = of(name);
    if (!kind)
        throw UsageError(sentence);
    into = *kind;
}

/// Another block size changes what a slot of the host tier holds; the tier keeps its bytes.
void chooseHost(api::TraceOptions& o, const api::TraceOptions& recorded, const ReplayOptions& given) {
    std::uint64_t bytes = static_cast<std::uint64_t>(o.hostSlots) * (o.blockBytes + o.windowBlockBytes);
    const auto size = static_cast<std::uint64_t>(o.blockSize), before = static_cast<std::uint64_t>(recorded.blockSize);
    o.blockBytes = o.blockBytes * size / before;
    o.windowBlockBytes = o.windowBlockBytes * size / before;
    o.tailBytes = o.tailBytes * size / before;
    bytes = given.hostCacheBytes.value_or(bytes);
    if (o.allocator != kv::AllocatorKind::Paged) {
        if (given.hostCacheBytes.value_or(0) > 0)
            throw UsageError("--host-cache-bytes needs --allocator paged: an extent is never moved.");
        bytes = 0;
    }
    if (bytes > 0 && o.sinkWindow > 0)
        throw UsageError("--host-cache-bytes does not go with a log that was recorded with --window-policy sinks.");
    if (bytes > 0 && o.blockBytes == 0)
        throw UsageError("--host-cache-bytes needs a block log that says how large a block is; record a newer one.");
    constexpr std::uint64_t kMostSlots = std::uint64_t(1) << 24;
    const std::uint64_t slot = std::max<std::uint64_t>(1, o.blockBytes + o.windowBlockBytes);
    o.hostSlots = static_cast<std::int32_t>(std::min(kMostSlots, bytes / slot));
    if (bytes > 0 && o.hostSlots == 0)
        throw UsageError("--host-cache-bytes must hold one block of " + std::to_string(slot) +
                         " bytes at least, or be 0.");
}

/// The recorded options, changed by what was given. With another block size and no number of blocks the pool keeps its
/// tokens.
api::TraceOptions optionsFor(const api::TraceOptions& recorded, const ReplayOptions& given) {
    api::TraceOptions o = recorded;
    choose(o.eviction, given.eviction, kv::evictionKindOf, "--eviction must be lru, lfu, position or cost.");
    choose(o.allocator, given.allocator, kv::allocatorOf, "--allocator must be paged or contiguous.");
    choose(o.reserve, given.contiguousReserve, kv::contiguousReserveOf,
           "--contiguous-reserve must be model or request.");
    choose(o.policy, given.schedulingPolicy, sched::schedulingPolicyOf,
           "--scheduling-policy must be fcfs, short-first or prefix-first.");
    if (given.blockSize != 0) {
        if (given.blockSize != 8 && given.blockSize != 16 && given.blockSize != 32 && given.blockSize != 64)
            throw UsageError("--block-size must be 8, 16, 32 or 64.");
        const std::int64_t slots = static_cast<std::int64_t>(o.numBlocks) * o.blockSize;
        o.blockSize = given.blockSize;
        o.numBlocks = static_cast<std::int32_t>(slots / o.blockSize);
    }
    if (given.numBlocks < 0 || given.numBlocks > (1 << 24))
        throw UsageError("--num-blocks must be between 1 and 16777216.");
    if (given.numBlocks > 0)
        o.numBlocks = static_cast<std::int32_t>(given.numBlocks);
    if (o.numBlocks == 0)
        throw UsageError("The recorded pool does not hold one block of this --block-size; add --num-blocks.");
    if (given.maxSequences < 0)
        throw UsageError("--max-num-seqs must be at least 1.");
    if (given.maxSequences > 0) {
        o.maxSequences = given.maxSequences;
        o.tailSlots = o.tailSlots > 0 ? o.maxSequences : 0; // one for each sequence that runs
    }
    if (given.watermark && !(*given.watermark >= 0 && *given.watermark < 1))
        throw UsageError("--watermark must be between 0 and 1 (excluded).");
    o.watermark = given.watermark.value_or(o.watermark);
    o.prefixCaching = o.prefixCaching && !given.noPrefixCaching && o.allocator == kv::AllocatorKind::Paged;
    chooseHost(o, recorded, given);
    return o;
}

json totalsJson(const api::BlockTrace& trace) {
    const api::TraceTotals t = totalsOf(trace);
    const api::TraceOptions& o = trace.options;
    json evictions = json::object();
    for (std::size_t i = 0; i < t.evictions.size(); ++i)
        evictions[kv::evictionReasonName(static_cast<kv::EvictionReason>(i))] = t.evictions[i];
    json ended = json::object();
    for (std::size_t i = 0; i < t.ended.size(); ++i)
        ended[sched::endReasonName(static_cast<sched::EndReason>(i))] = t.ended[i];
    json options{{"allocator", kv::allocatorName(o.allocator)},
                 {"block_size", o.blockSize},
                 {"num_blocks", o.numBlocks},
                 {"prefix_caching", o.prefixCaching},
                 {"eviction", kv::evictionKindName(o.eviction)},
                 {"max_num_seqs", o.maxSequences},
                 {"scheduling_policy", sched::schedulingPolicyName(o.policy)},
                 {"watermark", o.watermark},
                 {"host_blocks", o.hostSlots}};
    if (o.allocator == kv::AllocatorKind::Contiguous)
        options["contiguous_reserve"] = kv::contiguousReserveName(o.reserve);
    return {{"options", std::move(options)},
            {"requests", t.requests},
            {"ended", std::move(ended)},
            {"steps", t.steps},
            {"query_tokens", t.queryTokens},
            {"hit_tokens", t.hitTokens},
            {"hit_rate",
             t.queryTokens == 0 ? json() : json(static_cast<double>(t.hitTokens) / static_cast<double>(t.queryTokens))},
            {"readmit_query_tokens", t.readmitQueryTokens},
            {"readmit_hit_tokens", t.readmitHitTokens},
            {"evictions", std::move(evictions)},
            {"preemptions", t.preemptions},
            {"swaps", t.swaps},
            {"loaded_blocks", t.loadedBlocks},
            {"peak_blocks", t.peakBlocks}};
}

void printReadable(const json& recorded, const json& replayed) {
    std::printf("%-22s %12s %12s\n", "", "recorded", "replayed");
    for (const char* name : {"requests", "steps", "query_tokens", "hit_tokens", "readmit_query_tokens",
                             "readmit_hit_tokens", "preemptions", "swaps", "loaded_blocks", "peak_blocks"})
        std::printf("%-22s %12s %12s\n", name, recorded[name].dump().c_str(), replayed[name].dump().c_str());
    for (const auto& [reason, count] : recorded["ended"].items())
        if (count != 0 || replayed["ended"][reason] != 0)
            std::printf("ended (%s)%*s %12s %12s\n", reason.c_str(), 14 - static_cast<int>(reason.size()), "",
                        count.dump().c_str(), replayed["ended"][reason].dump().c_str());
    for (const auto& [reason, count] : recorded["evictions"].items())
        std::printf("evictions (%s)%*s %12s %12s\n", reason.c_str(), 9 - static_cast<int>(reason.size()), "",
                    count.dump().c_str(), replayed["evictions"][reason].dump().c_str());
}

int runReplay(const ReplayOptions& given) {
    const api::BlockTrace recorded = valueOrThrow(api::readBlockTrace(given.file));
    const api::TraceOptions options = optionsFor(recorded.options, given);
    const api::BlockTrace replayed = api::replayTrace(recorded, options);
    const bool sameOptions = options == recorded.options;
    const std::string difference = sameOptions ? traceDifference(recorded, replayed) : std::string();
    const json was = totalsJson(recorded), would = totalsJson(replayed);
    if (given.asJson)
        printJson({{"recorded", was}, {"replayed", would}, {"exact", sameOptions ? json(difference.empty()) : json()}});
    else
        printReadable(was, would);
    if (!difference.empty())
        throw CommandError("The replay differs from the recording, which was perhaps cut off or changed: " +
                           difference);
    return 0;
}

} // namespace

Verb addTrace(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    Verb verb;
    verb.app = app.add_subcommand("trace", "Work with block logs (generate --log-blocks)");
    verb.app->require_subcommand(1, 1);
    CLI::App* replay = verb.app->add_subcommand(
        "replay", "Hits and evictions of a recorded run under other options, without a model.\n"
                  "Requests arrive in the recorded order; options that are not given are the recorded ones. Under the\n"
                  "recorded options every hit and every eviction is the recorded one, else the exit status is 1.");
    replay->add_option("file", options->file, "Block log")->required();
    replay->add_option("--num-blocks", options->numBlocks, "Blocks of the pool [as recorded]");
    replay->add_option("--block-size", options->blockSize,
                       "Tokens per block: 8, 16, 32, 64; the pool keeps its tokens [as recorded]");
    replay->add_option("--eviction", options->eviction, "lru, lfu, position, cost [as recorded]");
    replay->add_option("--allocator", options->allocator, "paged, contiguous [as recorded]");
    replay->add_option("--contiguous-reserve", options->contiguousReserve, "model, request [as recorded]");
    replay->add_flag("--no-enable-prefix-caching", options->noPrefixCaching, "Every prompt from its first token");
    replay->add_option("--max-num-seqs", options->maxSequences, "Most sequences in one step [as recorded]");
    replay->add_option("--scheduling-policy", options->schedulingPolicy,
                       "fcfs, short-first, prefix-first [as recorded]");
    replay->add_option("--watermark", options->watermark,
                       "Share of the blocks kept back when a request is admitted (paged) [as recorded]");
    replay->add_option("--host-cache-bytes", options->hostCacheBytes, "Bytes of the host tier; 0 = none [as recorded]");
    replay->add_flag("--json", options->asJson, "JSON on standard output and nothing else");
    verb.run = [options] { return runReplay(*options); };
    return verb;
}

} // namespace kvscope::cli

// SPDX-License-Identifier: GPL-3.0-or-later
//
// One set of requests, run in many ways; everything about the answers must be the same to the last bit.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/support/engine_harness.h"
#include "tests/support/slow_backend.h"

namespace kvscope::test {

/// A way to run the requests.
struct Way {
    std::string name;
    api::EngineConfig config;
    bool together = false;    ///< all requests at once instead of one after another
    bool mustPreempt = false; ///< the pool is small enough that somebody has to give way
    bool mustReuse = false;   ///< later prompts must find earlier blocks
    bool mustSwap = false;    ///< somebody must go to the host tier and come back
};

/// Eight prompts with common beginnings of several lengths, some of them longer than an attention partition (256).
inline std::vector<std::vector<TokenId>> exactnessPrompts(std::int32_t vocab, std::size_t longest) {
    std::mt19937 random(7);
    std::uniform_int_distribution<TokenId> token(0, vocab - 1);
    std::vector<TokenId> common(longest);
    for (TokenId& id : common)
        id = token(random);
    std::vector<std::vector<TokenId>> prompts;
    for (const std::size_t shared : {0u, 15u, 16u, 17u, 40u, 64u, 130u, static_cast<unsigned>(longest)}) {
        std::vector<TokenId> prompt(common.begin(), common.begin() + std::min<std::ptrdiff_t>(shared, longest));
        for (int i = 0; i < 5; ++i)
            prompt.push_back(token(random));
        prompts.push_back(std::move(prompt));
    }
    return prompts;
}

/// Half greedy, half drawn; log-probabilities are compared as bits, so a difference shows before it changes a token.
inline std::vector<api::Request> exactnessRequests(const std::vector<std::vector<TokenId>>& prompts,
                                                   std::int32_t maxTokens) {
    std::vector<api::Request> requests;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        api::Request r = EngineHarness::request(static_cast<std::int64_t>(i), api::TokenPrompt{prompts[i]}, maxTokens);
        r.sampling.ignoreEos = true;
        r.sampling.logprobs = 3;
        if (i % 2 == 1) {
            r.sampling.temperature = 0.9;
            r.sampling.topP = 0.95;
            r.sampling.repeatPenalty = 1.1;
            r.sampling.seed = 40 + i;
        }
        requests.push_back(std::move(r));
    }
    return requests;
}

inline std::string firstDifference(const api::Answer& a, const api::Answer& b) {
    if (a.error || b.error)
        return "error: " + (a.error ? a.error->message : b.error->message);
    if (a.tokenIds.size() != b.tokenIds.size())
        return "number of tokens";
    for (std::size_t i = 0; i < a.tokenIds.size(); ++i) {
        if (a.tokenIds[i] != b.tokenIds[i])
            return "token " + std::to_string(i);
        if (a.logprobs[i].logprob != b.logprobs[i].logprob || a.logprobs[i].top != b.logprobs[i].top)
            return "log-probability of token " + std::to_string(i);
    }
    return a.text == b.text && a.reason == b.reason ? "" : "text or reason";
}

/// Runs the requests in one way; answers in order of the requests. `complaint` says what the way failed to bring about.
inline std::vector<api::Answer> runWay(const Way& way, const std::vector<api::Request>& requests,
                                       std::string& complaint) {
    EngineHarness harness;
    if (way.mustSwap)
        harness.makeBackend = slowBackend(kSlowSteps);
    harness.load(way.config);
    for (const api::Request& request : requests) {
        harness.submit(request);
        if (!way.together)
            harness.finish();
    }
    harness.finish();
    const metrics::StepSample last = harness.engine->sample();
    if (way.mustPreempt && last.totalPreemptions == 0)
        complaint = "nobody was preempted";
    if (way.mustReuse && last.totalPrefixHitTokens == 0)
        complaint = "nothing was reused";
    if (way.mustSwap && last.totalSwapsIn == 0)
        complaint = "nobody was swapped";
    std::vector<api::Answer> answers;
    for (const api::Request& request : requests)
        answers.push_back(harness.answers.at(request.id));
    return answers;
}

/// Every way against the first one. Empty = all the same.
inline std::string compareWays(const std::vector<Way>& ways, const std::vector<api::Request>& requests) {
    std::string complaint;
    const std::vector<api::Answer> expected = runWay(ways.front(), requests, complaint);
    for (const Way& way : ways) {
        const std::vector<api::Answer> answers = runWay(way, requests, complaint);
        if (!complaint.empty())
            return way.name + ": " + complaint;
        for (std::size_t i = 0; i < answers.size(); ++i)
            if (const std::string difference = firstDifference(expected[i], answers[i]); !difference.empty())
                return way.name + ", request " + std::to_string(i) + ": " + difference;
    }
    return {};
}

/// Of a host tier that holds what the pools of these tests do not.
inline constexpr std::uint64_t kHostBytes = std::uint64_t(4) << 20;

/// The ways that must not matter (kv-cache contract): cache on or off, block and chunk size, company, threads, room.
inline std::vector<Way> allWays(const api::EngineConfig& base, std::int64_t tightBlocks) {
    std::vector<Way> ways;
    const auto add = [&](const std::string& name, auto change) {
        Way way;
        way.name = name;
        way.config = base;
        change(way);
        ways.push_back(std::move(way));
    };
    add("alone, cache off", [](Way& w) { w.config.prefixCaching = false; });
    add("alone, cache on", [](Way& w) { w.mustReuse = true; });
    for (const int size : {8, 32, 64})
        add("blocks of " + std::to_string(size), [size](Way& w) {
            w.config.blockSize = size;
            w.mustReuse = true;
        });
    add("together", [](Way& w) { w.together = true; });
    for (const int chunk : {1, 7, 48, 512})
        add("together in chunks of " + std::to_string(chunk), [chunk](Way& w) {
            w.together = true;
            w.config.maxBatchedTokens = chunk;
        });
    for (const auto eviction : {kv::EvictionKind::Lfu, kv::EvictionKind::Position, kv::EvictionKind::Cost})
        add(std::string("evicting by ") + kv::evictionKindName(eviction), [=](Way& w) {
            w.config.eviction = eviction;
            w.config.numBlocks = tightBlocks;
        });
    for (const auto reserve : {kv::ContiguousReserve::Model, kv::ContiguousReserve::Request})
        add(std::string("together in extents by ") + kv::contiguousReserveName(reserve), [=](Way& w) {
            w.config.allocator = kv::AllocatorKind::Contiguous;
            w.config.contiguousReserve = reserve;
            w.together = true;
        });
    add("two threads", [](Way& w) { w.config.threads = 2; });
    add("two threads, together, chunks of 7, blocks of 8", [](Way& w) {
        w.config.threads = 2;
        w.config.blockSize = 8;
        w.config.maxBatchedTokens = 7;
        w.together = true;
    });
    add("a pool that preempts", [tightBlocks](Way& w) {
        w.config.numBlocks = tightBlocks;
        w.config.watermark = 0;
        w.together = true;
        w.mustPreempt = true;
    });
    add("a pool that preempts into a host tier", [tightBlocks](Way& w) {
        w.config.numBlocks = tightBlocks;
        w.config.watermark = 0;
        w.config.hostCacheBytes = kHostBytes;
        w.together = true;
        w.mustPreempt = true;
        w.mustSwap = true;
    });
    add("the same in chunks of 7", [tightBlocks](Way& w) {
        w.config.numBlocks = tightBlocks;
        w.config.watermark = 0;
        w.config.hostCacheBytes = kHostBytes;
        w.config.maxBatchedTokens = 7;
        w.together = true;
        w.mustPreempt = true;
        w.mustSwap = true;
    });
    add("alone, over a host tier", [tightBlocks](Way& w) {
        w.config.numBlocks = tightBlocks;
        w.config.hostCacheBytes = kHostBytes;
        w.mustReuse = true;
    });
    return ways;
}

} // namespace kvscope::test

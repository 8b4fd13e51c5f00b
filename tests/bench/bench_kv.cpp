// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache at 1 k, 16 k and 65 k blocks of 16 slots: what one request, one token, one map costs, and each operation
// per block under each eviction policy. Pools are full: every new block is an eviction, as in a program that has run
// for a while.
#include <benchmark/benchmark.h>
#include <ctime>
#include <random>

#include "engine/metrics/block_map_builder.h"
#include "engine/sched/scheduler.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kBlockSize = 16;
constexpr int kPromptTokens = 2048;

CacheConfig poolOf(benchmark::State& state) {
    return cacheConfig(static_cast<int>(state.range(0)), kBlockSize);
}

Tokens prompt(int number) {
    return tokenRange(number * 100000, kPromptTokens);
}

AdmitRequest request(const Tokens& tokens, OwnerId owner = OwnerId(1)) {
    AdmitRequest request;
    request.tokens = tokens;
    request.owner = owner;
    return request;
}

/// Every block cached: the pool of a program that has answered for hours.
void fill(KvCache& cache) {
    for (int i = 0; cache.pool().counts()[0] >= static_cast<std::uint32_t>(cache.blocksFor(kPromptTokens)); ++i) {
        const Tokens tokens = prompt(i);
        Admission admission = std::move(cache.admit(request(tokens, OwnerId(i)), 0).value());
        cache.advance(admission.table, std::span(tokens).subspan(static_cast<std::size_t>(admission.reusedTokens)), 0);
    }
}

/// A prompt of 2,048 tokens whose beginning nobody has computed: 128 blocks taken and given back.
void admitMiss(benchmark::State& state) {
    KvCache cache(poolOf(state));
    fill(cache);
    const Tokens tokens = prompt(7'000);
    for (auto _ : state) {
        AdmitResult result = cache.admit(request(tokens), 0);
        benchmark::DoNotOptimize(result);
    }
}
BENCHMARK(admitMiss)->Arg(1024)->Arg(16384)->Arg(65536)->Unit(benchmark::kMicrosecond);

/// The same, all of it cached: 127 blocks found, compared, taken out of the middle of the free list and put back.
void admitHit(benchmark::State& state) {
    KvCache cache(poolOf(state));
    fill(cache);
    const Tokens tokens = prompt(0);
    for (auto _ : state) {
        AdmitResult result = cache.admit(request(tokens), 0);
        benchmark::DoNotOptimize(result);
    }
}
BENCHMARK(admitHit)->Arg(1024)->Arg(16384)->Arg(65536)->Unit(benchmark::kMicrosecond);

/// A miss with its cause found out: walks the pool once.
void admitExplained(benchmark::State& state) {
    KvCache cache(poolOf(state));
    fill(cache);
    const Tokens tokens = prompt(7'000);
    AdmitRequest explained = request(tokens, OwnerId(999));
    explained.explain = true;
    for (auto _ : state) {
        AdmitResult result = cache.admit(explained, 0);
        benchmark::DoNotOptimize(result);
    }
}
BENCHMARK(admitExplained)->Arg(1024)->Arg(16384)->Arg(65536)->Unit(benchmark::kMicrosecond);

/// The life of a prompt of 2,048 tokens: 128 blocks evicted and taken, written, sealed, hashed, published, given back.
void computePrompt(benchmark::State& state) {
    KvCache cache(poolOf(state));
    fill(cache);
    Tokens tokens = prompt(7'000);
    for (auto _ : state) {
        ++tokens[0]; // another prompt each time
        Admission admission = std::move(cache.admit(request(tokens), 0).value());
        cache.advance(admission.table, tokens, 0);
    }
    if (cache.counters().totalEvictions() == 0)
        state.SkipWithError("nothing was evicted");
}
BENCHMARK(computePrompt)->Arg(1024)->Arg(16384)->Arg(65536)->Unit(benchmark::kMicrosecond);

/// The whole pool as 8 bytes a block, into memory that is there already.
void blockMap(benchmark::State& state) {
    KvCache cache(poolOf(state));
    fill(cache);
    metrics::BlockMapSnapshot map;
    for (auto _ : state) {
        metrics::buildBlockMap(cache.pool(), 1, 0, map);
        benchmark::DoNotOptimize(map.cells.data());
    }
}
BENCHMARK(blockMap)->Arg(1024)->Arg(16384)->Arg(65536)->Unit(benchmark::kMicrosecond);

/// schedule() + complete() of a step with 16 answers of about 2,000 tokens each, one token each.
void decodeStep(benchmark::State& state) {
    KvCache cache(poolOf(state));
    sched::SchedulerConfig config;
    config.tokenBudget = 16 * kPromptTokens;
    sched::Scheduler scheduler(cache, config);
    for (int i = 0; i < 16; ++i) {
        sched::SequenceSpec spec;
        spec.owner = OwnerId(i);
        spec.tokens = prompt(i);
        spec.maxNewTokens = 1 << 30;
        scheduler.submit(std::move(spec), 0);
    }
    std::vector<sched::DrawnToken> drawn;
    for (auto _ : state) {
        const sched::StepPlan& plan = scheduler.schedule(0);
        drawn.assign(static_cast<std::size_t>(plan.draws), {1, false});
        scheduler.complete(drawn, 0);
    }
}
BENCHMARK(decodeStep)->Arg(65536)->Iterations(20000)->Unit(benchmark::kMicrosecond);

// ---- one operation each, per block touched, under every eviction policy ----

CacheConfig policyOf(benchmark::State& state) {
    CacheConfig config = poolOf(state);
    config.eviction = static_cast<EvictionKind>(state.range(1));
    config.attentionPerToken = 2.6e-4; // of the default model
    state.SetLabel(evictionKindName(config.eviction));
    return config;
}

/// CPU time of this thread: other programs do not count, though what they leave of the caches does.
double cpuSeconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Counts only the time of `work`, and what it is per block.
template <class Work> void timed(benchmark::State& state, std::int64_t blocks, Work&& work) {
    const double start = cpuSeconds();
    work();
    state.SetIterationTime((cpuSeconds() - start) / static_cast<double>(blocks));
}

/// All blocks cached, asked for unequally often, as after hours of work.
void fillUnequally(KvCache& cache) {
    fill(cache);
    std::mt19937 random(1);
    const int prompts = cache.numBlocks() / cache.blocksFor(kPromptTokens);
    for (int i = 0; i < 3 * prompts; ++i) {
        const Tokens tokens =
            prompt(static_cast<int>(random() % static_cast<unsigned>(prompts) *
                                    (random() % static_cast<unsigned>(prompts)) / static_cast<unsigned>(prompts)));
        AdmitResult hit = cache.admit(request(tokens), 0);
        benchmark::DoNotOptimize(hit);
    }
}

void allocate(benchmark::State& state) {
    KvCache cache(policyOf(state));
    const Tokens tokens = prompt(1);
    for (auto _ : state) {
        AdmitResult result = tl::unexpected(Shortage{});
        timed(state, kPromptTokens / kBlockSize, [&] { result = cache.admit(request(tokens), 0); });
        benchmark::DoNotOptimize(result);
    }
}

void release(benchmark::State& state) {
    KvCache cache(policyOf(state));
    fillUnequally(cache);
    int number = 20'000;
    for (auto _ : state) {
        const Tokens tokens = prompt(number++ % 21'000);
        Admission admission = std::move(cache.admit(request(tokens), 0).value());
        cache.advance(admission.table, std::span(tokens).subspan(static_cast<std::size_t>(admission.reusedTokens)), 0);
        timed(state, kPromptTokens / kBlockSize, [&] { admission.table.release(); });
    }
}

void hit(benchmark::State& state) {
    KvCache cache(policyOf(state));
    fillUnequally(cache);
    const int prompts = cache.numBlocks() / cache.blocksFor(kPromptTokens) - 1;
    int number = 0;
    for (auto _ : state) {
        const Tokens tokens = prompt(number++ % prompts);
        AdmitResult result = tl::unexpected(Shortage{});
        timed(state, kPromptTokens / kBlockSize, [&] { result = cache.admit(request(tokens), 0); });
        if (result->reusedTokens == 0)
            state.SkipWithError("nothing was hit");
    }
}

/// Each new block is another one's end.
void evict(benchmark::State& state) {
    KvCache cache(policyOf(state));
    fillUnequally(cache);
    Tokens tokens = prompt(7'000);
    const std::uint64_t before = cache.counters().totalEvictions();
    std::uint64_t taken = 0;
    for (auto _ : state) {
        ++tokens[0];
        AdmitResult result = tl::unexpected(Shortage{});
        timed(state, kPromptTokens / kBlockSize, [&] { result = cache.admit(request(tokens), 0); });
        cache.advance(result->table, tokens, 0);
        taken += kPromptTokens / kBlockSize;
    }
    if (cache.counters().totalEvictions() - before + 512 < taken)
        state.SkipWithError("not every block was evicted for another");
}

/// A second reader of blocks that somebody reads already.
void share(benchmark::State& state) {
    KvCache cache(policyOf(state));
    fillUnequally(cache);
    const Tokens tokens = prompt(3);
    const AdmitResult first = cache.admit(request(tokens), 0);
    for (auto _ : state) {
        AdmitResult result = tl::unexpected(Shortage{});
        timed(state, kPromptTokens / kBlockSize, [&] { result = cache.admit(request(tokens, OwnerId(2)), 0); });
        benchmark::DoNotOptimize(result);
    }
}

void perBlock(benchmark::internal::Benchmark* benchmark) {
    benchmark->ArgsProduct({{65536}, {0, 1, 2, 3}})->UseManualTime()->Unit(benchmark::kNanosecond)->Iterations(4000);
}
BENCHMARK(allocate)->Apply(perBlock);
BENCHMARK(release)->Apply(perBlock);
BENCHMARK(hit)->Apply(perBlock);
BENCHMARK(evict)->Apply(perBlock);
BENCHMARK(share)->Apply(perBlock);

} // namespace

BENCHMARK_MAIN();

// SPDX-License-Identifier: GPL-3.0-or-later
// What recording costs: first what the engine thread pays (budget: under 1 % of a step, which takes milliseconds), then
// what the recorder's own thread pays for the same things.
#include <benchmark/benchmark.h>

#include "engine/metrics/log_json.h"
#include "engine/metrics/recorder.h"

using namespace kvscope;
using namespace kvscope::metrics;

namespace {

StepSample sampleAt(std::int64_t i) {
    StepSample sample;
    sample.time = i * 10'000'000;
    sample.step = static_cast<std::uint64_t>(i);
    sample.presence = ~0u;
    sample.totalDecodeTokens = static_cast<std::uint64_t>(i) * 7;
    sample.totalAttention = i * 4'123'456;
    sample.totalMlp = i * 5'234'567;
    sample.totalStep = i * 9'876'543;
    sample.poolBytes = 1ull << 30;
    return sample;
}

BlockMapSnapshot mapOf(std::int64_t blocks) {
    BlockMapSnapshot map;
    map.blockSize = 16;
    map.cells.resize(static_cast<std::size_t>(blocks));
    for (std::size_t i = 0; i < map.cells.size(); ++i)
        map.cells[i] = {kv::BlockState::Active, 16, static_cast<std::uint16_t>(i / 512), 1,
                        static_cast<std::uint16_t>(i / 64)};
    return map;
}

void engineAddsSample(benchmark::State& state) {
    Recorder recorder({});
    recorder.begin({});
    std::int64_t i = 0;
    for (auto _ : state)
        recorder.add(sampleAt(++i));
}
BENCHMARK(engineAddsSample)->Iterations(20000);

void enginePublishesMap(benchmark::State& state) {
    Recorder recorder({});
    recorder.begin({});
    BlockMapSnapshot map = mapOf(state.range(0));
    for (auto _ : state) {
        ++map.epoch;
        recorder.map(map);
    }
}
BENCHMARK(enginePublishesMap)->Arg(4096)->Arg(65536);

void recorderEncodesSample(benchmark::State& state) {
    std::string out;
    std::int64_t i = 0;
    for (auto _ : state) {
        out.clear();
        appendJsonRecord(out, sampleAt(++i));
        benchmark::DoNotOptimize(out.data());
    }
    state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(recorderEncodesSample);

/// A sequence of 20,000 tokens decodes: a quarter of a second later all its blocks were read again.
void recorderEncodesMapChange(benchmark::State& state) {
    BlockMapSnapshot map = mapOf(state.range(0));
    BlockMapEncoder encoder;
    (void)encoder.encode(map);
    std::string out;
    for (auto _ : state) {
        for (std::size_t i = 1000; i < 2250; ++i)
            ++map.cells[i].lastRead;
        out.clear();
        appendJsonRecord(out, *encoder.encode(map));
        benchmark::DoNotOptimize(out.data());
    }
    state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(recorderEncodesMapChange)->Arg(4096)->Arg(65536);

} // namespace

BENCHMARK_MAIN();

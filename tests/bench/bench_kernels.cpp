// SPDX-License-Identifier: GPL-3.0-or-later
// How fast the CPU kernels are, beside what the machine could do. Whole steps of a model of SmolLM2-135M's shape with
// random Q4_1 weights (Q8_0 embedding), single matrices and attention on one thread. Each line reports bytes of weights
// and KV read per second and int8 operations per second; the roof lines are measured the same minute on the same
// threads.
//
//   bench_kernels --benchmark_filter=decode --kv-threads=1 --kv-isa=avx2 --kv-format=k8v4
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kernel_team.h"
#include "kernels/cpu/weight_packing.h"

using namespace kvscope::kernels;

namespace {

CpuOptions gOptions;
KvFormat gFormat;

struct Shape {
    std::int32_t hidden = 576, heads = 9, kvHeads = 3, headDim = 64, ff = 1536, vocab = 49152, layers = 30;
    DType type = DType::Q4_1, embedding = DType::Q8_0;
};

std::size_t blockBytes(DType type) {
    return type == DType::Q8_0 ? 34 : type == DType::Q4_1 ? 20 : 18;
}

class Model {
public:
    Model(const Shape& shape, std::int32_t maxTokens, std::int32_t maxLength) : m_shape(shape) {
        m_backend = std::move(*makeCpuBackend(gOptions).value);
        const std::int32_t blocks = maxLength / kBlock + 1;
        KvLayout kv{shape.layers, shape.kvHeads, shape.headDim, shape.headDim, kBlock, blocks, gFormat, 0, {}};
        if (gFormat.quantized())
            kv.tailSlots = 64;
        m_kvBytes = static_cast<double>(kv.bytesPerBlock()) / kBlock;
        if (const auto made = m_backend->createKvCache(kv); !made)
            std::fprintf(stderr, "%s\n", made.error.message.c_str());
        Program p;
        p.hidden = shape.hidden;
        p.vocab = shape.vocab;
        std::vector<float> frequencies(static_cast<std::size_t>(shape.headDim / 2), 0.01f);
        p.ropes = {{RopeStyle::Interleaved, shape.headDim, frequencies, 1.0f}};
        p.maxTokens = maxTokens;
        p.maxSequences = 64;
        p.maxLogitRows = 64;
        p.maxTableEntries = blocks * 64;
        const WeightId embedding = matrix(shape.vocab, shape.hidden, shape.embedding);
        p.ops.emplace_back(EmbedOp{embedding, 1.0f});
        const std::int32_t q = shape.heads * shape.headDim, k = shape.kvHeads * shape.headDim;
        for (std::int32_t i = 0; i < shape.layers; ++i) {
            p.ops.emplace_back(QkvOp{i,
                                     vector(),
                                     1e-5f,
                                     matrix(q, shape.hidden, shape.type),
                                     matrix(k, shape.hidden, shape.type),
                                     matrix(k, shape.hidden, shape.type),
                                     WeightId{},
                                     WeightId{},
                                     WeightId{},
                                     shape.heads,
                                     shape.kvHeads,
                                     shape.headDim,
                                     shape.headDim,
                                     0,
                                     {},
                                     {}});
            p.ops.emplace_back(AttentionOp{i,
                                           0.125f,
                                           matrix(shape.hidden, q, shape.type),
                                           shape.heads,
                                           shape.kvHeads,
                                           shape.headDim,
                                           shape.headDim,
                                           0,
                                           0,
                                           {}});
            p.ops.emplace_back(MlpOp{vector(),
                                     1e-5f,
                                     matrix(shape.ff, shape.hidden, shape.type),
                                     matrix(shape.ff, shape.hidden, shape.type),
                                     matrix(shape.hidden, shape.ff, shape.type),
                                     Activation::Silu,
                                     {}});
        }
        p.ops.emplace_back(LogitsOp{vector(), 1e-5f, embedding});
        if (const auto set = m_backend->setProgram(p); !set)
            std::fprintf(stderr, "%s\n", set.error.message.c_str());
    }

    /// One step of `sequences` sequences of `length` tokens each, the last `tokens` of which are computed.
    void step(std::int32_t sequences, std::int32_t length, std::int32_t tokens) {
        std::vector<std::int32_t> ids, positions, mapping, cu{0}, lengths, tables, starts{0}, rows;
        for (std::int32_t s = 0; s < sequences; ++s) {
            for (std::int32_t i = length - tokens; i < length; ++i) {
                ids.push_back((i * 37 + s) % m_shape.vocab);
                positions.push_back(i);
                mapping.push_back(i); // all sequences use the same blocks: only speed is of interest
            }
            cu.push_back(static_cast<std::int32_t>(ids.size()));
            lengths.push_back(length);
            for (std::int32_t b = 0; b * kBlock < length; ++b)
                tables.push_back(b);
            starts.push_back(static_cast<std::int32_t>(tables.size()));
            rows.push_back(static_cast<std::int32_t>(ids.size()) - 1);
        }
        std::vector<std::int32_t> tails(gFormat.quantized() ? lengths.size() : 0);
        std::iota(tails.begin(), tails.end(), 0);
        StepInputs in;
        in.tailSlots = tails;
        in.tokenIds = ids;
        in.positions = positions;
        in.slotMapping = mapping;
        in.cuQueryLens = cu;
        in.sequenceLengths = lengths;
        in.blockTables = tables;
        in.tableStarts = starts;
        in.logitRows = rows;
        if (m_backend->await(m_backend->submit(in)) != StepStatus::Done)
            std::fprintf(stderr, "%s\n", m_backend->lastError().message.c_str());
    }

    std::size_t weightBytes() const { return m_bytes; }
    double kvBytes() const { return m_kvBytes; } ///< of a token
    double parameters() const { return m_parameters; }
    Backend& backend() { return *m_backend; }

private:
    static constexpr std::int32_t kBlock = 16;

    WeightId matrix(std::int64_t rows, std::int64_t cols, DType type) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(rows * cols / 32) * blockBytes(type));
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(m_random());
        const std::uint16_t scale = type == DType::Q8_0 ? 0x0400 : 0x1000, minimum = 0x9200;
        for (std::size_t i = 0; i < bytes.size(); i += blockBytes(type)) {
            std::memcpy(bytes.data() + i, &scale, 2);
            if (type == DType::Q4_1)
                std::memcpy(bytes.data() + i + 2, &minimum, 2);
        }
        m_bytes += bytes.size();
        m_parameters += static_cast<double>(rows * cols);
        return *m_backend->addWeight({"matrix", type, rows, cols, bytes.data(), bytes.size()}).value;
    }
    WeightId vector() {
        const std::vector<float> ones(static_cast<std::size_t>(m_shape.hidden), 1.0f);
        return *m_backend
                    ->addWeight({"norm", DType::F32, 1, m_shape.hidden, reinterpret_cast<const std::byte*>(ones.data()),
                                 ones.size() * 4})
                    .value;
    }

    Shape m_shape;
    std::unique_ptr<Backend> m_backend;
    std::mt19937 m_random{1};
    std::size_t m_bytes = 0;
    double m_kvBytes = 0;
    double m_parameters = 0;
};

Model& smollm() {
    static Model model(Shape{}, 512, 4200);
    return model;
}

void report(benchmark::State& state, double tokens, double bytes, double operations) {
    const double steps = static_cast<double>(state.iterations());
    state.counters["tok/s"] = benchmark::Counter(tokens * steps, benchmark::Counter::kIsRate);
    state.counters["GB/s"] = benchmark::Counter(bytes * steps / 1e9, benchmark::Counter::kIsRate);
    state.counters["int8_GOPS"] = benchmark::Counter(operations * steps / 1e9, benchmark::Counter::kIsRate);
}

void phases(benchmark::State& state, const PhaseTimes& t) {
    const double all = static_cast<double>(t.embed + t.qkv + t.attention + t.mlp + t.logits) / 100;
    state.counters["qkv%"] = static_cast<double>(t.qkv) / all;
    state.counters["att%"] = static_cast<double>(t.attention) / all;
    state.counters["mlp%"] = static_cast<double>(t.mlp) / all;
    state.counters["out%"] = static_cast<double>(t.logits) / all;
}

void prefill(benchmark::State& state) {
    Model& m = smollm();
    const auto tokens = static_cast<std::int32_t>(state.range(0));
    for (auto _ : state)
        m.step(1, tokens, tokens);
    const double output = 49152.0 * 576;
    report(state, tokens, static_cast<double>(m.weightBytes()),
           2 * (tokens * (m.parameters() - output) + output)); // logits of the last token only
    phases(state, m.backend().phaseTimes());
}
BENCHMARK(prefill)->Arg(7)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond)->UseRealTime();

void decode(benchmark::State& state) {
    Model& m = smollm();
    const auto sequences = static_cast<std::int32_t>(state.range(0)), depth = static_cast<std::int32_t>(state.range(1));
    for (auto _ : state)
        m.step(sequences, depth, 1);
    report(state, sequences, static_cast<double>(m.weightBytes()) + m.kvBytes() * depth * sequences,
           2 * sequences * m.parameters());
    phases(state, m.backend().phaseTimes());
}
BENCHMARK(decode)
    ->Args({1, 64})
    ->Args({1, 512})
    ->Args({1, 4096})
    ->Args({4, 512})
    ->Args({16, 512})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

const KernelTable& table() {
#if defined(KVSCOPE_X86_KERNELS)
    const Isa isa = gOptions.forceIsa.value_or(bestIsa());
    if (isa == Isa::Avx512)
        return gOptions.vnni && cpuFeatures().avx512Vnni ? avx512VnniKernels() : avx512Kernels();
    if (isa == Isa::Avx2)
        return avx2Kernels();
#endif
    return portableKernels();
}

/// One matrix on one thread, weights and activations in cache: the arithmetic alone. Look at the CPU column when the
/// machine is busy.
void matmul(benchmark::State& state, DType type) {
    const std::int64_t rows = state.range(0), outputs = 576, cols = 576;
    std::mt19937 random(1);
    std::vector<std::byte> bytes(static_cast<std::size_t>(outputs * cols / 32) * blockBytes(type));
    for (auto& b : bytes)
        b = static_cast<std::byte>(random() % 64); // scales stay finite
    Arena arena;
    const PackedWeight w = *packWeight({"w", type, outputs, cols, bytes.data(), bytes.size()}, arena).value;
    Panel panel;
    const auto padded = static_cast<std::size_t>((rows + 7) / 8 * 8 * cols);
    panel.cols = cols;
    panel.quants = arena.allocateArray<std::int8_t>(padded);
    panel.scales = arena.allocateArray<float>(padded / 32);
    panel.minusSums = arena.allocateArray<std::int32_t>(padded / 32);
    panel.scaledSums = arena.allocateArray<float>(padded / 32);
    std::vector<float> x(static_cast<std::size_t>(cols), 0.5f), out(static_cast<std::size_t>(rows * outputs));
    for (std::int64_t r = 0; r < rows; ++r)
        table().packRow(x.data(), panel, r);
    MatmulArgs args;
    args.weight = &w;
    args.panel = &panel;
    args.lastGroup = w.groups;
    args.lastRow = rows;
    args.out = out.data();
    args.stride = outputs;
    for (auto _ : state)
        table().matmul(args);
    const double operations = 2.0 * static_cast<double>(rows * outputs * cols);
    state.counters["int8_GOPS"] =
        benchmark::Counter(operations * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
    state.counters["GB/s"] = benchmark::Counter(
        static_cast<double>(bytes.size()) * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(matmul, Q4_1, DType::Q4_1)->Arg(1)->Arg(8)->Arg(64);
BENCHMARK_CAPTURE(matmul, Q4_0, DType::Q4_0)->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(matmul, Q8_0, DType::Q8_0)->Arg(1)->Arg(64);

/// Attention of one KV head with three query heads on one thread: `tokens` tokens that end at `depth`.
void attention(benchmark::State& state) {
    const std::int64_t tokens = state.range(0), depth = state.range(1);
    KvLayout layout{1, 1, 64, 64, 32, static_cast<std::int32_t>(depth / 32 + 1), gFormat, 0, {}};
    Arena arena;
    KvAccess kv;
    kv.blockSize = layout.blockSize;
    kv.headDimK = kv.headDimV = 64;
    kv.valueOffset = layout.keyBytes(0);
    kv.blockBytes = layout.bytesPerBlock();
    kv.keyCode = layout.keyCode(0);
    kv.valueCode = layout.valueCode(0);
    kv.pool = arena.allocate(layout.poolBytes());
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(layout.numBlocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::vector<float> q(static_cast<std::size_t>(tokens) * 192, 0.1f), out(q.size());
    std::vector<float> scratch(static_cast<std::size_t>(attentionScratchFloats(3, 64, 64)));
    AttentionArgs args;
    args.kv = kv;
    args.open.fresh = arena.allocate(layout.openHeadBytes(0) + 64);
    args.open.valueOffset = layout.openKeyBytes(0);
    const std::vector<std::int32_t> places(blocks.size(), 0); // all the same block: only speed is of interest
    args.open.places = places.data();
    args.table = blocks.data();
    args.scale = 0.125f;
    args.group = 3;
    args.q = q.data();
    args.qStride = 192;
    args.firstPosition = depth - tokens;
    args.tokens = tokens;
    std::vector<float> partial(3 * 66);
    for (auto _ : state) {
        if (tokens > 1)
            table().attendTokens(args, out.data(), 192, scratch.data());
        else
            for (std::int64_t first = 0; first < depth; first += kPartition)
                table().attendPartition(args, first, std::min(depth, first + kPartition), partial.data(),
                                        scratch.data());
    }
    const double n = static_cast<double>(state.iterations());
    state.counters["GFLOPS"] =
        benchmark::Counter(n * 4 * 192 * static_cast<double>(tokens) * static_cast<double>(depth - tokens / 2) / 1e9,
                           benchmark::Counter::kIsRate);
    state.counters["GB/s"] = benchmark::Counter(
        n * static_cast<double>(kv.blockBytes) / 32 * static_cast<double>(depth) / 1e9, benchmark::Counter::kIsRate);
}
BENCHMARK(attention)->Args({1, 256})->Args({1, 4096})->Args({16, 256})->Args({16, 4096});

/// One draw from 49,152 logits on one thread: greedy, plain, top-p, top-k.
void sampling(benchmark::State& state) {
    constexpr std::int32_t kVocab = 49152;
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> logits(kVocab);
    for (float& v : logits)
        v = normal(random);
    Sampler sampler(table(), kVocab);
    SampleRow row;
    row.params.temperature = state.range(0) == 0 ? 0.0f : 0.8f;
    row.params.topP = state.range(0) == 2 ? 0.95f : 1.0f;
    row.params.topK = state.range(0) == 3 ? 40 : 0;
    for (auto _ : state) {
        ++row.params.tokenIndex;
        benchmark::DoNotOptimize(sampler.sample(logits.data(), row).token);
    }
}
BENCHMARK(sampling)->DenseRange(0, 3);

/// What one read of much memory by all threads gives: the roof for decode.
void memoryRoof(benchmark::State& state) {
    KernelTeam team(gOptions.threads > 0 ? gOptions.threads : static_cast<int>(std::thread::hardware_concurrency()));
    MemoryRegion region(std::size_t(256) << 20);
    std::memset(region.data(), 1, region.size());
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(team.size()) * 8);
    for (auto _ : state)
        team.run([&](int thread) {
            const std::size_t share = region.size() / static_cast<std::size_t>(team.size()) / 64;
            const auto* p =
                reinterpret_cast<const std::uint64_t*>(region.data()) + share * 8 * static_cast<std::size_t>(thread);
            std::uint64_t lanes[8] = {};
            for (std::size_t i = 0; i < share; ++i, p += 8)
                for (int k = 0; k < 8; ++k)
                    lanes[k] += p[k];
            sums[static_cast<std::size_t>(thread) * 8] = std::accumulate(lanes, lanes + 8, std::uint64_t(0));
        });
    benchmark::DoNotOptimize(sums.data());
    report(state, 0, static_cast<double>(region.size()), 0);
}
BENCHMARK(memoryRoof)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace

int main(int argc, char** argv) {
    std::vector<char*> rest;
    for (int i = 0; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument.rfind("--kv-threads=", 0) == 0)
            gOptions.threads = std::stoi(argument.substr(13));
        else if (argument == "--kv-isa=portable")
            gOptions.forceIsa = Isa::Portable;
        else if (argument == "--kv-isa=avx2")
            gOptions.forceIsa = Isa::Avx2;
        else if (argument.rfind("--kv-format=", 0) == 0)
            gFormat = kvFormatByName(argument.substr(12)).value_or(KvFormat{});
        else if (argument == "--kv-no-vnni")
            gOptions.vnni = false;
        else
            rest.push_back(argv[i]);
    }
    int count = static_cast<int>(rest.size());
    benchmark::Initialize(&count, rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, rest.data()))
        return 1;
    std::printf("%s\n", makeCpuBackend(gOptions).value->get()->describe().c_str());
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/bench_options.h"

#include <algorithm>

#include "app/bench/requests_file.h"
#include "app/cli/interrupt.h"
#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::cli {

namespace {

constexpr std::int32_t kCapacityConcurrency = 64;
constexpr std::int32_t kCapacityRequests = 300; ///< so that beginning and end weigh little
constexpr std::int32_t kMostConcurrency = 4096;
constexpr int kMostRepetitions = 1000;

/// Engine options that a stage decides.
constexpr std::pair<const char*, const char*> kOfStages[] = {
    {"--block-size", "paged+block32"},
    {"--no-enable-prefix-caching", "paged, and paged+prefix for a prefix cache"},
    {"--allocator", "contiguous"},
    {"--contiguous-reserve", "contiguous+reserve-request"},
    {"--kv-cache-dtype", "paged+fp8"},
    {"--k-dtype", "paged+k8v4"},
    {"--v-dtype", "paged+k8v4"},
    {"--eviction", "paged+prefix+lfu"},
    {"--scheduling-policy", "paged+short-first"},
};
/// Sizes of the pool that are not the same for every stage.
constexpr const char* kOtherPools[] = {"--num-blocks", "--gpu-memory-utilization"};

constexpr const char* kWindows[] = {"--window-policy", "--sinks", "--window"};

template <class T> T usage(Result<T> result) {
    if (!result)
        throw UsageError(result.error().message);
    return std::move(*result);
}

bool isVirtual(const BenchOptions& o) {
    return o.clock == "virtual";
}

/// Tokens of a recorded text: the model's, where there is one.
bench::TextTokens tokensOf(const BenchOptions& o, std::int32_t vocab) {
    if (o.engine->model.empty())
        return bench::approximateTokens(vocab);
    auto file = valueOrThrow(model::ModelFile::open(o.engine->model));
    const std::shared_ptr<const model::Tokenizer> tokenizer =
        valueOrThrow(model::Tokenizer::create(valueOrThrow(model::vocabularyFromGguf(file.metadata()))));
    return [tokenizer](const std::string& text) { return valueOrThrow(tokenizer->encode(text)).ids; };
}

bench::Workload workloadOf(const BenchOptions& o, std::int32_t vocab) {
    if (!o.requestsFile.empty())
        return valueOrThrow(
            bench::readRequests(readTextFile(o.requestsFile), o.requestsFile, tokensOf(o, vocab), vocab, o.requests));
    bench::WorkloadSpec spec;
    spec.name = o.workload.empty() ? "mix" : o.workload;
    spec.scale = o.scale;
    spec.seed = o.seed;
    const bool fixed = spec.name == "multi-turn" || spec.name == "stampede";
    spec.requests = o.capacity && o.requests == 0 && !fixed ? kCapacityRequests : o.requests;
    spec.vocab = vocab;
    return usage(bench::makeWorkload(spec));
}

std::vector<std::int32_t> concurrencyOf(const BenchOptions& o) {
    if (o.capacity && !o.given("--concurrency"))
        return {kCapacityConcurrency};
    std::vector<std::int32_t> list = parseIds(o.concurrency, "--concurrency");
    for (const std::int32_t each : list)
        if (each < 1 || each > kMostConcurrency)
            throw UsageError("--concurrency takes numbers from 1 to 4,096.");
    std::sort(list.begin(), list.end());
    if (std::adjacent_find(list.begin(), list.end()) != list.end())
        throw UsageError("--concurrency names a number twice; name it once.");
    return list;
}

} // namespace

void addBenchOptions(CLI::App& verb, BenchOptions& o) {
    o.verb = &verb;
    verb.add_option("--workload", o.workload,
                    "short, long-form, long-doc, mix, multi-turn or stampede; mix unless a file is given");
    verb.add_option("--requests-file", o.requestsFile,
                    "Recorded requests: ShareGPT-like JSON, or JSON lines with prompt or prompt_tokens, max_tokens and "
                    "arrival (seconds)");
    verb.add_option("--scale", o.scale, "All lengths of the workload times this")->capture_default_str();
    verb.add_option("--stages", o.stages,
                    std::string("Options by stage, joined by +, stages separated by commas: baseline, or paged or "
                                "contiguous with any of f16 bf16 fp8 int8 k8v4 int4, block8 to block64, prefix, "
                                "reserve-request, lru lfu position cost, fcfs short-first prefix-first; all in the "
                                "same bytes. Unless given: ") +
                        bench::kDefaultStages);
    verb.add_option("--concurrency", o.concurrency, "Requests in flight, separated by commas")->capture_default_str();
    verb.add_option("--requests", o.requests, "Requests of a run; 0 = 60 (--capacity: 300), or all of the file")
        ->capture_default_str()
        ->check(notNegative());
    verb.add_option("--seed", o.seed, "Of the workload's tokens and order")
        ->capture_default_str()
        ->check(notNegative());
    verb.add_option("--repeat", o.repeat, "Runs of everything, stages interleaved; rows are medians then")
        ->capture_default_str();
    verb.add_option("--clock", o.clock,
                    "real, or virtual: the same scheduler and cache without kernels, a step takes what the roofline of "
                    "device and model says")
        ->capture_default_str();
    verb.add_option("--device", o.device,
                    "Of the virtual clock: A100-80GB, H100-80GB, RTX4090, or this machine, measured with --model")
        ->capture_default_str();
    verb.add_option("--preset", o.preset, "A known model's sizes for the virtual clock, such as r1-distill-qwen-7b");
    verb.add_option("--config", o.config, "The sizes from a model's config.json");
    verb.add_option("--weights", o.weights, "Bytes of the weights on the device; 0 = 2 a parameter")
        ->capture_default_str()
        ->check(notNegative());
    verb.add_option("--csv", o.csvFile, "Write the rows to this file");
    verb.add_option("--html", o.htmlFile, "Write one page with charts to this file");
    verb.add_option("--token-times", o.tokenTimesFile,
                    "Write when each request was sent and each of its tokens came to this file, a JSON line a request");
    verb.add_flag("--capacity", o.capacity,
                  "How many requests are held: concurrency 64, stages baseline, paged, paged+fp8 and paged+k8v4");
    verb.add_flag("--roofline", o.roofline, "Only show what limits a step of this model on the device");
    verb.add_flag("--dry-run", o.dryRun, "Only check everything and estimate how long it takes");
    o.engine = addEngineOptions(verb);
    verb.get_option("--model")->required(false);
    for (const char* refused : kWindows)
        verb.get_option(refused)->group("");
    verb.add_flag("--json", o.asJson, "JSON on standard output and nothing else");
}

void checkBenchOptions(const BenchOptions& o) {
    if (o.clock != "real" && o.clock != "virtual")
        throw UsageError("--clock must be real or virtual.");
    if (!o.workload.empty() && !o.requestsFile.empty())
        throw UsageError("Give --workload or --requests-file, not both.");
    if (!o.requestsFile.empty() && (o.given("--scale") || o.given("--seed")))
        throw UsageError("Recorded requests have their lengths and tokens; leave --scale and --seed out.");
    if (o.repeat < 1 || o.repeat > kMostRepetitions)
        throw UsageError("--repeat must be from 1 to 1,000.");
    if (isVirtual(o) && o.repeat > 1)
        throw UsageError("The virtual clock gives the same figures every time; leave --repeat out.");
    if (!isVirtual(o) && !o.roofline)
        for (const char* option : {"--device", "--preset", "--config", "--weights"})
            if (o.given(option))
                throw UsageError(std::string(option) + " belongs to --clock virtual; add it.");
    if (!isVirtual(o) && !o.roofline && o.engine->model.empty())
        throw UsageError("The real clock needs --model; --clock virtual needs none.");
    const int sources = (o.engine->model.empty() ? 0 : 1) + (o.preset.empty() ? 0 : 1) + (o.config.empty() ? 0 : 1);
    if (sources != 1)
        throw UsageError("Give exactly one of --preset, --config and --model.");
    if (o.device == "this" && o.engine->model.empty())
        throw UsageError("--device this is measured with a model; give --model.");
    for (const auto& [option, stage] : kOfStages)
        if (o.verb->get_option_no_throw(option) && o.given(option))
            throw UsageError(std::string(option) + " is the stages' part here; write --stages " + stage + ".");
    for (const char* option : kOtherPools)
        if (o.given(option))
            throw UsageError(std::string(option) + " would give the stages different bytes; use "
                                                   "--kv-cache-memory-bytes.");
    for (const char* option : kWindows)
        if (o.given(option))
            throw UsageError(std::string(option) + " is not supported here: requests are compared in full length.");
    if (isVirtual(o) && o.engine->hostCacheBytes > 0)
        throw UsageError("--host-cache-bytes needs --clock real: no bytes are moved on a virtual clock.");
    if (o.given("--stats"))
        throw UsageError("--stats is of one run, and bench has many; use --json.");
    if (o.given("--log-blocks"))
        throw UsageError("--log-blocks is of one run, and bench has many; use generate --batch.");
}

BenchModel benchModel(const BenchOptions& o, const api::EngineConfig& engine, bool measure) {
    BenchModel out;
    bench::ModelOnDisk onDisk;
    if (!o.preset.empty()) {
        out.shape = usage(bench::modelPreset(o.preset));
    } else if (!o.config.empty()) {
        out.shape = valueOrThrow(bench::modelShapeFromConfig(readTextFile(o.config), o.config));
    } else {
        onDisk = valueOrThrow(bench::modelOnDisk(o.engine->model));
        out.shape = onDisk.shape;
    }
    constexpr double kBytesPerParameter = 2;
    out.weightBytes = o.weights > 0            ? static_cast<double>(o.weights)
                      : onDisk.weightBytes > 0 ? onDisk.weightBytes
                                               : kBytesPerParameter * out.shape.parameters();
    const bool thisMachine = o.device == "this" || (!isVirtual(o) && !o.roofline);
    if (!thisMachine) {
        out.device = usage(bench::knownDevice(o.device));
    } else if (measure) {
        const bench::Calibration measured = valueOrThrow(bench::calibrate(engine, onDisk, Interrupt::flag()));
        out.device = measured.device;
        out.loadSeconds = measured.loadSeconds;
    }
    return out;
}

bench::BenchPlan benchPlan(const BenchOptions& o, const api::EngineConfig& engine, const BenchModel& model) {
    bench::BenchRequest request;
    constexpr std::int32_t kVirtualVocab = 32000;
    request.workload =
        workloadOf(o, o.engine->model.empty() ? kVirtualVocab : static_cast<std::int32_t>(model.shape.vocab));
    const std::string stages = !o.stages.empty() ? o.stages
                               : o.capacity      ? bench::kCapacityStages
                                                 : bench::kDefaultStages;
    request.stages = usage(bench::parseStages(stages));
    for (bench::Stage& stage : request.stages) {
        const EngineOptions fitted = o.engine->fittedTo(stage.format);
        stage.format.rotation = fitted.kvRotation == "on";
        stage.format.skipLayers = fitted.kvSkipLayers;
    }
    request.concurrency = concurrencyOf(o);
    request.repeat = o.repeat;
    request.virtualClock = isVirtual(o);
    request.engine = engine;
    request.maxSequencesGiven = o.given("--max-num-seqs");
    request.kvBytes = engine.kvCacheMemoryBytes;
    request.maxModelLen = engine.maxModelLen;
    request.model = model.shape;
    request.weightBytes = model.weightBytes;
    request.device = model.device;
    return usage(bench::planBench(std::move(request)));
}

} // namespace kvscope::cli

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/engine_options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cli/answer_json.h"
#include "app/cli/command.h"

namespace kvscope::cli {

namespace {

/// An option of the contract whose feature is not built. `accepted` are the values that describe what this program
/// does anyway (comma separated); everything else is refused by name.
struct UnbuiltOption {
    const char* name;
    const char* accepted;
};
constexpr std::array kUnbuiltOptions = {
    UnbuiltOption{"--save-snapshot", ""},
    UnbuiltOption{"--load-snapshot", ""},
    UnbuiltOption{"--db", ""},
};

bool accepts(std::string_view list, std::string_view value) {
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        if (list.substr(0, comma) == value)
            return true;
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return false;
}

void addKvFormat(CLI::App& verb, EngineOptions& o, const std::string& group) {
    const auto add = [&](CLI::Option* option) { option->capture_default_str()->group(group); };
    add(verb.add_option("--kv-cache-dtype", o.kvCacheDtype,
                        "Form of cached keys and values: auto (f16), f16, bf16, fp8, int8, int4, or k8v4: fp8 keys "
                        "and int4 values"));
    verb.add_option("--k-dtype", o.keyDtype, "Form of the keys alone: f16, bf16, fp8, int8, int4")->group(group);
    verb.add_option("--v-dtype", o.valueDtype, "Form of the values alone")->group(group);
    add(verb.add_option("--kv-rotation", o.kvRotation,
                        "on: rotate (Hadamard) what is kept as int8 or int4, which costs a little time and makes "
                        "values more exact; int4 keys only in some models"));
    add(verb.add_option("--kv-skip-layers", o.kvSkipLayers, "The first and the last N layers stay f16"));
}

void addWindow(CLI::App& verb, EngineOptions& o, const std::string& without) {
    const auto add = [&](CLI::Option* option) { option->capture_default_str()->group("Engine"); };
    add(verb.add_option(
        "--window-policy", o.windowPolicy,
        "When a sequence outgrows its window: stop; trim: a chat is sent without its oldest turns, with "
        "a quarter of the window to spare (other prompts stop); sinks: tokens attend to the first "
        "--sinks and the last --window ones, blocks between are given back, which saves memory and "
        "does not extend the context"));
    add(verb.add_option("--sinks", o.sinks, "First tokens that stay with sinks, in whole blocks of memory"));
    if (without != "--window")
        add(verb.add_option("--window", o.window,
                            "Tokens of a sequence with stop and trim, 0 = --max-model-len; last tokens with sinks"));
}

} // namespace

struct EngineOptions::Unbuilt {
    std::array<std::string, kUnbuiltOptions.size()> values;
    std::array<CLI::Option*, kUnbuiltOptions.size()> options{};
    bool enforceEager = false;
};

namespace {

void addUnbuilt(CLI::App& verb, EngineOptions& o, const std::string& without) {
    o.unbuilt = std::make_shared<EngineOptions::Unbuilt>();
    for (std::size_t i = 0; i < kUnbuiltOptions.size(); ++i)
        // A missing value must not hide that the option itself is not supported.
        o.unbuilt->options[i] =
            without == kUnbuiltOptions[i].name
                ? nullptr
                : verb.add_option(kUnbuiltOptions[i].name, o.unbuilt->values[i])->expected(0, 1)->group("");
    verb.add_flag("--enforce-eager", o.unbuilt->enforceEager)->group("");
}

} // namespace

std::shared_ptr<EngineOptions> addEngineOptions(CLI::App& verb, const std::string& without) {
    auto o = std::make_shared<EngineOptions>();
    o->verb = &verb;
    const std::string group = "Engine";
    const auto add = [&](CLI::Option* option) { option->capture_default_str()->group(group); };
    verb.add_option("--model", o->model, "Model file (GGUF)")->required()->group(group);
    add(verb.add_option("--backend", o->backend, "auto, cpu"));
    add(verb.add_option("--isa", o->isa, "Instruction set: auto, portable, avx2, avx512"));
    add(verb.add_option("--activations", o->activations,
                        "native, or f32: dequantized weights and float activations (slow)"));
    add(verb.add_option("--threads", o->threads, "Kernel threads; 0 = all cores"));
    add(verb.add_option("--block-size", o->blockSize, "Tokens per KV block: 8, 16, 32, 64"));
    add(verb.add_option("--num-blocks", o->numBlocks, "Blocks of the pool; 0 = by memory"));
    add(verb.add_option("--kv-cache-memory-bytes", o->cacheBytes, "Bytes of the pool; 0 = by share")
            ->check(notNegative()));
    add(verb.add_option("--gpu-memory-utilization", o->share,
                        "Share of available memory for the pool; 0 = min(25 %, 8 x max-model-len)"));
    add(verb.add_option("--max-model-len", o->maxModelLen, "Longest sequence in tokens; 0 = the model's context"));
    addWindow(verb, *o, without);
    addKvFormat(verb, *o, group);
    verb.add_flag("--no-enable-prefix-caching", o->noPrefixCaching, "Compute every prompt from its first token")
        ->group(group);
    add(verb.add_option("--eviction", o->eviction,
                        "Who goes when blocks run out: lru, lfu (fades), position (beginnings stay), cost"));
    add(verb.add_option("--allocator", o->allocator,
                        "paged, or contiguous: one extent a request, no prefix cache, forks copy"));
    verb.add_option("--contiguous-reserve", o->contiguousReserve,
                    "Length of an extent: model = --max-model-len, request = prompt + max-tokens [model]")
        ->group(group);
    add(verb.add_option("--host-cache-bytes", o->hostCacheBytes,
                        "Bytes of a tier in main memory below the pool: what is evicted or preempted goes there, and "
                        "comes back where that is estimated to be faster than computing; 0 = none")
            ->check(notNegative()));
    add(verb.add_option("--max-num-seqs", o->maxSequences, "Most sequences in one step"));
    add(verb.add_option("--max-num-batched-tokens", o->maxBatchedTokens,
                        "Tokens of one step; 0 = as many as fit into 150 ms"));
    add(verb.add_option("--watermark", o->watermark,
                        "Share of the blocks kept back when a request is admitted (paged)"));
    add(verb.add_option("--scheduling-policy", o->schedulingPolicy,
                        "Who is admitted next: fcfs, short-first (fewest tokens to read), prefix-first (most tokens "
                        "cached); nobody starves"));
    add(verb.add_option("--long-prefill-token-threshold", o->longPrefillThreshold,
                        "While others write, a prompt with more tokens to read gets this many a step; 0 = no limit"));
    add(verb.add_option("--max-long-partial-prefills", o->maxLongPartialPrefills,
                        "Prompts above the threshold that are read at the same time"));
    verb.add_option("--stats", o->statsFile, "Write counters and phase times of the run to this file as JSON")
        ->group(group);
    verb.add_option("--log-blocks", o->blockLogFile,
                    "Write all that hits and evictions depend on to this file, for trace replay (holds token ids)")
        ->group(group);
    addUnbuilt(verb, *o, without);
    return o;
}

EngineOptions EngineOptions::fittedTo(kernels::KvFormat format) const {
    EngineOptions out = *this;
    format.rotation = true;
    if (kvRotation == "on" && !format.rotatesKeys() && !format.rotatesValues())
        out.kvRotation = "off";
    if (!format.quantized())
        out.kvSkipLayers = std::min(kvSkipLayers, 0); // what is wrong stays wrong
    return out;
}

api::EngineConfig EngineOptions::config() const {
    for (std::size_t i = 0; i < kUnbuiltOptions.size(); ++i)
        if (unbuilt->options[i] && unbuilt->options[i]->count() > 0 &&
            !accepts(kUnbuiltOptions[i].accepted, unbuilt->values[i]))
            throw UsageError(std::string(kUnbuiltOptions[i].name) + (unbuilt->values[i].empty() ? "" : " ") +
                             unbuilt->values[i] + " is not supported yet.");
    if (unbuilt->enforceEager)
        throw UsageError("--enforce-eager is not supported yet.");
    if (backend == "cuda")
        throw UsageError("--backend cuda is not supported yet.");
    if (backend != "auto" && backend != "cpu")
        throw UsageError("--backend must be auto or cpu.");

    api::EngineConfig c;
    c.modelPath = model;
    if (isa == "portable")
        c.isa = kernels::Isa::Portable;
    else if (isa == "avx2")
        c.isa = kernels::Isa::Avx2;
    else if (isa == "avx512")
        c.isa = kernels::Isa::Avx512;
    else if (isa != "auto")
        throw UsageError("--isa must be auto, portable, avx2 or avx512.");
    if (activations != "native" && activations != "f32")
        throw UsageError("--activations must be native or f32.");
    c.floatActivations = activations == "f32";
    c.threads = threads;
    c.blockSize = blockSize;
    c.numBlocks = numBlocks;
    c.kvCacheMemoryBytes = cacheBytes;
    if (share != 0)
        c.memoryUtilization = share;
    c.maxModelLen = maxModelLen;
    c.kvFormat = kvFormat();
    c.prefixCaching = !noPrefixCaching;
    chooseCache(c);
    const auto onFull = kv::windowPolicyOf(windowPolicy);
    if (!onFull)
        throw UsageError("--window-policy must be stop, trim or sinks.");
    if (given("--sinks") && *onFull != kv::WindowPolicy::Sinks)
        throw UsageError("--sinks needs --window-policy sinks.");
    c.windowPolicy = *onFull;
    c.sinks = sinks;
    c.window = window;
    c.hostCacheBytes = hostCacheBytes;
    c.maxSequences = maxSequences;
    c.maxBatchedTokens = maxBatchedTokens;
    c.watermark = watermark;
    const auto policy = sched::schedulingPolicyOf(schedulingPolicy);
    if (!policy)
        throw UsageError("--scheduling-policy must be fcfs, short-first or prefix-first.");
    c.schedulingPolicy = *policy;
    c.longPrefillThreshold = longPrefillThreshold;
    c.maxLongPartialPrefills = maxLongPartialPrefills;
    if (auto ok = api::validate(c); !ok)
        throw UsageError(ok.error().message);
    return c;
}

kernels::KvFormat EngineOptions::kvFormat() const {
    const auto both = kernels::kvFormatByName(kvCacheDtype);
    if (!both)
        throw UsageError("--kv-cache-dtype must be auto, f16, bf16, fp8, int8, int4 or k8v4.");
    kernels::KvFormat format = *both;
    const auto one = [](const char* option, const std::string& name, kernels::KvDType& type) {
        if (name.empty() || name == "auto")
            return;
        const auto known = kernels::kvDTypeByName(name);
        if (!known)
            throw UsageError(std::string(option) + " must be f16, bf16, fp8, int8 or int4.");
        type = *known;
    };
    one("--k-dtype", keyDtype, format.keys);
    one("--v-dtype", valueDtype, format.values);
    if (kvRotation != "on" && kvRotation != "off")
        throw UsageError("--kv-rotation must be on or off.");
    format.rotation = kvRotation == "on";
    format.skipLayers = kvSkipLayers;
    if (kvSkipLayers < 0)
        throw UsageError("--kv-skip-layers must be at least 0.");
    if (format.skipLayers > 0 && !format.quantized())
        throw UsageError("--kv-skip-layers needs keys or values of fp8, int8 or int4.");
    if (format.rotation && !format.rotatesKeys() && !format.rotatesValues())
        throw UsageError("--kv-rotation on needs keys or values of int8 or int4.");
    return format;
}

void printWarnings(const api::ModelInfo& model) {
    for (const std::string& warning : model.warnings)
        std::fprintf(stderr, "%s\n", warning.c_str());
}

bool EngineOptions::given(const std::string& option) const {
    const CLI::Option* found = verb->get_option_no_throw(option);
    return found && found->count() > 0;
}

void EngineOptions::chooseCache(api::EngineConfig& c) const {
    const auto policy = kv::evictionKindOf(eviction);
    if (!policy)
        throw UsageError("--eviction must be lru, lfu, position or cost.");
    const auto chosen = kv::allocatorOf(allocator);
    if (!chosen)
        throw UsageError("--allocator must be paged or contiguous.");
    if (!contiguousReserve.empty() && *chosen != kv::AllocatorKind::Contiguous)
        throw UsageError("--contiguous-reserve needs --allocator contiguous.");
    const std::optional<kv::ContiguousReserve> reserve =
        contiguousReserve.empty() ? kv::ContiguousReserve::Model : kv::contiguousReserveOf(contiguousReserve);
    if (!reserve)
        throw UsageError("--contiguous-reserve must be model or request.");
    c.eviction = *policy;
    c.allocator = *chosen;
    c.contiguousReserve = *reserve;
}

std::unique_ptr<api::BlockLog> EngineOptions::openBlockLog() const {
    if (blockLogFile.empty())
        return nullptr;
    return valueOrThrow(api::BlockLog::create(blockLogFile, std::string("KVScope ") + KVSCOPE_VERSION));
}

void throwNotLoaded(const Error& error) {
    if (error.code == ErrorCode::Unsupported && error.message.starts_with("--"))
        throw UsageError(error.message);
    throw CommandError(error);
}

void closeBlockLog(api::BlockLog* log) {
    if (log == nullptr)
        return;
    if (auto ok = log->finish(); !ok)
        throw CommandError(ok.error());
}

CommandError EngineOptions::statsNotWritten() const {
    return CommandError("Cannot write '" + statsFile + "'; check that its folder exists, may be written to, and " +
                        "that the disk is not full.");
}

void EngineOptions::checkStatsFile() const {
    if (statsFile.empty())
        return;
    struct stat info {};
    if (::stat(statsFile.c_str(), &info) == 0) { // not opened: it may be a pipe, or hold something until the run ends
        if (S_ISDIR(info.st_mode) || ::access(statsFile.c_str(), W_OK) != 0)
            throw statsNotWritten();
        return;
    }
    // A link to a file that is not there yet is good too: what is made here, and taken away again, is that file.
    const int file = ::open(statsFile.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        throw statsNotWritten();
    const bool empty = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
    ::close(file);
    std::error_code failed;
    const std::filesystem::path made = std::filesystem::canonical(statsFile, failed);
    if (empty && !failed)
        ::unlink(made.c_str());
}

void EngineOptions::writeStats(const api::Engine& engine) const {
    if (statsFile.empty())
        return;
    std::ofstream out(statsFile);
    out << statsJson(engine.stats(), engine.model()).dump(2) << '\n';
    out.flush();
    if (!out)
        throw statsNotWritten();
}

} // namespace kvscope::cli

// SPDX-License-Identifier: GPL-3.0-or-later
// eval: what each form of the KV cache costs in quality, and which one to take.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/engine_options.h"
#include "app/cli/eval_run.h"
#include "app/cli/eval_text.h"
#include "app/cli/interrupt.h"
#include "app/cli/progress_bar.h"
#include "engine/base/split.h"
#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

struct Options {
    std::shared_ptr<EngineOptions> engine;
    std::string textFile;
    std::int64_t window = 512;
    std::int64_t maxTokens = 0;
    bool asJson = false;
};

/// All that are built, from the most bytes to the fewest.
constexpr const char* kAllFormats = "f16,bf16,int8,fp8,k8v4,int4";

/// One row for each form in --kv-cache-dtype, or one for --k-dtype and --v-dtype.
std::vector<EvalRow> rowsFor(const Options& o) {
    EngineOptions engine = *o.engine;
    const bool one = !engine.keyDtype.empty() || !engine.valueDtype.empty();
    if (one && !engine.given("--kv-cache-dtype"))
        engine.kvCacheDtype = "auto";
    std::vector<EvalRow> rows;
    for (const std::string& name : split(engine.kvCacheDtype, ',')) {
        engine.kvCacheDtype = name;
        const auto format = kernels::kvFormatByName(name);
        rows.emplace_back().config = (format && !one ? engine.fittedTo(*format) : engine).config();
    }
    return rows;
}

EvalText textFor(const Options& o) {
    const model::ModelFile file = valueOrThrow(model::ModelFile::open(o.engine->model));
    model::Vocabulary vocabulary = valueOrThrow(model::vocabularyFromGguf(file.metadata()));
    const bool wantsBegin = vocabulary.addBos;
    const auto tokenizer = valueOrThrow(model::Tokenizer::create(std::move(vocabulary)));
    const std::string text = o.textFile.empty() ? std::string(evaluationText()) : readTextFile(o.textFile);
    EvalText out;
    out.tokens = valueOrThrow(tokenizer->encode(text)).ids;
    if (wantsBegin)
        if (const auto begin = valueOrThrow(tokenizer->encode("", {false, true, {}})).ids; !begin.empty())
            out.begin = begin.front();
    out.window = o.window;
    if (o.maxTokens > 0 && static_cast<std::size_t>(o.maxTokens) < out.tokens.size())
        out.tokens.resize(static_cast<std::size_t>(o.maxTokens));
    if (out.tokens.size() < 2)
        throw CommandError("The text has fewer than two tokens: nothing in it can be predicted.");
    return out;
}

json rowJson(const EvalRow& row) {
    return {{"k_dtype", row.keys},
            {"v_dtype", row.values},
            {"perplexity", row.score.perplexity()},
            {"perplexity_ratio", row.score.perplexityRatio()},
            {"ratio_standard_error", row.score.ratioStandardError()},
            {"kl_mean", row.score.klMean()},
            {"top1_agreement", row.score.topAgreement()},
            {"bytes_per_token", row.bytesPerToken}};
}

void printTable(const std::vector<EvalRow>& rows) {
    std::printf("%-22s %-22s %12s %10s %16s %10s %8s\n", "keys", "values", "bytes/token", "perplexity", "ratio to f16",
                "mean KL", "same top");
    for (const EvalRow& row : rows)
        std::printf("%-22s %-22s %12.0f %10.4f %8.5f ±%.5f %10.6f %7.2f%%\n", row.keys.c_str(), row.values.c_str(),
                    row.bytesPerToken, row.score.perplexity(), row.score.perplexityRatio(),
                    row.score.ratioStandardError(), row.score.klMean(), row.score.topAgreement() * 100);
}

int runEval(const Options& o) {
    for (const char* refused : {"--window-policy", "--sinks"})
        if (o.engine->given(refused))
            throw UsageError(std::string(refused) + " has no meaning here: every window is scored whole.");
    for (const char* refused : {"--log-blocks", "--stats"})
        if (o.engine->given(refused))
            throw UsageError(std::string(refused) + " is of one run, and eval has many; use generate.");
    if (o.window < 2 || o.window > 65536)
        throw UsageError("--window must be between 2 and 65536.");
    if (o.maxTokens < 0)
        throw UsageError("--max-tokens must be at least 0.");
    std::vector<EvalRow> rows = rowsFor(o);
    const api::EngineConfig& config = rows.front().config;
    if (const std::int64_t needed = blocksToScore(config, o.window); config.numBlocks > 0 && config.numBlocks < needed)
        throw UsageError("--num-blocks must be at least " + std::to_string(needed) + " for a --window of " +
                         std::to_string(o.window) + " tokens.");
    if (config.maxModelLen > 0 && config.maxModelLen < o.window)
        throw UsageError("--max-model-len must be at least --window.");
    const EvalText text = textFor(o);
    const Interrupt interrupt;
    Result<void> done;
    {
        std::optional<ProgressBar> progress;
        if (!o.asJson)
            progress.emplace();
        const auto show = [&](std::int64_t scored, std::int64_t all) {
            if (progress)
                progress->show(static_cast<double>(scored) / static_cast<double>(all), "scoring");
        };
        done = evaluate(text, rows, show, [&] { return interrupt.asked(); });
    }
    interrupt.passOn();
    if (!done)
        throw CommandError(done.error());
    const bool floats = rows.front().config.floatActivations;
    const std::string advice = recommendation(rows, floats);
    if (o.asJson) {
        json list = json::array();
        std::transform(rows.begin(), rows.end(), std::back_inserter(list), rowJson);
        printJson({{"tokens", text.tokens.size()},
                   {"window", text.window},
                   {"activations", floats ? "f32" : "native"},
                   {"rows", std::move(list)},
                   {"recommendation", advice}});
        return 0;
    }
    std::printf("%zu tokens in windows of %lld, %s activations\n\n", text.tokens.size(),
                static_cast<long long>(text.window), floats ? "f32" : "native");
    printTable(rows);
    std::printf("\n%s\n", advice.c_str());
    return 0;
}

} // namespace

Verb addEval(CLI::App& app) {
    auto options = std::make_shared<Options>();
    Verb verb;
    verb.app = app.add_subcommand("eval", "Compare forms of the KV cache by perplexity and KL against f16");
    verb.app->add_option("--text", options->textFile, "Text file to score; default: the text that comes with KVScope");
    verb.app->add_option("--window", options->window, "Tokens that are scored together")->capture_default_str();
    verb.app->add_option("--max-tokens", options->maxTokens, "Score no more tokens of the text than this; 0 = all")
        ->capture_default_str();
    options->engine = addEngineOptions(*verb.app, "--window");
    for (const char* refused : {"--window-policy", "--sinks", "--log-blocks", "--stats"})
        verb.app->get_option(refused)->group("");
    options->engine->kvCacheDtype = kAllFormats;
    verb.app->get_option("--kv-cache-dtype")
        ->description("Forms to compare, separated by commas")
        ->default_str(kAllFormats);
    verb.app->add_flag("--json", options->asJson, "JSON on standard output and nothing else");
    verb.run = [options] { return runEval(*options); };
    return verb;
}

} // namespace kvscope::cli

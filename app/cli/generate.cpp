// SPDX-License-Identifier: GPL-3.0-or-later
#include <charconv>
#include <cstdio>
#include <utility>

#include "app/cli/answer_json.h"
#include "app/cli/command.h"
#include "app/cli/engine_options.h"
#include "app/cli/generate_line.h"
#include "app/cli/generate_runner.h"
#include "app/cli/interrupt.h"
#include "app/cli/json_input.h"
#include "engine/base/figures.h"
#include "engine/model/unicode.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

struct Options {
    std::shared_ptr<EngineOptions> engine;
    std::string prompt, promptFile, promptIds, chatFile, variablesFile, batchFile;
    CLI::Option *promptOption = nullptr, *promptIdsOption = nullptr; ///< may be given and empty
    std::vector<std::string> logitBias;
    GenerateLine line; ///< sampling options; defaults of batch lines
    bool asJson = false;
};

void addPromptOptions(CLI::App& app, Options& o) {
    o.promptOption = app.add_option("--prompt", o.prompt, "Raw text (control tokens are not recognised)");
    app.add_option("--prompt-file", o.promptFile, "File with raw text; - = standard input");
    o.promptIdsOption = app.add_option("--prompt-ids", o.promptIds, "Token ids, separated by commas");
    app.add_option("--chat", o.chatFile, "JSON file with a list of messages, through the model's template");
    app.add_option("--vars", o.variablesFile,
                   "JSON file: an object of further template variables (tools, enable_thinking, ...), for --chat");
    app.add_option("--batch", o.batchFile, "JSON lines, one request each, run together");
}

void addSamplingOptions(CLI::App& app, Options& o) {
    api::SamplingParams& s = o.line.sampling;
    const auto add = [](CLI::Option* option) { option->capture_default_str()->group("Sampling"); };
    add(app.add_option("--max-tokens", s.maxTokens, "Most tokens of the answer"));
    add(app.add_option("--temperature", s.temperature, "0 = always the most likely token"));
    add(app.add_option("--top-k", s.topK, "Only the k most likely tokens; 0 = off"));
    add(app.add_option("--top-p", s.topP, "Only the most likely tokens that sum to p; 1 = off"));
    add(app.add_option("--min-p", s.minP, "Only tokens at least p times as likely as the first; 0 = off"));
    add(app.add_option("--repeat-penalty", s.repeatPenalty, "Against tokens seen in prompt and answer; 1 = off"));
    add(app.add_option("--presence-penalty", s.presencePenalty, "Against tokens seen in the answer; 0 = off"));
    add(app.add_option("--frequency-penalty", s.frequencyPenalty, "The same, per occurrence; 0 = off"));
    add(app.add_option("--seed", s.seed, "Of the random numbers")->check(notNegative()));
    app.add_option("--logit-bias", o.logitBias, "ID:X adds X to the logit of a token (repeatable)")
        ->allow_extra_args(false)
        ->group("Sampling");
    app.add_option("--stop", s.stop, "Ends the answer and is cut from it (repeatable)")
        ->allow_extra_args(false)
        ->group("Sampling");
    add(app.add_option("--n", o.line.samples, "Answers drawn from the same prompt"));
    add(app.add_option("--logprobs", s.logprobs, "Report the most likely tokens at each step; 0 = off"));
    app.add_flag("--ignore-eos", s.ignoreEos, "Go on after an end token")->group("Sampling");
}

std::vector<std::pair<TokenId, double>> parseBiases(const std::vector<std::string>& list) {
    std::vector<std::pair<TokenId, double>> out;
    for (const std::string& item : list) {
        TokenId id = -1;
        int used = 0;
        double bias = 0;
        const char* const end = item.data() + item.size();
        const auto number = std::from_chars(item.data(), end, id); // unlike scanf it sees an id that is too large
        if (number.ec != std::errc() || number.ptr == end || std::sscanf(number.ptr, ":%lf%n", &bias, &used) != 1 ||
            number.ptr + used != end)
            throw UsageError("--logit-bias takes ID:X, such as 42:-1.5.");
        out.emplace_back(id, bias);
    }
    return out;
}

api::DialogPrompt chatPrompt(const Options& o) {
    api::DialogPrompt dialog = valueOrThrow(parseMessages(readJsonFile<OrderedJson>(o.chatFile)));
    if (!o.variablesFile.empty())
        dialog.variables = readVariables(o.variablesFile).dump();
    return dialog;
}

void readPrompts(const Options& o, GenerateRunner& runner) {
    const int given = static_cast<int>(o.promptOption->count() > 0) + static_cast<int>(!o.promptFile.empty()) +
                      static_cast<int>(o.promptIdsOption->count() > 0) + static_cast<int>(!o.chatFile.empty()) +
                      static_cast<int>(!o.batchFile.empty());
    if (given != 1)
        throw UsageError("Give exactly one of --prompt, --prompt-file, --prompt-ids, --chat and --batch.");
    if (!o.variablesFile.empty() && o.chatFile.empty())
        throw UsageError("--vars needs --chat; lines of --batch have the field 'extra'.");
    if (!o.batchFile.empty()) {
        for (const std::string& text : readLines(o.batchFile)) {
            const OrderedJson line = parseJson<OrderedJson>(text);
            if (line.is_discarded())
                runner.add(fail(ErrorCode::InvalidArgument, "This line " + jsonFault(text)), nullptr);
            else
                runner.add(parseGenerateLine(line, o.line),
                           json(line.is_object() ? line.value("id", OrderedJson()) : OrderedJson()));
        }
        return;
    }
    GenerateLine line = o.line;
    if (o.promptIdsOption->count() > 0)
        line.prompt = api::TokenPrompt{parseIds(o.promptIds, "--prompt-ids")};
    else if (!o.chatFile.empty())
        line.prompt = chatPrompt(o);
    else
        line.prompt = api::TextPrompt{o.promptFile.empty() ? o.prompt : readTextFile(o.promptFile)};
    runner.add(std::move(line), nullptr);
}

json resultJson(const GenerateResult& result) {
    json out = result.answer ? answerJson(*result.answer) : json::object();
    if (!result.id.is_null())
        out["id"] = result.id;
    if (result.error)
        out["error"] = errorJson(*result.error);
    if (!result.furtherAnswers.empty()) {
        json samples = json::array({answerJson(*result.answer)});
        for (const api::Answer& answer : result.furtherAnswers)
            samples.push_back(answerJson(answer));
        out["samples"] = std::move(samples);
    }
    return out;
}

void printReadable(const GenerateResult& result, bool streamed) {
    if (!result.id.is_null())
        std::printf("[%s] ", result.id.is_string() ? result.id.get<std::string>().c_str() : result.id.dump().c_str());
    if (result.answer && !streamed)
        std::printf("%s", model::toValidUtf8(result.answer->text).c_str());
    std::printf("\n");
    for (const api::Answer& answer : result.furtherAnswers)
        std::printf("%s\n", model::toValidUtf8(answer.text).c_str());
    if (std::fflush(stdout) != 0)
        throw CommandError(outputFailed());
}

void printPool(const api::ModelInfo& model, const api::EngineConfig& config) {
    const std::string form = model.keyDtype == model.valueDtype
                                 ? "keys and values " + model.keyDtype
                                 : "keys " + model.keyDtype + ", values " + model.valueDtype;
    std::fprintf(stderr, "%s, pool of %d blocks x %d tokens (%s), %s: %s a block", model.backend.c_str(),
                 model.numBlocks, model.blockSize, model.poolRule.c_str(), form.c_str(),
                 sizeText(model.bytesPerBlock).c_str());
    if (model.tailBytes > 0)
        std::fprintf(stderr, ", %s for those being filled", sizeText(model.tailBytes).c_str());
    std::fprintf(stderr, "\n");
    if (model.windowLayers > 0)
        std::fprintf(
            stderr,
            "window group: %d of %d layers look back %d tokens, in %d blocks of %s, %.2f for each of the pool\n",
            model.windowLayers, model.layers, model.window, model.windowBlocks,
            sizeText(model.bytesPerWindowBlock).c_str(), static_cast<double>(model.windowBlocks) / model.numBlocks);
    if (config.windowPolicy == kv::WindowPolicy::Sinks)
        std::fprintf(stderr,
                     "sinks: tokens attend to the first %lld and the last %lld; blocks between are given back, the "
                     "context still ends at %lld tokens\n",
                     static_cast<long long>(config.sinks), static_cast<long long>(config.window),
                     static_cast<long long>(model.maxModelLen));
    if (config.allocator == kv::AllocatorKind::Contiguous)
        std::fprintf(stderr, "contiguous allocator, extents by %s: no prefix cache, forks copy\n",
                     kv::contiguousReserveName(config.contiguousReserve));
}

void printFigures(const api::Answer& a) {
    if (const api::WindowCut& cut = a.cache.cut; cut.messages > 0)
        std::fprintf(stderr, "the %d oldest messages (%lld tokens) were left out: the window is full\n", cut.messages,
                     static_cast<long long>(cut.tokens));
    const double seconds = a.timings.decodeMs / 1000;
    std::fprintf(
        stderr, "%zu prompt tokens (%lld reused), %zu tokens in %.2f s, first after %.0f ms, %.1f tokens/s, %s\n",
        a.promptTokenIds.size(), static_cast<long long>(a.cache.reusedTokens), a.tokenIds.size(),
        a.timings.e2eMs / 1000, a.timings.ttftMs,
        seconds > 0 ? static_cast<double>(a.tokenIds.size() - 1) / seconds : 0.0, api::finishReasonName(a.reason));
}

/// The sentence of a request that failed, if it did.
const Error* failure(const GenerateResult& result) {
    if (result.error)
        return &*result.error;
    const auto& answer = result.answer;
    return answer && answer->reason == api::FinishReason::Error && answer->error ? &*answer->error : nullptr;
}

/// Of an answer that is printed while it is written.
void printPiece(const std::string& text) {
    const std::string valid = model::toValidUtf8(text);
    std::fwrite(valid.data(), 1, valid.size(), stdout);
    std::fflush(stdout);
}

int runGenerate(const Options& given) {
    Options o = given;
    const api::EngineConfig config = o.engine->config();
    o.line.sampling.logitBias = parseBiases(o.logitBias);
    if (auto ok = api::validate(o.line.sampling); !ok)
        throw UsageError(ok.error().message);
    if (o.line.samples < 1 || o.line.samples > kMostSamples)
        throw UsageError("--n must be between 1 and " + std::to_string(kMostSamples) + ".");

    const bool batch = !o.batchFile.empty();
    const bool stream = !o.asJson && !batch && o.line.samples == 1;
    MonotonicClock clock;
    GenerateRunner runner(clock, stream ? GenerateRunner::OnText(printPiece) : GenerateRunner::OnText());
    readPrompts(o, runner);
    o.engine->checkStatsFile();
    const Interrupt interrupt;
    const std::unique_ptr<api::BlockLog> blockLog = o.engine->openBlockLog();
    api::Engine engine({clock, runner, nullptr, nullptr, {}, {}, blockLog.get()});
    if (auto ok = engine.load(config, Interrupt::flag()); !ok) {
        interrupt.passOn();
        throwNotLoaded(ok.error());
    }
    printWarnings(engine.model());
    int status = 0;
    bool poolPrinted = false;
    const auto give = [&](const GenerateResult& result) {
        const Error* error = failure(result);
        if (o.asJson)
            printJson(resultJson(result));
        else if (!error || batch)
            printReadable(result, stream);
        if (error) {
            if (!batch || !o.asJson)
                std::fprintf(stderr, "%s\n", error->message.c_str());
            status = batch ? status : 1;
        } else if (!o.asJson) {
            if (!std::exchange(poolPrinted, true))
                printPool(engine.model(), config);
            printFigures(*result.answer);
        }
    };
    try {
        runner.run(engine, give, Interrupt::flag());
    } catch (const CommandError&) { // the answers cannot be written; the counters perhaps can
        o.engine->writeStats(engine);
        throw;
    }
    o.engine->writeStats(engine);
    closeBlockLog(blockLog.get());
    if (interrupt.asked())
        std::fprintf(stderr, "Interrupted; the answers are as far as they came.\n");
    interrupt.passOn();
    if (engine.faulted())
        throw CommandError("The engine stopped because of an internal fault; see the answers' errors.");
    return status;
}

} // namespace

Verb addGenerate(CLI::App& app) {
    auto options = std::make_shared<Options>();
    Verb verb;
    verb.app = app.add_subcommand("generate", "Write answers to one or many prompts");
    addPromptOptions(*verb.app, *options);
    addSamplingOptions(*verb.app, *options);
    options->engine = addEngineOptions(*verb.app);
    verb.app->add_flag("--json", options->asJson, "JSON on standard output and nothing else");
    verb.run = [options] { return runGenerate(*options); };
    return verb;
}

} // namespace kvscope::cli

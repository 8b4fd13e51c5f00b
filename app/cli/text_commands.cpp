// SPDX-License-Identifier: GPL-3.0-or-later
// tokenize, detokenize, render: what the model sees, without running it.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "app/cli/command.h"
#include "engine/model/chat_template.h"
#include "engine/model/gguf_file.h"
#include "engine/model/jinja/json_value.h"
#include "engine/model/model_file.h"
#include "engine/model/template_json.h"
#include "engine/model/template_library.h"
#include "engine/model/tokenizer.h"
#include "engine/model/unicode.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json; ///< templates see the keys of objects in their order

Result<model::Vocabulary> readVocabulary(const std::string& path) {
    const auto file = model::GgufFile::open(path);
    if (!file)
        return tl::unexpected(file.error());
    if (file->metadata().integer("split.no").value_or(0) == 0)
        return model::vocabularyFromGguf(file->metadata());
    const auto whole = model::ModelFile::open(path); // only the first part has the metadata
    if (!whole)
        return tl::unexpected(whole.error());
    return model::vocabularyFromGguf(whole->metadata());
}

std::shared_ptr<const model::Tokenizer> loadTokenizer(const std::string& path) {
    return valueOrThrow(model::Tokenizer::create(valueOrThrow(readVocabulary(path))));
}

Error wrongLine(std::string sentence) {
    return {ErrorCode::InvalidArgument, std::move(sentence)};
}

/// The fields of one input line; nothing may be left that nobody asked for.
class LineFields {
public:
    static Result<LineFields> parse(const std::string& line) {
        OrderedJson object = parseJson<OrderedJson>(line);
        if (!object.is_object())
            return tl::unexpected(wrongLine("This line " + jsonFault(line)));
        return LineFields(std::move(object));
    }
    std::optional<OrderedJson> take(const std::string& name) {
        const auto found = m_object.find(name);
        if (found == m_object.end())
            return std::nullopt;
        OrderedJson value = *found;
        m_object.erase(found);
        return value;
    }
    Result<bool> flag(const std::string& name, bool otherwise) {
        const auto value = take(name);
        if (value && !value->is_boolean())
            return tl::unexpected(wrongLine("'" + name + "' must be true or false."));
        return value ? value->get<bool>() : otherwise;
    }
    Result<void> finish() const {
        if (!m_object.empty())
            return tl::unexpected(wrongLine("There is no field '" + m_object.begin().key() + "'."));
        return {};
    }

private:
    explicit LineFields(OrderedJson object) : m_object(std::move(object)) {}
    OrderedJson m_object;
};

/// One answer line per line of the file, whatever fails.
int answerLines(const std::string& path, const std::function<Result<json>(LineFields&)>& answerTo) {
    for (const std::string& line : readLines(path)) {
        Result<LineFields> fields = LineFields::parse(line);
        const Result<json> answer = fields ? answerTo(*fields) : tl::unexpected(fields.error());
        printJson(answer ? *answer : json{{"error", errorJson(answer.error())}});
    }
    return 0;
}

std::optional<std::string> bytesFromHex(const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        unsigned value = 0;
        const std::string pair = digits.substr(i, 2);
        if (pair.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos || pair.size() != 2 ||
            std::sscanf(pair.c_str(), "%2x", &value) != 1)
            return std::nullopt;
        bytes.push_back(static_cast<char>(value));
    }
    return bytes;
}

// ---- tokenize ----

Result<json> tokenize(const model::Tokenizer& tokenizer, const std::string& text, bool special, bool addBos) {
    const auto encoding = tokenizer.encode(text, {special, addBos, {}});
    if (!encoding)
        return tl::unexpected(encoding.error());
    json pieces = json::array();
    for (const TokenId id : encoding->ids)
        pieces.push_back(model::toValidUtf8(tokenizer.bytes(id)));
    return json{{"ids", encoding->ids}, {"pieces", std::move(pieces)}};
}

Result<json> tokenizeLine(const model::Tokenizer& tokenizer, LineFields& fields) {
    const auto text = fields.take("text");
    const auto textHex = fields.take("text_hex");
    const auto special = fields.flag("special", false);
    const auto addBos = fields.flag("add_bos", false);
    if (!special || !addBos)
        return tl::unexpected(special ? addBos.error() : special.error());
    if (auto finished = fields.finish(); !finished)
        return tl::unexpected(finished.error());
    if (text.has_value() == textHex.has_value() || !(text ? text : textHex)->is_string())
        return tl::unexpected(wrongLine("Give the text as a string in one of 'text' and 'text_hex'."));
    const auto bytes = text ? text->get<std::string>() : bytesFromHex(textHex->get<std::string>());
    if (!bytes)
        return tl::unexpected(wrongLine("'text_hex' must hold pairs of hexadecimal digits."));
    return tokenize(tokenizer, *bytes, *special, *addBos);
}

/// The sentence about a flag beside --jsonl, whose lines say it themselves.
std::string fieldInstead(const std::string& flag) {
    std::string field = flag;
    std::replace(field.begin(), field.end(), '-', '_');
    return "--" + flag + " cannot be given with --jsonl; give its lines the field '" + field + "': true.";
}

struct TokenizeOptions {
    std::string model, text, textFile, linesFile;
    CLI::Option* textOption = nullptr;
    bool special = false, addBos = false, asJson = false;
};

int runTokenize(const TokenizeOptions& o) {
    const bool hasText = o.textOption->count() > 0;
    if ((hasText ? 1 : 0) + (o.textFile.empty() ? 0 : 1) + (o.linesFile.empty() ? 0 : 1) != 1)
        throw UsageError("Give exactly one of --text, --text-file and --jsonl.");
    for (const auto& [given, name] : {std::pair(o.special, "special"), std::pair(o.addBos, "add-bos")})
        if (given && !o.linesFile.empty())
            throw UsageError(fieldInstead(name));
    const auto tokenizer = loadTokenizer(o.model);
    if (!o.linesFile.empty())
        return answerLines(o.linesFile, [&](LineFields& fields) { return tokenizeLine(*tokenizer, fields); });
    const std::string text = hasText ? o.text : readTextFile(o.textFile);
    const json answer = valueOrThrow(tokenize(*tokenizer, text, o.special, o.addBos));
    if (o.asJson) {
        printJson(answer);
        return 0;
    }
    for (std::size_t i = 0; i < answer["ids"].size(); ++i)
        std::printf("%8d  %s\n", answer["ids"][i].get<int>(), answer["pieces"][i].dump().c_str());
    return 0;
}

// ---- detokenize ----

Result<std::string> detokenizeLine(const model::Tokenizer& tokenizer, LineFields& fields) {
    const auto ids = fields.take("ids");
    const auto skipSpecial = fields.flag("skip_special", false);
    if (!skipSpecial)
        return tl::unexpected(skipSpecial.error());
    if (auto finished = fields.finish(); !finished)
        return tl::unexpected(finished.error());
    std::vector<TokenId> numbers;
    bool good = ids && ids->is_array();
    for (const OrderedJson& id : good ? *ids : OrderedJson::array()) {
        const auto number = smallNumber(id, 0);
        good = good && number;
        numbers.push_back(number.value_or(0));
    }
    if (!good)
        return tl::unexpected(wrongLine("'ids' must be a list of token ids."));
    return tokenizer.decode(numbers, *skipSpecial);
}

struct DetokenizeOptions {
    std::string model, ids, linesFile;
    CLI::Option* idsOption = nullptr; ///< may be given and empty
    bool skipSpecial = false, asJson = false;
};

int runDetokenize(const DetokenizeOptions& o) {
    const bool hasIds = o.idsOption->count() > 0;
    if (hasIds != o.linesFile.empty())
        throw UsageError("Give exactly one of --ids and --jsonl.");
    if (o.skipSpecial && !hasIds)
        throw UsageError(fieldInstead("skip-special"));
    const std::vector<TokenId> ids = hasIds ? parseIds(o.ids, "--ids") : std::vector<TokenId>{};
    const auto tokenizer = loadTokenizer(o.model);
    const auto asJson = [](const std::string& bytes) {
        json answer;
        putText(answer, bytes);
        return answer;
    };
    if (!o.linesFile.empty())
        return answerLines(o.linesFile,
                           [&](LineFields& fields) { return detokenizeLine(*tokenizer, fields).map(asJson); });
    const std::string text = valueOrThrow(tokenizer->decode(ids, o.skipSpecial));
    if (o.asJson)
        printJson(asJson(text));
    else
        std::printf("%s\n", model::toValidUtf8(text).c_str());
    return 0;
}

// ---- render ----

/// What a line or the command line asks to be rendered.
struct RenderJob {
    std::shared_ptr<const model::ChatTemplate> chatTemplate;
    std::string noTemplate = "Give a template in the line, or --model or --template."; ///< why there is none
    OrderedJson messages;
    OrderedJson variables = OrderedJson::object();
    std::shared_ptr<const model::Vocabulary> vocabulary; ///< its token texts: only for the model's own template
    bool addGenerationPrompt = true;
    std::tm now{};
};

Result<json> render(const RenderJob& job) {
    if (!job.messages.is_array())
        return tl::unexpected(wrongLine("The chat must be a list of messages, such as [{\"role\": \"user\", "
                                        "\"content\": \"Hello\"}]."));
    if (!job.variables.is_object())
        return tl::unexpected(wrongLine("The template's variables must be a JSON object."));
    auto variables = model::templateVariables(job.variables);
    if (!variables)
        return tl::unexpected(variables.error());
    model::TemplateInput input;
    input.variables = std::move(*variables);
    if (job.vocabulary)
        model::addSpecialTexts(*job.vocabulary, input.variables);
    try {
        input.messages = model::jinja::valueFromJson(job.messages, true);
    } catch (const model::jinja::Failure& failure) {
        return tl::unexpected(wrongLine(std::string("The chat cannot be used: ") + failure.what() + "."));
    }
    input.addGenerationPrompt = job.addGenerationPrompt;
    input.now = job.now;
    const auto rendering = job.chatTemplate->render(input);
    if (!rendering)
        return tl::unexpected(rendering.error());
    json answer;
    putText(answer, rendering->text.bytes());
    return answer;
}

/// "2026-11-29T14:05:00", local time.
std::optional<std::tm> parseTime(const std::string& text) {
    std::tm time{};
    const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
    if (end == nullptr || *end != '\0')
        return std::nullopt;
    // Weekday and day of the year, without a zone that could move the hour.
    const std::time_t seconds = ::timegm(&time);
    ::gmtime_r(&seconds, &time);
    return time;
}

/// `defaults`: what the command line says; the line may say otherwise.
Result<json> renderLine(RenderJob job, LineFields& fields) {
    if (const auto source = fields.take("template")) {
        if (!source->is_string())
            return tl::unexpected(wrongLine("'template' must be a string."));
        auto compiled = model::ChatTemplate::compile(source->get<std::string>());
        if (!compiled)
            return tl::unexpected(compiled.error());
        job.chatTemplate = std::move(*compiled);
        job.vocabulary.reset();
    }
    if (!job.chatTemplate)
        return tl::unexpected(Error{ErrorCode::Template, job.noTemplate});
    job.messages = fields.take("messages").value_or(OrderedJson());
    const auto generation = fields.flag("add_generation_prompt", job.addGenerationPrompt);
    if (!generation)
        return tl::unexpected(generation.error());
    job.addGenerationPrompt = *generation;
    if (const auto extra = fields.take("extra")) {
        if (!extra->is_object())
            return tl::unexpected(wrongLine("'extra' must be an object of template variables."));
        job.variables.update(*extra);
    }
    if (const auto now = fields.take("now")) {
        const auto time = now->is_string() ? parseTime(now->get<std::string>()) : std::nullopt;
        if (!time)
            return tl::unexpected(wrongLine("'now' must be a time such as \"2026-11-29T14:05:00\"."));
        job.now = *time;
    }
    if (auto finished = fields.finish(); !finished)
        return tl::unexpected(finished.error());
    return render(job);
}

struct RenderOptions {
    std::string model, templateFile, chatFile, variablesFile, linesFile;
    bool noGenerationPrompt = false, asJson = false;
};

RenderJob jobFromOptions(const RenderOptions& o) {
    RenderJob job;
    job.addGenerationPrompt = !o.noGenerationPrompt;
    job.now = model::localTimeNow();
    if (!o.model.empty()) {
        job.vocabulary = std::make_shared<const model::Vocabulary>(valueOrThrow(readVocabulary(o.model)));
        auto compiled = model::ChatTemplate::compile(job.vocabulary->chatTemplate);
        if (job.vocabulary->chatTemplate.empty())
            job.noTemplate = "'" + o.model + "' has no chat template; give one with --template.";
        else if (compiled)
            job.chatTemplate = std::move(*compiled);
        else
            job.noTemplate = compiled.error().message; // lines may bring their own
    } else if (!o.templateFile.empty()) {
        job.chatTemplate = valueOrThrow(model::ChatTemplate::compile(readTextFile(o.templateFile)));
    }
    if (!o.variablesFile.empty())
        job.variables.update(readVariables(o.variablesFile));
    return job;
}

int runRender(const RenderOptions& o) {
    if (!o.model.empty() && !o.templateFile.empty())
        throw UsageError("Give only one of --model and --template.");
    if (o.chatFile.empty() == o.linesFile.empty())
        throw UsageError("Give exactly one of --chat and --jsonl.");
    if (o.linesFile.empty() && o.model.empty() && o.templateFile.empty())
        throw UsageError("Give the template by --model or --template.");
    RenderJob job = jobFromOptions(o);
    if (!o.linesFile.empty())
        return answerLines(o.linesFile, [&](LineFields& fields) { return renderLine(job, fields); });
    if (!job.chatTemplate)
        throw CommandError(job.noTemplate);
    job.messages = readJsonFile<OrderedJson>(o.chatFile);
    const json answer = valueOrThrow(render(job));
    if (o.asJson)
        printJson(answer);
    else
        std::printf("%s\n", answer["text"].get_ref<const std::string&>().c_str());
    return 0;
}

constexpr const char* kModelHelp = "Model file (GGUF)";
constexpr const char* kJsonHelp = "JSON on standard output and nothing else";

} // namespace

Verb addTokenize(CLI::App& app) {
    auto options = std::make_shared<TokenizeOptions>();
    Verb verb;
    verb.app = app.add_subcommand("tokenize", "Turn text into token ids");
    verb.app->add_option("--model", options->model, kModelHelp)->required();
    options->textOption = verb.app->add_option("--text", options->text, "The text");
    verb.app->add_option("--text-file", options->textFile, "File with the text; - is standard input");
    verb.app->add_option("--jsonl", options->linesFile,
                         "JSON lines {text | text_hex, special, add_bos}, one answer line each");
    verb.app->add_flag("--special", options->special, "Texts of control tokens become those tokens");
    verb.app->add_flag("--add-bos", options->addBos, "Begin with the BOS token if the model asks for one");
    verb.app->add_flag("--json", options->asJson, kJsonHelp);
    verb.run = [options] { return runTokenize(*options); };
    return verb;
}

Verb addDetokenize(CLI::App& app) {
    auto options = std::make_shared<DetokenizeOptions>();
    Verb verb;
    verb.app = app.add_subcommand("detokenize", "Turn token ids into text");
    verb.app->add_option("--model", options->model, kModelHelp)->required();
    options->idsOption = verb.app->add_option("--ids", options->ids, "Token ids, separated by commas");
    verb.app->add_option("--jsonl", options->linesFile, "JSON lines {ids, skip_special}, one answer line each");
    verb.app->add_flag("--skip-special", options->skipSpecial, "Leave control tokens out");
    verb.app->add_flag("--json", options->asJson, kJsonHelp);
    verb.run = [options] { return runDetokenize(*options); };
    return verb;
}

Verb addRender(CLI::App& app) {
    auto options = std::make_shared<RenderOptions>();
    Verb verb;
    verb.app = app.add_subcommand("render", "Show what a chat template makes of a chat");
    verb.app->add_option("--model", options->model, "Model file (GGUF) with the template");
    verb.app->add_option("--template", options->templateFile, "File with a Jinja template");
    verb.app->add_option("--chat", options->chatFile, "JSON file: a list of messages {role, content}");
    verb.app->add_option("--vars", options->variablesFile, "JSON file: an object of further template variables");
    verb.app->add_option("--jsonl", options->linesFile,
                         "JSON lines {template, messages, add_generation_prompt, extra, now}, one answer line each");
    verb.app->add_flag("--no-generation-prompt", options->noGenerationPrompt, "Do not open the next answer");
    verb.app->add_flag("--json", options->asJson, kJsonHelp);
    verb.run = [options] { return runRender(*options); };
    return verb;
}

} // namespace kvscope::cli

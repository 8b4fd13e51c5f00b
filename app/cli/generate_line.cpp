// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/generate_line.h"

#include <charconv>
#include <functional>
#include <limits>
#include <map>

#include "app/cli/json_input.h"

namespace kvscope::cli {

namespace {

using json = OrderedJson;

/// Thrown inside this file only: the sentence about one field.
struct BadField {
    std::string message;
};

[[noreturn]] void bad(const std::string& field, const char* expected) {
    throw BadField{"'" + field + "' must be " + expected + "."};
}

std::int64_t integer(const std::string& field, const json& value) {
    const auto n = wholeNumber(value);
    if (!n)
        bad(field, "a whole number");
    return *n;
}

std::int32_t small(const std::string& field, const json& value, std::int32_t low) {
    const std::int64_t n = integer(field, value);
    if (n < low || n > std::numeric_limits<std::int32_t>::max())
        throw BadField{"'" + field + "' must be a whole number of at least " + std::to_string(low) + "."};
    return static_cast<std::int32_t>(n);
}

double number(const std::string& field, const json& value) {
    if (!value.is_number())
        bad(field, "a number");
    return value.get<double>();
}

bool boolean(const std::string& field, const json& value) {
    if (!value.is_boolean())
        bad(field, "true or false");
    return value.get<bool>();
}

std::string text(const std::string& field, const json& value) {
    if (!value.is_string())
        bad(field, "a string");
    return value.get<std::string>();
}

json lineId(const std::string& field, const json& value) {
    if (!value.is_string() && !value.is_number_integer())
        bad(field, "a string or a whole number");
    return value;
}

std::vector<TokenId> ids(const std::string& field, const json& value) {
    if (!value.is_array())
        bad(field, "a list of token ids");
    std::vector<TokenId> out;
    for (const json& id : value)
        out.push_back(small(field, id, 0));
    return out;
}

std::vector<std::string> stops(const std::string& field, const json& value) {
    if (value.is_string())
        return {value.get<std::string>()};
    if (!value.is_array())
        bad(field, "a string or a list of strings");
    std::vector<std::string> out;
    for (const json& stop : value)
        out.push_back(text(field, stop));
    return out;
}

std::vector<std::pair<TokenId, double>> biases(const std::string& field, const json& value) {
    if (!value.is_object())
        bad(field, "an object {\"token id\": bias}");
    std::vector<std::pair<TokenId, double>> out;
    for (const auto& [key, bias] : value.items()) {
        TokenId id = -1;
        const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
        if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size())
            bad(field, "an object whose keys are token ids");
        out.emplace_back(id, number(field, bias));
    }
    return out;
}

using Reader = std::function<void(GenerateLine&, const std::string&, const json&)>;

const std::map<std::string, Reader>& samplingReaders() {
    using L = GenerateLine;
    using S = const std::string;
    using J = const json;
    static const std::map<std::string, Reader> kReaders = {
        {"temperature", [](L& l, S& f, J& v) { l.sampling.temperature = number(f, v); }},
        {"top_k", [](L& l, S& f, J& v) { l.sampling.topK = small(f, v, 0); }},
        {"top_p", [](L& l, S& f, J& v) { l.sampling.topP = number(f, v); }},
        {"min_p", [](L& l, S& f, J& v) { l.sampling.minP = number(f, v); }},
        {"repeat_penalty", [](L& l, S& f, J& v) { l.sampling.repeatPenalty = number(f, v); }},
        {"presence_penalty", [](L& l, S& f, J& v) { l.sampling.presencePenalty = number(f, v); }},
        {"frequency_penalty", [](L& l, S& f, J& v) { l.sampling.frequencyPenalty = number(f, v); }},
        {"seed",
         [](L& l, S& f, J& v) {
             if (!v.is_number_unsigned())
                 bad(f, "a whole number of at least 0");
             l.sampling.seed = v.get<std::uint64_t>();
         }},
        {"max_tokens", [](L& l, S& f, J& v) { l.sampling.maxTokens = small(f, v, 1); }},
        {"logprobs", [](L& l, S& f, J& v) { l.sampling.logprobs = small(f, v, 0); }},
        {"ignore_eos", [](L& l, S& f, J& v) { l.sampling.ignoreEos = boolean(f, v); }},
        {"stop", [](L& l, S& f, J& v) { l.sampling.stop = stops(f, v); }},
        {"logit_bias", [](L& l, S& f, J& v) { l.sampling.logitBias = biases(f, v); }},
        {"n",
         [](L& l, S& f, J& v) {
             l.samples = small(f, v, 1);
             if (l.samples > kMostSamples)
                 throw BadField{"'n' must be at most " + std::to_string(kMostSamples) + "."};
         }},
    };
    return kReaders;
}

const std::map<std::string, Reader>& lineReaders() {
    using L = GenerateLine;
    using S = const std::string;
    using J = const json;
    static const std::map<std::string, Reader> kReaders = {
        {"id", [](L& l, S& f, J& v) { l.id = lineId(f, v); }},
        {"prompt", [](L& l, S& f, J& v) { l.prompt = api::TextPrompt{text(f, v)}; }},
        {"prompt_ids", [](L& l, S& f, J& v) { l.prompt = api::TokenPrompt{ids(f, v)}; }},
        {"messages",
         [](L& l, S&, J& v) {
             Result<api::DialogPrompt> dialog = parseMessages(v);
             if (!dialog)
                 throw BadField{dialog.error().message};
             l.prompt = std::move(*dialog);
         }},
        {"extra",
         [](L& l, S& f, J& v) {
             if (!v.is_object())
                 bad(f, "an object of template variables");
             l.variables = v.dump();
         }},
        {"after", [](L& l, S& f, J& v) { l.after = lineId(f, v); }},
        {"fork_of", [](L& l, S& f, J& v) { l.forkOf = lineId(f, v); }},
        {"fork_at", [](L& l, S& f, J& v) { l.forkAt = small(f, v, 0); }},
        {"cancel_after", [](L& l, S& f, J& v) { l.cancelAfter = small(f, v, 0); }},
        {"pin", [](L& l, S& f, J& v) { l.pin = boolean(f, v); }},
        {"repeat", [](L& l, S& f, J& v) { l.repeat = small(f, v, 1); }},
    };
    return kReaders;
}

void checkPromptCount(const json& line) {
    const auto given = [&](const char* field) { return line.contains(field) && !line[field].is_null(); };
    const int prompts =
        static_cast<int>(given("prompt")) + static_cast<int>(given("prompt_ids")) + static_cast<int>(given("messages"));
    if (given("fork_of")) {
        if (given("messages"))
            throw BadField{"A fork goes on with 'prompt' or 'prompt_ids', not with 'messages'."};
        if (prompts > 1)
            throw BadField{"Give one of 'prompt' and 'prompt_ids'."};
    } else if (prompts != 1) {
        throw BadField{"Give exactly one of 'prompt', 'prompt_ids' and 'messages'."};
    }
    if (given("fork_at") && !given("fork_of"))
        throw BadField{"'fork_at' needs 'fork_of'."};
    if (given("extra") && !given("messages"))
        throw BadField{"'extra' is for the chat template; it needs 'messages'."};
}

/// The text of a message's content.
std::string contentText(const json& content) {
    if (content.is_null()) // a message without text
        return {};
    if (content.is_string())
        return content.get<std::string>();
    if (!content.is_array())
        throw BadField{"A message's 'content' must be text or a list of text parts."};
    std::string text;
    for (const json& part : content) {
        if (!part.is_object() || part.value("type", json()) != "text" || !part.contains("text") ||
            !part["text"].is_string())
            throw BadField{"Only parts of type 'text' are supported in a message's content."};
        text += part["text"].get_ref<const std::string&>();
    }
    return text;
}

api::DialogMessage dialogMessage(const json& message) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
        throw BadField{"Each message needs a 'role'."};
    const auto has = [&](const char* field) { return message.contains(field) && !message[field].is_null(); };
    if (!message.contains("content") && !has("tool_calls") && !has("function_call"))
        throw BadField{"Each message needs a 'content'."};
    api::DialogMessage out;
    out.role = message["role"].get<std::string>();
    const json content = message.contains("content") ? message["content"] : json();
    out.content = contentText(content);
    if (message != json{{"role", out.role}, {"content", out.content}} || message.begin().key() != "role")
        out.fields = message.dump();
    return out;
}

} // namespace

Result<api::DialogPrompt> parseMessages(const json& messages) {
    if (!messages.is_array() || messages.empty())
        return fail(ErrorCode::InvalidArgument, "'messages' must be a list of {role, content}.");
    api::DialogPrompt dialog;
    try {
        for (const json& message : messages)
            dialog.messages.push_back(dialogMessage(message));
    } catch (const BadField& error) {
        return fail(ErrorCode::InvalidArgument, error.message);
    }
    return dialog;
}

Result<GenerateLine> parseGenerateLine(const json& line, const GenerateLine& defaults) {
    if (!line.is_object())
        return fail(ErrorCode::InvalidArgument, "A batch line must be a JSON object.");
    GenerateLine out = defaults;
    try {
        for (const auto& [field, value] : line.items()) {
            if (value.is_null()) // as if it were not there
                continue;
            auto reader = lineReaders().find(field);
            if (reader == lineReaders().end()) {
                reader = samplingReaders().find(field);
                if (reader == samplingReaders().end())
                    throw BadField{"There is no field '" + field + "'."};
            }
            reader->second(out, field, value);
        }
        checkPromptCount(line);
        if (auto* dialog = std::get_if<api::DialogPrompt>(&out.prompt))
            dialog->variables = out.variables;
    } catch (const BadField& error) {
        return fail(ErrorCode::InvalidArgument, error.message);
    }
    return out;
}

std::uint64_t sampleSeed(std::uint64_t seed, std::int32_t index) {
    if (index == 0)
        return seed;
    // splitmix64: neighbouring seeds and indices must not give related streams
    std::uint64_t x = seed + 0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(index);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

} // namespace kvscope::cli

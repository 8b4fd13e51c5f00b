// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/template_library.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"

namespace kvscope::model {

namespace {

using jinja::Value;

constexpr std::string_view kChatMlMarks[] = {"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kLlama3Marks[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
constexpr std::string_view kGemmaMarks[] = {"<start_of_turn>", "<end_of_turn>"};
constexpr std::string_view kDeepSeekMarks[] = {"<｜User｜>", "<｜Assistant｜>"};
constexpr std::string_view kPhi3Marks[] = {"<|user|>", "<|assistant|>", "<|end|>"};
constexpr std::string_view kMistralMarks[] = {"[INST]", "[/INST]"};

constexpr std::string_view kChatMl = R"({%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif %})";

constexpr std::string_view kLlama3 = R"({{- bos_token }}
{%- for message in messages -%}
<|start_header_id|>{{ message.role }}<|end_header_id|>

{{ message.content | trim }}<|eot_id|>
{%- endfor %}
{%- if add_generation_prompt -%}
<|start_header_id|>assistant<|end_header_id|>{{ '\n\n' }}
{%- endif %})";

// Without a system role: its text opens the first message of the user.
constexpr std::string_view kGemma = R"({{- bos_token }}
{%- set first = namespace(text='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set first.text = message.content ~ '\n\n' %}
{%- else -%}
<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}
{{ first.text }}{{ message.content | trim }}<end_of_turn>
{% set first.text = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt -%}
<start_of_turn>model
{% endif %})";

constexpr std::string_view kDeepSeek = R"({{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}<｜User｜>{{ message.content }}
{%- elif message.role == 'assistant' %}<｜Assistant｜>{{ message.content }}{{ eos_token }}
{%- else %}{{ message.content }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<｜Assistant｜>{% endif %})";

constexpr std::string_view kPhi3 = R"({%- for message in messages -%}
<|{{ message.role }}|>
{{ message.content }}<|end|>
{% endfor %}
{%- if add_generation_prompt -%}
<|assistant|>
{% endif %})";

constexpr std::string_view kMistral = R"({{- bos_token }}
{%- set first = namespace(text='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}{% set first.text = message.content ~ '\n\n' %}
{%- elif message.role == 'user' %}[INST] {{ first.text }}{{ message.content }} [/INST]{% set first.text = '' %}
{%- else %} {{ message.content }}{{ eos_token }}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kZephyr = R"({%- for message in messages -%}
<|{{ message.role }}|>
{{ message.content }}{{ eos_token }}
{% endfor %}
{%- if add_generation_prompt -%}
<|assistant|>
{% endif %})";

constexpr std::string_view kPlain = R"({%- for message in messages %}
{%- if message.role == 'user' %}{{ 'User: ' ~ message.content ~ '\n\n' }}
{%- elif message.role == 'assistant' %}{{ 'Assistant: ' ~ message.content ~ eos_token }}
{%- else %}{{ message.content ~ '\n\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'Assistant:' }}{% endif %})";

constexpr std::array kKnown = {
    KnownTemplate{"ChatML", kChatMl, kChatMlMarks}, KnownTemplate{"Llama 3", kLlama3, kLlama3Marks},
    KnownTemplate{"Gemma", kGemma, kGemmaMarks},    KnownTemplate{"DeepSeek", kDeepSeek, kDeepSeekMarks},
    KnownTemplate{"Phi-3", kPhi3, kPhi3Marks},      KnownTemplate{"Mistral", kMistral, kMistralMarks},
    KnownTemplate{"Zephyr", kZephyr, {}},           KnownTemplate{"Plain text", kPlain, {}},
};

bool hasSpecialToken(const Vocabulary& vocabulary, std::string_view text) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
        if (vocabulary.tokens[id] == text)
            return vocabulary.types[id] == TokenType::Control || vocabulary.types[id] == TokenType::UserDefined;
    return false;
}

/// The file's own template, ready to be used.
Result<std::shared_ptr<const ChatTemplate>> ownTemplate(const Vocabulary& vocabulary) {
    if (vocabulary.chatTemplate.empty())
        return fail(ErrorCode::Template, "There is no chat template in this file.");
    auto compiled = ChatTemplate::compile(vocabulary.chatTemplate);
    if (compiled)
        if (auto rendered = templatePreview(**compiled, vocabulary, "Hello"); !rendered)
            return tl::unexpected(rendered.error());
    return compiled;
}

} // namespace

std::span<const KnownTemplate> knownTemplates() {
    return kKnown;
}

const KnownTemplate* findKnownTemplate(std::string_view name) {
    const auto found =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const KnownTemplate& known) { return known.name == name; });
    return found == kKnown.end() ? nullptr : &*found;
}

const KnownTemplate& guessTemplate(const Vocabulary& vocabulary) {
    for (const KnownTemplate& known : kKnown)
        if (!known.marks.empty() && std::all_of(known.marks.begin(), known.marks.end(), [&](std::string_view mark) {
                return hasSpecialToken(vocabulary, mark);
            }))
            return known;
    return kKnown.back();
}

void addSpecialTexts(const Vocabulary& vocabulary, jinja::Variables& variables) {
    const auto add = [&](const char* name, std::optional<TokenId> id) {
        const bool given = std::any_of(variables.begin(), variables.end(),
                                       [&](const auto& variable) { return variable.first == name; });
        if (!given && id)
            variables.emplace_back(name, Value::string(vocabulary.tokens[static_cast<std::size_t>(*id)]));
    };
    add("bos_token", vocabulary.bos);
    add("eos_token", vocabulary.eos);
}

Result<std::string> templatePreview(const ChatTemplate& chatTemplate, const Vocabulary& vocabulary,
                                    const std::string& userText) {
    TemplateInput input;
    input.messages =
        Value::list({Value::dict({{Value::string("role"), Value::string("user")},
                                  {Value::string("content"), Value::string(jinja::Text::fromOutside(userText, 0))}})});
    addSpecialTexts(vocabulary, input.variables);
    input.now = localTimeNow();
    auto rendering = chatTemplate.render(input);
    if (!rendering)
        return tl::unexpected(rendering.error());
    return rendering->text.bytes();
}

TemplateChoice chooseTemplate(const Vocabulary& vocabulary, const std::string& wanted) {
    TemplateChoice choice;
    auto own = ownTemplate(vocabulary);
    if (!own)
        choice.problem = own.error().message;
    const KnownTemplate* known = wanted.empty() ? nullptr : findKnownTemplate(wanted);
    if (own && !known) {
        choice.chatTemplate = *own;
        return choice;
    }
    choice.guessed = !known;
    if (!known)
        known = &guessTemplate(vocabulary);
    choice.name = known->name;
    auto compiled = ChatTemplate::compile(std::string(known->source));
    KV_CHECK(compiled.has_value(), "a template of the program's own does not compile");
    choice.chatTemplate = *compiled;
    return choice;
}

} // namespace kvscope::model

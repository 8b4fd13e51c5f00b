// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/template_json.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/json_nesting.h"
#include "engine/model/jinja/json_value.h"

namespace kvscope::model {

namespace {

using Json = nlohmann::ordered_json;
using jinja::Value;

constexpr std::array<std::string_view, 4> kTokenTexts = {"bos_token", "eos_token", "pad_token", "unk_token"};

Error wrong(std::string sentence) {
    return {ErrorCode::InvalidArgument, std::move(sentence)};
}

Result<Json> parsedObject(const std::string& text, const char* what) {
    Json json = jsonNestsTooDeep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
    if (!json.is_object())
        return tl::unexpected(wrong(std::string(what) + " must be a JSON object."));
    return json;
}

} // namespace

Result<jinja::Variables> templateVariables(const Json& object) {
    if (!object.is_object())
        return tl::unexpected(wrong("The template's variables must be a JSON object."));
    jinja::Variables variables;
    try {
        for (const auto& [name, value] : object.items()) {
            if (name == "messages" || name == "add_generation_prompt")
                return tl::unexpected(
                    wrong("The template variable '" + name + "' comes from the chat; leave it out of the variables."));
            const bool namesToken = std::find(kTokenTexts.begin(), kTokenTexts.end(), name) != kTokenTexts.end();
            variables.emplace_back(name, jinja::valueFromJson(value, !namesToken));
        }
    } catch (const jinja::Failure& failure) {
        return tl::unexpected(wrong(std::string("The template's variables cannot be used: ") + failure.what() + "."));
    }
    return variables;
}

Result<jinja::Variables> templateVariables(const std::string& json) {
    if (json.empty())
        return jinja::Variables{};
    const auto object = parsedObject(json, "The template's variables");
    if (!object)
        return tl::unexpected(object.error());
    return templateVariables(*object);
}

Result<void> setMessageFields(const std::string& json, const std::string& text, std::int32_t index,
                              ChatMessage& message) {
    const auto object = parsedObject(json, "A message");
    if (!object)
        return tl::unexpected(object.error());
    const bool changed = message.content != text || !message.opener.empty();
    bool hasContent = false;
    try {
        for (const auto& [key, value] : object->items()) {
            if (key == "role") {
                if (!value.is_string() || value.get_ref<const std::string&>() != message.role)
                    return tl::unexpected(wrong("A message's fields name another role than its own."));
                message.fields.emplace_back(Value::string(key), Value::string(message.role));
            } else if (key == "content") {
                hasContent = true;
                const bool own = changed || value.is_string();
                message.fields.emplace_back(Value::string(key), own ? Value() : jinja::markedFromJson(value, index));
            } else {
                message.fields.emplace_back(Value::string(jinja::Text::fromOutside(key, -1)),
                                            jinja::markedFromJson(value, -1));
                message.onlyText = false;
            }
        }
    } catch (const jinja::Failure& failure) {
        return tl::unexpected(wrong(std::string("A message cannot be used: ") + failure.what() + "."));
    }
    if (changed && !hasContent)
        message.fields.emplace_back(Value::string("content"), Value());
    return {};
}

} // namespace kvscope::model

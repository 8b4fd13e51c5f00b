// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a chat template is given as JSON: messages with more than a text (tool calls and their results), and variables
// of the template's own (tools, thinking on or off).
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "engine/model/chat_template.h"
#include "engine/model/dialog.h"

namespace kvscope::model {

/// Variables for TemplateInput::variables. Everything in them is data: control tokens written in it stay text, except
/// in the texts that name such tokens (bos_token, eos_token, pad_token, unk_token). Error (InvalidArgument): no object,
/// or a name that the chat itself sets (messages, add_generation_prompt), or nested too deeply.
Result<jinja::Variables> templateVariables(const nlohmann::ordered_json& object);
/// The same, of JSON text; empty = none.
Result<jinja::Variables> templateVariables(const std::string& json);

/// Gives `message` the fields that the template sees of it: those of the JSON object, in their order. `text` is the
/// content that the object has (its parts joined): where the message's own content is another by now, or the object has
/// it as a string, the message's own is what the template sees. Error (InvalidArgument): not such an object, another
/// role than the message's.
Result<void> setMessageFields(const std::string& json, const std::string& text, std::int32_t index,
                              ChatMessage& message);

} // namespace kvscope::model

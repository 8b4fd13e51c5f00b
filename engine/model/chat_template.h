// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/jinja/interpreter.h"
#include "engine/model/jinja/value.h"

namespace kvscope::model {

/// What a chat template is given.
struct TemplateInput {
    /// A list of dicts (role, content, ...). Strings that users or models wrote carry marks
    /// (`jinja::Text::fromOutside`); the renderer keeps track of them through everything the template does.
    jinja::Value messages;
    bool addGenerationPrompt = true;
    jinja::Variables variables; ///< bos_token, eos_token, tools, enable_thinking, ...
    std::tm now{};              ///< local time for strftime_now
};

/// Bytes of a rendering that one message's round of the template's loop printed, its frame (role, end mark) included.
struct MessageSpan {
    std::int32_t message = 0; ///< index into TemplateInput::messages
    std::size_t begin = 0;
    std::size_t end = 0;
};

struct Rendering {
    jinja::Text text;                  ///< with the marks of what came from outside
    std::vector<MessageSpan> messages; ///< in order of their beginning; a message may have none or several
};

/// A chat template in our own subset of Jinja (gguf-format: trim_blocks, lstrip_blocks, loop controls, raise_exception,
/// strftime_now, tojson of Python). Immutable; any number of threads may render with one object. Rendering has no
/// effect outside and ends within the limits, whatever the template says.
class ChatTemplate {
public:
    /// Error (Template) with line and reason for what is wrong or not supported, found here and not at the first chat.
    static Result<std::shared_ptr<const ChatTemplate>> compile(std::string source);

    /// Error (Template): the message of raise_exception word for word, or a sentence with line and what failed.
    Result<Rendering> render(const TemplateInput& input, const jinja::Limits& limits = {}) const;
    /// Is this error of `render` the template's own word about the chat (raise_exception)? Otherwise the template
    /// itself is at fault, and another chat would not help.
    static bool refusesChat(const Error& error);

    const std::string& source() const { return m_source; }

private:
    ChatTemplate(std::string source, jinja::Statements statements);

    std::string m_source;
    jinja::Statements m_statements;
};

/// Local time of now, for TemplateInput::now.
std::tm localTimeNow();

} // namespace kvscope::model

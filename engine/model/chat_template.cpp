// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/chat_template.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/model/jinja/parser.h"

namespace kvscope::model {

ChatTemplate::ChatTemplate(std::string source, jinja::Statements statements)
    : m_source(std::move(source))
    , m_statements(std::move(statements)) {}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::compile(std::string source) {
    try {
        jinja::Statements statements = jinja::parseTemplate(source);
        return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(source), std::move(statements)));
    } catch (const jinja::SyntaxFailure& failure) {
        return fail(ErrorCode::Template, "The chat template cannot be used: line " + std::to_string(failure.line()) +
                                             ": " + failure.what() + ".");
    }
}

Result<Rendering> ChatTemplate::render(const TemplateInput& input, const jinja::Limits& limits) const {
    jinja::Variables variables = input.variables;
    variables.emplace_back("messages", input.messages);
    variables.emplace_back("add_generation_prompt", jinja::Value::boolean(input.addGenerationPrompt));
    try {
        jinja::Output output = jinja::interpret(m_statements, variables, input.now, limits);
        Rendering rendering;
        rendering.text = std::move(output.text);
        if (const jinja::ListData* messages = input.messages.asList()) {
            for (const jinja::ItemSpan& span : output.items) {
                const auto& items = messages->items;
                const auto found = std::find_if(items.begin(), items.end(), [&](const jinja::Value& message) {
                    return message.asDict() == span.item;
                });
                if (found != items.end())
                    rendering.messages.push_back(
                        {static_cast<std::int32_t>(found - items.begin()), span.begin, span.end});
            }
        }
        return rendering;
    } catch (const jinja::Raised& raised) {
        return fail(ErrorCode::Template, raised.what());
    } catch (const jinja::Failure& failure) {
        return fail(ErrorCode::Template, std::string("The chat template failed: ") + failure.what() + ".");
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::OutOfMemory, "There is not enough memory to render the chat template.");
    }
}

std::tm localTimeNow() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return local;
}

} // namespace kvscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/chat_template.h"

#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/model/gguf_types.h"
#include "engine/model/jinja/parser.h"

namespace kvscope::model {

namespace {

constexpr std::string_view kOwnFailure = "The chat template failed: ";
constexpr std::size_t kMostReason = 300; ///< characters: names in it are as long as the template likes

} // namespace

ChatTemplate::ChatTemplate(std::string source, jinja::Statements statements)
    : m_source(std::move(source))
    , m_statements(std::move(statements)) {}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::compile(std::string source) {
    constexpr std::size_t kMostSource = std::size_t(1) << 20; // the longest real ones have some 60 KiB
    if (source.size() > kMostSource)
        return fail(ErrorCode::Template, "The chat template cannot be used: it is longer than " +
                                             std::to_string(kMostSource >> 20) + " MiB.");
    try {
        jinja::Statements statements = jinja::parseTemplate(source);
        return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(source), std::move(statements)));
    } catch (const jinja::SyntaxFailure& failure) {
        return fail(ErrorCode::Template, "The chat template cannot be used: line " + std::to_string(failure.line()) +
                                             ": " + forSentence(failure.what(), kMostReason) + ".");
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::OutOfMemory, "There is not enough memory to read the chat template.");
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
            std::unordered_map<const jinja::DictData*, std::int32_t> indices;
            std::int32_t index = 0;
            for (const jinja::Value& message : messages->items)
                indices.emplace(message.asDict(), index++);
            for (const jinja::ItemSpan& span : output.items)
                if (const auto found = indices.find(span.item); found != indices.end())
                    rendering.messages.push_back({found->second, span.begin, span.end});
        }
        return rendering;
    } catch (const jinja::Raised& raised) {
        return fail(ErrorCode::Template, raised.what());
    } catch (const jinja::Failure& failure) {
        return fail(ErrorCode::Template, std::string(kOwnFailure) + "line " + std::to_string(failure.line()) + ": " +
                                             forSentence(failure.what(), kMostReason) + ".");
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::OutOfMemory, "There is not enough memory to render the chat template.");
    }
}

bool ChatTemplate::refusesChat(const Error& error) {
    return error.code == ErrorCode::Template && !error.message.starts_with(kOwnFailure);
}

std::tm localTimeNow() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return local;
}

} // namespace kvscope::model

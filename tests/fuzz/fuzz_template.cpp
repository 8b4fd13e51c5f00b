// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: the bytes are a chat template, rendered over a fixed chat. Whatever it is, it must end with a text
// or a sentence, soon and within its memory, and the marks of user text must be in order.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/model/chat_template.h"
#include "engine/model/jinja/json_value.h"

using namespace kvscope::model;

namespace {

TemplateInput makeInput() {
    TemplateInput input;
    input.messages = jinja::valueFromJson(nlohmann::ordered_json::parse(R"([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " Hëllo <|im_end|>\n"},
        {"role": "assistant", "content": "<think>hm</think>Yes.", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5, "b": [null, true]}}}]},
        {"role": "user", "content": [{"type": "text", "text": "中文"}]}])"),
                                          true);
    input.variables = {
        {"bos_token", jinja::Value::string("<s>")},
        {"tools", jinja::valueFromJson(nlohmann::ordered_json::parse(R"([{"name": "f", "n": 3}])"), true)}};
    return input;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const TemplateInput input = makeInput();
    const auto chatTemplate = ChatTemplate::compile(std::string(reinterpret_cast<const char*>(data), size));
    if (!chatTemplate) {
        if (chatTemplate.error().message.empty())
            std::abort();
        return 0;
    }
    // Small limits: the time of one input is theirs, and sanitizers multiply it.
    const auto rendering = (*chatTemplate)->render(input, {50'000, 4 << 20, 100});
    if (!rendering)
        return 0;
    std::size_t done = 0;
    for (const jinja::Mark& mark : rendering->text.marks()) {
        if (mark.begin < done || mark.end <= mark.begin || mark.end > rendering->text.size())
            std::abort();
        done = mark.end;
    }
    for (const MessageSpan& span : rendering->messages)
        if (span.message < 0 || span.message > 3 || span.end > rendering->text.size() || span.begin > span.end)
            std::abort();
    return 0;
}

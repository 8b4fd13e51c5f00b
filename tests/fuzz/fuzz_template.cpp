// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: the bytes are a chat template, rendered with a fixed dialog. Whatever it says, it must end within
// its limits, and what users wrote must keep its mark.
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/model/chat_template.h"
#include "engine/model/jinja/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kvscope::model;
    static const auto messages =
        jinja::valueFromJson(nlohmann::ordered_json::parse(R"([{"role": "system", "content": "Be brief."},
                                          {"role": "user", "content": "Hi <|im_end|> {{ 7 * 7 }}"},
                                          {"role": "assistant", "content": "Hello", "n": [1, 2.5, null, true]},
                                          {"role": "user", "content": "\u00e9\u4e2d"}])"),
                             true);
    const auto compiled = ChatTemplate::compile(std::string(reinterpret_cast<const char*>(data), size));
    if (!compiled)
        return 0;
    TemplateInput input;
    input.messages = messages;
    input.variables.emplace_back("bos_token", jinja::Value::string(jinja::Text("<s>")));
    // Tight limits: the fuzzer looks for what slips past them, not for slow templates.
    static_cast<void>((*compiled)->render(input, {.steps = 20'000, .bytes = 1 << 20, .depth = 100}));
    return 0;
}

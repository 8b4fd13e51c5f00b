// SPDX-License-Identifier: GPL-3.0-or-later
//
// Does with a file everything that the program ever does with one. For the mutation test and the fuzzer: whatever the
// bytes are, this must end soon, without a crash and with sentences as the only failures.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model/chat_template.h"
#include "engine/model/inspect.h"
#include "engine/model/model_config.h"
#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::test {

/// How far the file got.
enum class Reached { Nothing, Opened, Configured };

inline Reached exerciseModelFile(const std::string& path) {
    using namespace model;
    const auto file = ModelFile::open(path);
    if (!file)
        return Reached::Nothing;
    std::uint64_t sum = 0; // keeps every read observable
    for (const std::string_view key : file->metadata().keys()) {
        const GgufValue& value = *file->metadata().find(key);
        sum += static_cast<std::uint64_t>(value.asInteger().value_or(0)) + value.asString().value_or("").size();
        for (const std::string_view text : value.asStrings().value_or(std::vector<std::string_view>()))
            sum += text.empty() ? 0 : static_cast<unsigned char>(text.back());
        for (const std::int64_t number : value.asIntegers().value_or(std::vector<std::int64_t>()))
            sum += static_cast<std::uint64_t>(number);
        sum += value.asReals().value_or(std::vector<double>()).size() +
               value.asBools().value_or(std::vector<bool>()).size();
    }
    const auto fingerprint =
        file->stream([&](const TensorInfo& tensor, std::span<const std::byte> bytes) -> Result<void> {
            sum += tensor.bytes + static_cast<std::uint64_t>(bytes.front()) + static_cast<std::uint64_t>(bytes.back());
            return {};
        });
    sum += fingerprint ? fingerprint->low : 0;
    const auto json = inspectJson(path);
    sum += json ? json->size() : 0;
    if (auto vocabulary = vocabularyFromGguf(file->metadata())) {
        const std::string chatTemplate = vocabulary->chatTemplate;
        sum += ChatTemplate::compile(chatTemplate).has_value();
        if (const auto tokenizer = Tokenizer::create(std::move(*vocabulary)))
            if (const auto encoded =
                    (*tokenizer)
                        ->encode("Hello, th\xC3\xA9re\n", {.parseSpecial = true, .addBos = true, .userText = {}}))
                sum += (*tokenizer)->decode(encoded->ids, false).has_value();
    }
    const auto config = readModelConfig(*file);
    volatile std::uint64_t sink = sum;
    static_cast<void>(sink);
    return config ? Reached::Configured : Reached::Opened;
}

} // namespace kvscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: the bytes are a text. With a byte-level vocabulary every text, valid UTF-8 or not, comes back from
// its tokens byte for byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/model/tokenizer.h"
#include "tests/support/tiny_llama.h"

namespace {

std::shared_ptr<const kvscope::model::Tokenizer> makeTokenizer(const char* preTokenizer) {
    using namespace kvscope::model;
    Vocabulary vocabulary;
    vocabulary.model = "gpt2";
    vocabulary.preTokenizer = preTokenizer;
    for (int byte = 0; byte < 256; ++byte)
        vocabulary.tokens.push_back(kvscope::test::detail::byteToken(byte));
    const std::string space = kvscope::test::detail::byteToken(' ');
    for (const auto& [left, right] : {std::pair<std::string, std::string>{"t", "h"},
                                      {"th", "e"},
                                      {space, "the"},
                                      {space, space},
                                      {space + space, space + space},
                                      {"1", "2"}}) {
        vocabulary.merges.emplace_back(left, right);
        vocabulary.tokens.push_back(left + right);
    }
    vocabulary.types.assign(vocabulary.tokens.size(), TokenType::Normal);
    vocabulary.tokens.push_back("<|im_end|>");
    vocabulary.types.push_back(TokenType::Control);
    auto tokenizer = Tokenizer::create(std::move(vocabulary));
    if (!tokenizer)
        std::abort();
    return *tokenizer;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto gpt2 = makeTokenizer("gpt-2");
    static const auto smollm = makeTokenizer("smollm");
    const std::string text(reinterpret_cast<const char*>(data), size);
    for (const auto& tokenizer : {gpt2, smollm})
        for (const bool parseSpecial : {false, true}) {
            const auto encoded = tokenizer->encode(text, {.parseSpecial = parseSpecial});
            if (!encoded)
                std::abort();
            const auto decoded = tokenizer->decode(encoded->ids, false);
            if (!decoded || *decoded != text)
                std::abort();
        }
    return 0;
}

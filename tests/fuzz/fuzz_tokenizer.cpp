// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: text to tokens and back, whole and streamed. The first byte chooses how; the rest is the text.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "engine/model/byte_alphabet.h"
#include "engine/model/detokenizer.h"
#include "engine/model/stop_matcher.h"
#include "engine/model/tokenizer.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

/// All bytes, some merges (one whose result is no token), control and user-defined tokens that overlap.
std::shared_ptr<const Tokenizer> makeTokenizer(const char* preTokenizer) {
    Vocabulary v;
    v.model = "gpt2";
    v.preTokenizer = preTokenizer;
    for (const char* control : {"<unk>", "<s>", "<|im_end|>", "<|im_end|><s>"}) {
        v.tokens.emplace_back(control);
        v.types.push_back(v.tokens.size() == 1 ? TokenType::Unknown : TokenType::Control);
    }
    for (int byte = 0; byte < 256; ++byte) {
        v.tokens.push_back(byteSymbol(static_cast<unsigned char>(byte)));
        v.types.push_back(TokenType::Normal);
    }
    const std::string space = byteSymbol(' ');
    for (const auto& [left, right] : {std::pair<std::string, std::string>{space, "a"},
                                      {"a", "b"},
                                      {"ab", "c"},
                                      {space, space},
                                      {"c", "a"},
                                      {space + "a", "b"}}) {
        v.merges.emplace_back(left, right);
        if (left + right != "abc") { // this one is no token
            v.tokens.push_back(left + right);
            v.types.push_back(TokenType::Normal);
        }
    }
    for (const char* user : {"ab#", "#cd", "<t>", "<t><t>"}) {
        v.tokens.emplace_back(user);
        v.types.push_back(TokenType::UserDefined);
    }
    v.bos = 1;
    v.addBos = true;
    auto tokenizer = Tokenizer::create(std::move(v));
    if (!tokenizer)
        std::abort();
    return *tokenizer;
}

void require(bool condition) {
    if (!condition)
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto smollm = makeTokenizer("smollm");
    static const auto gpt2 = makeTokenizer("gpt-2");
    if (size == 0)
        return 0;
    const unsigned how = data[0];
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto& tokenizer = (how & 1) != 0 ? smollm : gpt2;
    const std::size_t userBegin = text.size() * (how >> 4) / 16;
    const TextRange user{userBegin, userBegin + (text.size() - userBegin) / 2};
    EncodeOptions options{(how & 2) != 0, (how & 4) != 0, {}};
    if ((how & 8) != 0 && user.end > user.begin)
        options.userText = {&user, 1};
    const auto encoding = tokenizer->encode(text, options);
    require(encoding && encoding->ends.size() == encoding->ids.size());

    const std::string whole = *tokenizer->decode(encoding->ids, false);
    const bool bosAdded = !encoding->ends.empty() && encoding->ends.front() == 0;
    require(whole == (bosAdded ? "<s>" + text : text));
    Detokenizer detokenizer(tokenizer, {false, true});
    std::string streamed;
    for (const TokenId id : encoding->ids)
        streamed += detokenizer.push(id);
    require(streamed + detokenizer.finish() == whole);

    const std::string stop = text.substr(text.size() / 3, 1 + how % 5);
    StopMatcher matcher({stop, "ab"});
    std::string shown;
    for (const char c : text)
        shown += matcher.push({&c, 1});
    shown += matcher.finish();
    require(text.compare(0, shown.size(), shown) == 0 && (matcher.matched() || shown == text));
    require(!matcher.matched() || text.compare(shown.size(), matcher.matched()->size(), *matcher.matched()) == 0);
    return 0;
}

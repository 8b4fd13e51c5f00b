// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: text to tokens and back, whole and streamed. The first byte chooses how, the second one the kind of
// tokenizer; the rest is the text.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/byte_alphabet.h"
#include "engine/model/detokenizer.h"
#include "engine/model/sentence_piece_merger.h"
#include "engine/model/stop_matcher.h"
#include "engine/model/tokenizer.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

/// Every splitting rule once; behind them SentencePiece, without and with a blank before words.
constexpr const char* kPreTokenizers[] = {"smollm",    "gpt-2",        "qwen2",          "qwen35",
                                          "llama-bpe", "dbrx",         "seed-coder",     "tekken",
                                          "gpt-4o",    "deepseek-llm", "deepseek-coder", "deepseek-v3"};
constexpr std::size_t kByteLevelKinds = std::size(kPreTokenizers);
constexpr std::size_t kKinds = kByteLevelKinds + 2;

void add(Vocabulary& v, std::string text, TokenType type) {
    v.tokens.push_back(std::move(text));
    v.types.push_back(type);
}

std::shared_ptr<const Tokenizer> made(Vocabulary v) {
    v.bos = 1;
    v.addBos = true;
    auto tokenizer = Tokenizer::create(std::move(v));
    if (!tokenizer || !(*tokenizer)->canEncode())
        std::abort();
    return *tokenizer;
}

void addSpecials(Vocabulary& v) {
    add(v, "<unk>", TokenType::Unknown);
    for (const char* control : {"<s>", "<|im_end|>", "<|im_end|><s>"})
        add(v, control, TokenType::Control);
    for (const char* user : {"ab#", "#cd", "<t>", "<t><t>"})
        add(v, user, TokenType::UserDefined);
}

/// All bytes, some merges (one whose result is no token), control and user-defined tokens that overlap.
std::shared_ptr<const Tokenizer> byteLevel(const char* preTokenizer) {
    Vocabulary v;
    v.model = "gpt2";
    v.preTokenizer = preTokenizer;
    addSpecials(v);
    for (int byte = 0; byte < 256; ++byte)
        add(v, byteSymbol(static_cast<unsigned char>(byte)), TokenType::Normal);
    const std::string space = byteSymbol(' ');
    for (const auto& [left, right] : {std::pair<std::string, std::string>{space, "a"},
                                      {"a", "b"},
                                      {"ab", "c"},
                                      {space, space},
                                      {"c", "a"},
                                      {space + "a", "b"}}) {
        v.merges.emplace_back(left, right);
        if (left + right != "abc") // this one is no token
            add(v, left + right, TokenType::Normal);
    }
    return made(std::move(v));
}

/// All bytes, some pieces with equal scores, the same special tokens.
std::shared_ptr<const Tokenizer> sentencePiece(bool spacePrefix) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    const std::string blank = "\xE2\x96\x81";
    Vocabulary v;
    v.model = "llama";
    v.addSpacePrefix = spacePrefix;
    addSpecials(v);
    for (int byte = 0; byte < 256; ++byte)
        add(v, std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", TokenType::Byte);
    for (const std::string& piece : {blank, blank + blank, blank + "a", std::string("a"), std::string("b"),
                                     std::string("c"), std::string("ab"), std::string("ca"), std::string("abca"),
                                     blank + "ab", std::string("\xC3\xA9"), std::string("\xC3\xA9\xC3\xA9")})
        add(v, piece, TokenType::Normal);
    for (std::size_t id = 0; id < v.size(); ++id)
        v.scores.push_back(-static_cast<float>(id % 5));
    return made(std::move(v));
}

const std::shared_ptr<const Tokenizer>& tokenizerOf(std::size_t kind) {
    static const auto kAll = [] {
        std::array<std::shared_ptr<const Tokenizer>, kKinds> all;
        for (std::size_t i = 0; i < kByteLevelKinds; ++i)
            all[i] = byteLevel(kPreTokenizers[i]);
        all[kByteLevelKinds] = sentencePiece(false);
        all[kByteLevelKinds + 1] = sentencePiece(true);
        return all;
    }();
    return kAll[kind];
}

void require(bool condition) {
    if (!condition)
        std::abort();
}

void checkStops(const std::string& text, unsigned how) {
    const std::string stop = text.substr(text.size() / 3, 1 + how % 5);
    StopMatcher matcher({stop, "ab"});
    std::string shown;
    for (const char c : text)
        shown += matcher.push({&c, 1});
    shown += matcher.finish();
    require(text.compare(0, shown.size(), shown) == 0 && (matcher.matched() || shown == text));
    require(!matcher.matched() || text.compare(shown.size(), matcher.matched()->size(), *matcher.matched()) == 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2)
        return 0;
    const unsigned how = data[0];
    const std::size_t kind = data[1] % kKinds;
    const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto& tokenizer = tokenizerOf(kind);
    const std::size_t userBegin = text.size() * (how >> 4) / 16;
    const TextRange user{userBegin, userBegin + (text.size() - userBegin) / 2};
    EncodeOptions options{(how & 2) != 0, (how & 4) != 0, {}};
    options.atTextStart = (how & 1) == 0;
    if ((how & 8) != 0 && user.end > user.begin)
        options.userText = {&user, 1};
    const auto encoding = tokenizer->encode(text, options);
    require(encoding && encoding->ends.size() == encoding->ids.size());
    for (std::size_t i = 1; i < encoding->ends.size(); ++i)
        require(encoding->ends[i - 1] <= encoding->ends[i]);
    require(encoding->ends.empty() || encoding->ends.back() == text.size());

    const std::string whole = *tokenizer->decode(encoding->ids, false);
    // A blank and U+2581 are one to SentencePiece. Blanks before words cannot be told from those of the text.
    const std::string readable = kind < kByteLevelKinds ? text : blanksUnmarked(text);
    if (kind != kKinds - 1)
        require(whole == (options.addBos ? "<s>" + readable : readable));
    Detokenizer detokenizer(tokenizer, {false, true});
    std::string streamed;
    for (const TokenId id : encoding->ids)
        streamed += detokenizer.push(id);
    require(streamed + detokenizer.finish() == whole);
    checkStops(text, how);
    return 0;
}

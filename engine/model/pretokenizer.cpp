// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/pretokenizer.h"

#include <algorithm>
#include <array>
#include <string>

namespace kvscope::model {

namespace {

/// Reading position over a range that pretends the text ends at `end`.
struct Cursor {
    const CodePoints& text;
    std::size_t at;
    std::size_t end;

    bool has(std::size_t ahead = 0) const { return at + ahead < end; }
    char32_t value(std::size_t ahead = 0) const { return has(ahead) ? text.values[at + ahead] : 0; }
    bool is(CharClass wanted, std::size_t ahead = 0) const { return has(ahead) && text.classes[at + ahead] == wanted; }
    /// Neither whitespace, letter nor number.
    bool isOther(std::size_t ahead = 0) const {
        return has(ahead) && !is(CharClass::Space, ahead) && !is(CharClass::Letter, ahead) &&
               !is(CharClass::Number, ahead);
    }
};

/// Every number alone: `\p{N}`, the text between in one piece.
void splitSingleNumbers(const CodePoints& text, std::size_t begin, std::size_t end, std::vector<std::size_t>& ends) {
    for (std::size_t i = begin; i < end; ++i) {
        if (text.classes[i] != CharClass::Number)
            continue;
        if (i > begin && (ends.empty() || ends.back() != i))
            ends.push_back(i);
        ends.push_back(i + 1);
    }
    if (begin < end && (ends.empty() || ends.back() != end))
        ends.push_back(end);
}

/// Length of 's 't 'm 'd 're 've 'll (lower case only), 0 if none starts here.
std::size_t lowerContraction(const Cursor& c) {
    if (c.value() != U'\'')
        return 0;
    const char32_t a = c.value(1);
    const char32_t b = c.value(2);
    if (a == U's' || a == U't' || a == U'm' || a == U'd')
        return 2;
    if ((a == U'r' && b == U'e') || (a == U'v' && b == U'e') || (a == U'l' && b == U'l'))
        return 3;
    return 0;
}

/// Length of the piece of the GPT-2 rule that starts at the cursor (>= 1):
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`, anything else alone.
std::size_t gpt2Piece(const Cursor& c) {
    if (const std::size_t length = lowerContraction(c))
        return length;
    std::size_t length = c.value() == U' ' ? 1 : 0; // one space goes with what follows
    if (c.is(CharClass::Letter, length) || c.is(CharClass::Number, length)) {
        const CharClass wanted = c.text.classes[c.at + length];
        while (c.is(wanted, length))
            ++length;
        return length;
    }
    if (c.isOther(length)) {
        while (c.isOther(length))
            ++length;
        return length;
    }
    length = 0;
    while (c.is(CharClass::Space, length))
        ++length;
    // The last space before a word belongs to the word, unless it is alone (then it stays a piece of its own).
    if (c.has(length) && length > 1)
        --length;
    return length;
}

void splitGpt2(const CodePoints& text, std::size_t begin, std::size_t end, std::vector<std::size_t>& ends) {
    for (Cursor c{text, begin, end}; c.has();) {
        c.at += gpt2Piece(c);
        ends.push_back(c.at);
    }
}

constexpr std::array<SplitRule, 1> kGpt2Rules = {splitGpt2};
constexpr std::array<SplitRule, 2> kSmolLmRules = {splitSingleNumbers, splitGpt2};

constexpr PreTokenizer kGpt2 = {"gpt-2", kGpt2Rules, false, false};
constexpr PreTokenizer kSmolLm = {"smollm", kSmolLmRules, false, false};

struct Alias {
    std::string_view name;
    const PreTokenizer* kind;
};

constexpr std::array kAliases = {
    Alias{"gpt-2", &kGpt2},       Alias{"mpt", &kGpt2},      Alias{"olmo", &kGpt2},
    Alias{"jais", &kGpt2},        Alias{"trillion", &kGpt2}, Alias{"smollm", &kSmolLm},
    Alias{"starcoder", &kSmolLm}, Alias{"refact", &kSmolLm}, Alias{"command-r", &kSmolLm},
    Alias{"codeshell", &kSmolLm}, Alias{"exaone", &kSmolLm}, Alias{"minerva-7b", &kSmolLm},
};

} // namespace

Result<const PreTokenizer*> findPreTokenizer(std::string_view name) {
    const auto found =
        std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& alias) { return alias.name == name; });
    if (found != kAliases.end())
        return found->kind;
    if (name == "default" || name.empty())
        return fail(ErrorCode::Unsupported, "The file does not name its pre-tokenizer (tokenizer.ggml.pre), and a "
                                            "guess would give wrong tokens; use a file converted by a newer program.");
    return fail(ErrorCode::Unsupported, "The pre-tokenizer \"" + std::string(name) +
                                            "\" (tokenizer.ggml.pre) is not supported; use a model with another one, "
                                            "or give token ids instead of text.");
}

std::vector<std::size_t> splitPieces(const PreTokenizer& kind, const CodePoints& text) {
    std::vector<std::size_t> ends;
    if (text.size() == 0)
        return ends;
    ends.push_back(text.size());
    std::vector<std::size_t> next;
    for (const SplitRule rule : kind.rules) {
        next.clear();
        next.reserve(ends.size());
        std::size_t begin = 0;
        for (const std::size_t end : ends) {
            rule(text, begin, end, next);
            begin = end;
        }
        ends.swap(next);
    }
    return ends;
}

} // namespace kvscope::model

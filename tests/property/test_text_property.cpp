// SPDX-License-Identifier: GPL-3.0-or-later
//
// Text against slow and obvious oracles: merging, stop strings, streaming, dialogs.
#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <map>
#include <random>

#include <rapidcheck.h>

#include "engine/model/byte_alphabet.h"
#include "engine/model/detokenizer.h"
#include "engine/model/dialog.h"
#include "engine/model/stop_matcher.h"
#include "engine/model/unicode.h"
#include "tests/support/holds.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

const std::shared_ptr<const Tokenizer>& tokenizer() {
    static const auto kTokenizer = test::tinyTokenizer("smollm");
    return kTokenizer;
}

bool check(const char* name, const std::function<void()>& property) {
    return test::holds(name, test::kHoldsRuns, property);
}

/// Texts that meet the interesting rules: words, digits, blanks, contractions, special tokens, other scripts, bad
/// bytes.
rc::Gen<std::string> texts() {
    const auto part = rc::gen::oneOf(
        rc::gen::elementOf(std::vector<std::string>{
            "the",    " the",     "'s",     "'LL",  " ",        "  ",     "\n",         "\r\n",  "\t",
            "12",     "é",        "中",     "😀",    "\u00A0",   "\u0301", "<|im_end|>", "<|im_", "start|>",
            "<tool>", "<sp><sp>", "ab#cde", "\xFF", "\xE4\xB8", ".",      "?!"}),
        rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcdet "))));
    return rc::gen::map(rc::gen::scale(0.3, rc::gen::container<std::vector<std::string>>(part)),
                        [](const std::vector<std::string>& parts) {
                            std::string text;
                            for (const std::string& p : parts)
                                text += p;
                            return text;
                        });
}

rc::Gen<std::vector<TokenId>> tokenIds() {
    return rc::gen::container<std::vector<TokenId>>(
        rc::gen::inRange<TokenId>(0, static_cast<TokenId>(tokenizer()->vocabulary().size())));
}

using Ranks = std::map<std::pair<std::string, std::string>, std::size_t>;

/// Merging as the definition says it: again and again the pair of lowest rank, leftmost.
std::vector<std::string> mergedSlowly(const std::string& piece, const Ranks& ranks) {
    std::vector<std::string> symbols;
    for (const char c : piece)
        symbols.push_back(byteSymbol(static_cast<unsigned char>(c)));
    for (;;) {
        std::size_t best = ranks.size();
        std::size_t where = 0;
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
            const auto found = ranks.find({symbols[i], symbols[i + 1]});
            if (found != ranks.end() && found->second < best) {
                best = found->second;
                where = i;
            }
        }
        if (best == ranks.size())
            return symbols;
        symbols[where] += symbols[where + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
}

/// Where the first stop string is complete, and which it is: by looking at every beginning of the text.
std::pair<std::string, std::optional<std::string>> stoppedSlowly(const std::string& text,
                                                                 std::vector<std::string> stops) {
    std::stable_sort(stops.begin(), stops.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (std::size_t end = 0; end <= text.size(); ++end)
        for (const std::string& stop : stops)
            if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0)
                return {text.substr(0, end - stop.size()), stop};
    return {text, std::nullopt};
}

std::vector<std::string> cutAnywhere(const std::string& text) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
        const auto length = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
        pieces.push_back(text.substr(at, length));
        at += length;
    }
    return pieces;
}

DialogEncoder encoder(const std::string& source) {
    return {tokenizer(), *ChatTemplate::compile(source)};
}

const char* templateSource(bool bare) {
    return bare ? "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
                  "{% if add_generation_prompt %}assistant: {% endif %}"
                : "{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>\n{% endfor %}"
                  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
}

} // namespace

class TestTextProperty : public QObject {
    Q_OBJECT
private slots:
    void decodingAnEncodedTextGivesIt() {
        QVERIFY(check("decode(encode(text)) == text", [] {
            const std::string text = *texts();
            const bool special = *rc::gen::arbitrary<bool>();
            const auto encoding = *tokenizer()->encode(text, {special, false, {}});
            RC_ASSERT(*tokenizer()->decode(encoding.ids, false) == text);
            RC_ASSERT(encoding.ends.size() == encoding.ids.size());
            RC_ASSERT(std::is_sorted(encoding.ends.begin(), encoding.ends.end()));
            RC_ASSERT((encoding.ends.empty() || encoding.ends.back() == text.size()));
        }));
    }

    void mergingGivesWhatItsDefinitionSays() {
        const Vocabulary& v = tokenizer()->vocabulary();
        std::vector<std::string> bytes;
        for (const std::string& token : v.tokens)
            bytes.push_back(bytesOfSymbols(token).value_or(""));
        std::vector<std::pair<std::string, std::string>> merges;
        for (const auto& [left, right] : v.merges)
            merges.emplace_back(*bytesOfSymbols(left), *bytesOfSymbols(right));
        Ranks ranks;
        for (std::size_t rank = 0; rank < v.merges.size(); ++rank)
            ranks.try_emplace(v.merges[rank], rank);
        const BytePairMerger merger(bytes, merges);
        QVERIFY(check("merges", [&] {
            const auto piece = *rc::gen::oneOf(
                texts(), rc::gen::container<std::string>(rc::gen::elementOf(std::string("aehinorst "))));
            const std::vector<std::string> symbols = mergedSlowly(piece, ranks);
            BytePairMerger::Workspace workspace;
            std::vector<TokenId> ids;
            std::vector<std::uint32_t> ends;
            merger.encode(piece, 0, workspace, ids, ends);
            RC_ASSERT(ids.size() == symbols.size());
            for (std::size_t i = 0; i < ids.size(); ++i)
                RC_ASSERT(v.tokens[static_cast<std::size_t>(ids[i])] == symbols[i]);
        }));
    }

    void streamingGivesTheSameBytesAsDecodingAtOnce() {
        QVERIFY(check("streaming == batch", [] {
            const auto ids = *rc::gen::oneOf(tokenIds(), rc::gen::map(texts(), [](const std::string& text) {
                                                 return tokenizer()->encode(text)->ids;
                                             }));
            const bool skip = *rc::gen::arbitrary<bool>();
            const std::string whole = *tokenizer()->decode(ids, skip);
            Detokenizer detokenizer(tokenizer(), {skip, true});
            std::string streamed;
            for (const TokenId id : ids) {
                streamed += detokenizer.push(id);
                RC_ASSERT(detokenizer.heldBack().size() < 4u);
                // Valid text is never cut inside a character.
                RC_ASSERT((!isValidUtf8(whole) || isValidUtf8(streamed)));
            }
            RC_ASSERT(streamed + detokenizer.finish() == whole);
        }));
    }

    void stopStringsCutAtTheFirstThatIsComplete() {
        QVERIFY(check("stop matcher == oracle", [] {
            const auto small = rc::gen::container<std::string>(rc::gen::elementOf(std::string("aab\xC3\xA9")));
            const auto stops = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(small));
            const std::string text = *rc::gen::scale(3.0, small);
            const auto [expected, stop] = stoppedSlowly(text, stops);
            StopMatcher matcher(stops);
            std::string out;
            std::string pushed;
            for (const std::string& piece : cutAnywhere(text)) {
                out += matcher.push(piece);
                pushed += piece;
                // What came out is certain, and nothing is held without need.
                RC_ASSERT(expected.compare(0, out.size(), out) == 0);
                if (!matcher.matched()) {
                    const std::string held = pushed.substr(out.size());
                    RC_ASSERT(held.size() == matcher.heldBack());
                    RC_ASSERT((held.empty() || std::any_of(stops.begin(), stops.end(), [&](const std::string& s) {
                                   return s.compare(0, held.size(), held) == 0;
                               })));
                }
            }
            RC_ASSERT(out + matcher.finish() == expected);
            RC_ASSERT(matcher.matched() == stop);
        }));
    }

    void aFreshDialogHasTheIdsOfItsText() {
        QVERIFY(check("dialog ids", [] {
            const DialogEncoder plain = encoder(templateSource(*rc::gen::arbitrary<bool>()));
            DialogInput input;
            const auto contents = *rc::gen::container<std::vector<std::string>>(texts());
            bool controlTexts = false;
            for (const std::string& content : contents) {
                input.messages.push_back({input.messages.size() % 2 == 0 ? "user" : "assistant", content, {}});
                controlTexts = controlTexts || content.find("<|") != std::string::npos;
            }
            const auto dialog = *plain.encode(input);
            RC_ASSERT(*tokenizer()->decode(dialog.ids, false) == dialog.text);
            if (!controlTexts)
                RC_ASSERT(dialog.ids == tokenizer()->encode(dialog.text, {true, false, {}})->ids);
            const bool framed = dialog.text.rfind("<|im_start|>", 0) == 0;
            const auto starts = std::count(dialog.ids.begin(), dialog.ids.end(), TokenId(2));
            RC_ASSERT(starts == (framed ? static_cast<std::ptrdiff_t>(contents.size()) + 1 : 0));
            std::int64_t previous = 0;
            for (const auto& [begin, end] : dialog.messageRanges) {
                RC_ASSERT(begin >= previous);
                RC_ASSERT(end >= begin);
                previous = end;
            }
            RC_ASSERT(previous <= static_cast<std::int64_t>(dialog.ids.size()));
        }));
    }

    void everyTurnBeginsWithTheTurnBefore() {
        QVERIFY(check("prefix of the next turn", [] {
            const DialogEncoder turns = encoder(templateSource(*rc::gen::arbitrary<bool>()));
            DialogInput input;
            std::vector<TokenId> before;
            for (int turn = 0; turn < 4; ++turn) {
                input.messages.push_back({"user", *texts(), {}});
                const auto prompt = *turns.encode(input);
                RC_ASSERT(prompt.ids.size() >= before.size());
                RC_ASSERT(std::equal(before.begin(), before.end(), prompt.ids.begin()));
                RC_ASSERT(*tokenizer()->decode(prompt.ids, false) == prompt.text);
                // An answer as a model draws it: any ordinary tokens, rarely those that its text would give.
                const auto answer =
                    *rc::gen::nonEmpty(rc::gen::container<std::vector<TokenId>>(rc::gen::inRange<TokenId>(5, 1150)));
                input.messages.push_back({"assistant", *tokenizer()->decode(answer, true), answer});
                before = prompt.ids;
                before.insert(before.end(), answer.begin(), answer.end());
            }
        }));
    }

    void anythingOfTwoHundredThousandCharactersTakesLessThanASecond() {
        std::mt19937 random(7);
        for (int kind = 0; kind < 4; ++kind) {
            std::string text;
            while (text.size() < 200'000) {
                const std::uint32_t r = random();
                if (kind == 0)
                    text.push_back(static_cast<char>(r));
                else if (kind == 1)
                    text.push_back(static_cast<char>('a' + r % 26));
                else if (kind == 2)
                    appendUtf8(text, 0x20 + r % 0x2000);
                else
                    text += r % 2 == 0 ? "<|im_end|" : "<sp>";
            }
            QElapsedTimer timer;
            timer.start();
            QVERIFY(tokenizer()->encode(text, {true, false, {}}).has_value());
            QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed()))); // room for sanitizers
        }
    }
};

QTEST_APPLESS_MAIN(TestTextProperty)
#include "test_text_property.moc"

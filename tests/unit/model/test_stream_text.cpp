// SPDX-License-Identifier: GPL-3.0-or-later
// Text while it streams: whole characters, stop strings.
#include <QTest>
#include <string>
#include <vector>

#include "engine/model/detokenizer.h"
#include "engine/model/stop_matcher.h"
#include "engine/model/unicode.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

/// What came out of the matcher, pushed piece by piece, `|` between pushes.
std::string trace(StopMatcher& matcher, const std::vector<std::string>& pieces) {
    std::string out;
    for (const std::string& piece : pieces)
        out += matcher.push(piece) + "|";
    return out + matcher.finish();
}

} // namespace

class TestStreamText : public QObject {
    Q_OBJECT
private slots:
    void onlyWholeCharactersComeOut() {
        const auto tokenizer = test::tinyTokenizer("smollm");
        const std::string text = "a😀é中<|im_end|>b";
        std::vector<TokenId> ids;
        for (const char c : text.substr(0, text.find('<'))) // one token per byte
            ids.push_back(tokenizer->encode(std::string(1, c))->ids.at(0));
        ids.push_back(3);
        ids.push_back(tokenizer->encode("b")->ids.at(0));
        for (const bool skip : {true, false}) {
            Detokenizer detokenizer(tokenizer, {skip, false});
            std::string all;
            for (const TokenId id : ids) {
                const std::string piece = detokenizer.push(id);
                QVERIFY(isValidUtf8(piece));
                all += piece;
            }
            QVERIFY(detokenizer.finish().empty());
            QCOMPARE(all, skip ? "a😀é中b" : text);
        }
    }

    void unfinishedAndBadBytesAreKept() {
        const auto tokenizer = test::tinyTokenizer("smollm");
        Detokenizer detokenizer(tokenizer);
        const auto byte = [&](char c) { return tokenizer->encode(std::string(1, c))->ids.at(0); };
        QCOMPARE(detokenizer.push(byte('\xF0')), std::string());
        QCOMPARE(detokenizer.push(byte('\x9F')), std::string());
        QCOMPARE(detokenizer.push(byte('x')), std::string("\xF0\x9Fx")); // can never become valid: no longer held
        QCOMPARE(detokenizer.push(byte('\x80')), std::string("\x80"));
        QCOMPARE(detokenizer.push(byte('\xE4')), std::string());
        QCOMPARE(detokenizer.heldBack(), std::string("\xE4"));
        QCOMPARE(detokenizer.finish(), std::string("\xE4"));
        QCOMPARE(detokenizer.finish(), std::string());
    }

    void spacePrefixIsDroppedOnlyAtTheStartOfAText() {
        const auto tokenizer = test::tinyTokenizer("spm-prefix");
        const TokenId word = 431; // "▁a"
        Detokenizer start(tokenizer, {true, true});
        QCOMPARE(start.push(word), std::string("a"));
        QCOMPARE(start.push(word), std::string(" a"));
        Detokenizer middle(tokenizer, {true, false});
        QCOMPARE(middle.push(word), std::string(" a"));
    }

    void wholeCharactersOfEveryEnd() {
        QCOMPARE(wholeCharacters(""), std::size_t(0));
        QCOMPARE(wholeCharacters("ab"), std::size_t(2));
        QCOMPARE(wholeCharacters("a\xC3"), std::size_t(1));
        QCOMPARE(wholeCharacters("a\xF0\x9F\x98"), std::size_t(1));
        QCOMPARE(wholeCharacters("a\xF0\x9F\x98\x80"), std::size_t(5));
        QCOMPARE(wholeCharacters("a\xED\xA0"), std::size_t(3)); // a surrogate can never become valid
        QCOMPARE(wholeCharacters("\x80\x80\x80"), std::size_t(3));
        QCOMPARE(wholeCharacters("\xF4\x90"), std::size_t(2)); // above U+10FFFF
    }

    void heldBackUntilItCannotBeAStop() {
        StopMatcher matcher({"END"});
        QCOMPARE(trace(matcher, {"a E", "N", "x", "E", "ND rest", "more"}), std::string("a ||ENx||||"));
        QCOMPARE(*matcher.matched(), std::string("END"));
        QCOMPARE(matcher.heldBack(), std::size_t(0));
    }

    void whatIsHeldComesOutAtTheEnd() {
        StopMatcher matcher({"STOP"});
        QCOMPARE(trace(matcher, {"one ST", "O"}), std::string("one ||STO"));
        QVERIFY(!matcher.matched());
    }

    void insideMultiByteCharacters() {
        StopMatcher matcher({"é。"});
        const std::string text = "caf"
                                 "\xC3\xA9"
                                 "\xE3\x80\x82"
                                 "!";
        std::string out;
        for (const char c : text)
            out += matcher.push(std::string(1, c));
        QCOMPARE(out + matcher.finish(), std::string("caf"));
        QCOMPARE(*matcher.matched(), std::string("é。"));
    }

    void everyShortStopInEveryShortText() {
        const auto word = [](unsigned bits, unsigned length) {
            std::string text;
            for (unsigned i = 0; i < length; ++i)
                text += (bits >> i & 1u) != 0 ? 'a' : 'b';
            return text;
        };
        constexpr unsigned kTextLength = 11; // room for a long stop that begins inside another attempt
        for (unsigned length = 1; length <= 7; ++length)
            for (unsigned bits = 0; bits < 1u << length; ++bits) {
                const std::string stop = word(bits, length);
                for (unsigned textBits = 0; textBits < 1u << kTextLength; ++textBits) {
                    const std::string text = word(textBits, kTextLength);
                    const std::size_t at = text.find(stop);
                    StopMatcher matcher({stop});
                    std::string shown = matcher.push(text);
                    shown += matcher.finish();
                    if (shown != text.substr(0, at) || matcher.matched().has_value() != (at != std::string::npos))
                        QFAIL((stop + " in " + text).c_str());
                }
            }
    }

    void earliestOfSeveral() {
        StopMatcher first({"abcde", "bc"});
        QCOMPARE(trace(first, {"xabcde"}), std::string("xa|"));
        QCOMPARE(*first.matched(), std::string("bc"));
        StopMatcher together({"c", "abc"}); // complete with the same byte: the one that begins first
        QCOMPARE(trace(together, {"xabc"}), std::string("x|"));
        QCOMPARE(*together.matched(), std::string("abc"));
        StopMatcher overlapping({"aab"});
        QCOMPARE(trace(overlapping, {"aaab"}), std::string("a|"));
        StopMatcher none({"", ""});
        QCOMPARE(trace(none, {"abc"}), std::string("abc|"));
    }
};

QTEST_APPLESS_MAIN(TestStreamText)
#include "test_stream_text.moc"

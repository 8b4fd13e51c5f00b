// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <random>

#include "engine/base/thinking.h"

using namespace kvscope;

class TestThinking : public QObject {
    Q_OBJECT

    static void add(const char* name, const char* text, bool opened, const char* thinking, const char* answer,
                    bool open = false) {
        QTest::newRow(name) << QByteArray(text) << opened << QByteArray(thinking) << QByteArray(answer) << open;
    }

private slots:
    void aTextIsTakenApart_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("opened");
        QTest::addColumn<QByteArray>("thinking");
        QTest::addColumn<QByteArray>("answer");
        QTest::addColumn<bool>("open");
        add("nothing thought", " Hello\n", false, "", " Hello\n");
        add("a whole thought", "<think>\nhm\n</think>\n\nHello", false, "hm", "Hello");
        add("white space before it", "\n <think>hm</think>Hello", false, "hm", "Hello");
        add("the prompt began it", "hm\n</think>\n\nHello", true, "hm", "Hello");
        add("the prompt began it and the model again", "<think>hm</think>Hello", true, "<think>hm", "Hello");
        add("only an end, nobody said so", "hm\nhm hm\n</think>\nHello", false, "hm\nhm hm", "Hello");
        add("only an end, at the end of a line", "hm.</think>\n\nHello", false, "hm.", "Hello");
        add("an end inside of a sentence is text", "The mark </think> ends it.", false, "",
            "The mark </think> ends it.");
        add("unfinished", "<think>hm", false, "hm", "", true);
        add("unfinished, begun by the prompt", "hm", true, "hm", "", true);
        add("an empty thought", "<think>\n\n</think>\n\nHello", false, "", "Hello");
        add("in a fence", "So:\n```xml\n<think>\nx\n</think>\n```\nDone", false, "",
            "So:\n```xml\n<think>\nx\n</think>\n```\nDone");
        add("in an unfinished fence", "So:\n~~~\n<think>\nx\n</think>\n", false, "",
            "So:\n~~~\n<think>\nx\n</think>\n");
        add("in a span", "`</think>`", false, "", "`</think>`");
        add("in a span of two", "``a ` </think>``", false, "", "``a ` </think>``");
        add("a fence inside a thought", "<think>\n```\n</think>\n```\nstill\n</think>\nHello", false,
            "```\n</think>\n```\nstill", "Hello");
        add("a fence that the thought never closed", "<think>\n```\ncode\n</think>\nHello", false, "```\ncode",
            "Hello");
        add("a second thought", "<think>a</think>One.\n<think>b</think>\nTwo.", false, "a\n\nb", "One.\n\nTwo.");
        add("a mark on its own line that never ends is text", "One:\n<think>\nTwo", false, "", "One:\n<think>\nTwo");
        add("other marks", "[THINK]a[/THINK]b", false, "a", "b");
        add("marks of different pairs do not match", "<think>a</thinking>b", false, "a</thinking>b", "", true);
        add("empty", "", false, "", "");
        add("empty, begun by the prompt", "", true, "", "", true);
    }
    void aTextIsTakenApart() {
        QFETCH(QByteArray, text);
        QFETCH(bool, opened);
        const ThinkingSplit split = splitThinking(text.toStdString(), opened);
        QTEST(QByteArray::fromStdString(split.thinking), "thinking");
        QTEST(QByteArray::fromStdString(split.answer), "answer");
        QTEST(split.open, "open");
    }

    void noPieceOfAMarkFlashesUpWhileTheTextGrows() {
        const std::string text = "<think>\nso < 5 </b> it\n</think>\n\nHello <b>";
        for (std::size_t n = 0; n <= text.size(); ++n) {
            const ThinkingSplit split = splitThinking(std::string_view(text).substr(0, n), false, false);
            QVERIFY2(std::string("so < 5 </b> it").starts_with(split.thinking) ||
                         split.thinking.find("</t") == std::string::npos,
                     split.thinking.c_str());
            QVERIFY2(std::string("Hello <b>").starts_with(split.answer), split.answer.c_str());
        }
        QCOMPARE(splitThinking("<thi", false, false).answer, std::string());
        QCOMPARE(splitThinking("<thi", false, true).answer, std::string("<thi"));
        QCOMPARE(splitThinking("a </thi", true, false).thinking, std::string("a"));
        QCOMPARE(splitThinking("a </thi", true, true).thinking, std::string("a </thi"));
    }

    void whatAPromptEndsWith() {
        QVERIFY(endsInThought("<|im_start|>assistant\n<think>\n"));
        QVERIFY(!endsInThought("<|im_start|>assistant\n"));
        QVERIFY(!endsInThought("assistant\n<think>\n\n</think>\n\n"));
        QCOMPARE(std::string(thoughtOpener("x<think>\n")), std::string("<think>\n"));
        QCOMPARE(std::string(thoughtEnd("<think>\n")), std::string("</think>"));
    }

    /// Cost grows with the text and not with its square, whatever stands in it.
    void manyMarksAreNoTrap() {
        std::string text;
        for (int i = 0; i < 20'000; ++i)
            text += "<think>\n";
        const ThinkingSplit split = splitThinking(text, false);
        QVERIFY(split.open);
        text = "x\n" + text;
        QCOMPARE(splitThinking(text, false).answer, text);
        for (const char* unit : {"<think>a</think>", "`x` <think></think>", "``` <think>"}) { // all of it in one line
            text.clear();
            while (text.size() < 2'000'000)
                text += unit;
            const ThinkingSplit line = splitThinking(text, false);
            QVERIFY(line.thinking.size() + line.answer.size() <= text.size());
        }
    }

    /// Whatever comes in whatever pieces, the parts are those of the whole text.
    void aGrowingTextIsTakenApartAsAWhole() {
        const char* const pieces[] = {"<think>", "</think>", "[THINK]", "[/THINK]", "`",       "``",      "```", "~~~",
                                      "\n",      "\n",       "\n",      " ",        "a",       "word ",   "<",   "<thi",
                                      "</th",    "\t",       ">",       "> ",       "```py\n", "\xC3\xA9"};
        std::mt19937 random(11);
        for (int round = 0; round < 3000; ++round) {
            std::string text;
            for (auto n = random() % 22; n > 0; --n)
                text += pieces[random() % std::size(pieces)];
            const bool opened = random() % 2 == 0;
            ThinkingStream stream(opened);
            std::string thinking, answer;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t length = 1 + random() % 6;
                const auto growth = stream.add(std::string_view(text).substr(at, length));
                at = std::min(text.size(), at + length);
                const ThinkingSplit& split = stream.split();
                const ThinkingSplit whole = splitThinking(std::string_view(text).substr(0, at), opened, false);
                QVERIFY2(split.thinking == whole.thinking && split.answer == whole.answer && split.open == whole.open,
                         text.substr(0, at).c_str());
                thinking = (growth.onlyMore ? thinking : "") +
                           split.thinking.substr(growth.onlyMore ? growth.thinkingBefore : 0);
                answer =
                    (growth.onlyMore ? answer : "") + split.answer.substr(growth.onlyMore ? growth.answerBefore : 0);
                QVERIFY2(thinking == split.thinking && answer == split.answer, text.substr(0, at).c_str());
            }
        }
    }

    void aLongAnswerIsNotTakenApartForEveryToken() {
        ThinkingStream stream;
        stream.add("<think>\nhm\n</think>\n\nSo: ");
        for (int i = 0; i < 20'000; ++i)
            stream.add(i % 9 == 0 ? "`x` < y\n" : " word");
        QVERIFY2(stream.wholeSplits() < 12, std::to_string(stream.wholeSplits()).c_str());
        QCOMPARE(stream.split().thinking, std::string("hm"));
        ThinkingStream thought(true);
        for (int i = 0; i < 20'000; ++i)
            thought.add(i % 9 == 0 ? "`x` < y\n" : " word");
        QCOMPARE(thought.wholeSplits(), 1);
    }
};

QTEST_APPLESS_MAIN(TestThinking)
#include "test_thinking.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
#include <QRandomGenerator>
#include <QTest>

#include "ui/models/markdown_blocks.h"

using namespace kvscope::ui;
using namespace kvscope::ui::md;

namespace {

/// A block in one line: kind, depth, marker, shown text, spans.
QString told(const Block& block) {
    static const char* const kKinds[] = {"plain", "p", "h", "code", "table", "rule"};
    QString out = QLatin1StringView(kKinds[int(block.kind)]);
    if (block.kind == Kind::Heading)
        out += QString::number(block.level);
    for (const Container& container : block.containers)
        out += container.quote ? u'>' : u'-';
    if (!block.marker.isEmpty())
        out += u'(' + block.marker + u')';
    if (block.task != Task::None)
        out += block.task == Task::Done ? QStringLiteral("[x]") : QStringLiteral("[ ]");
    if (!block.language.isEmpty())
        out += u' ' + block.language;
    out += u':' + block.text;
    for (const Span& span : block.spans) {
        QString flags;
        for (const auto& [flag, name] :
             {std::pair{Strong, 'b'}, {Emphasis, 'i'}, {Strike, 's'}, {CodeSpan, 'c'}, {Link, 'l'}})
            if (span.flags & flag)
                flags += QLatin1Char(name);
        out += QStringLiteral(" {%1 %2}").arg(flags, block.text.mid(span.from, span.to - span.from));
    }
    return out;
}

QStringList told(const QString& markdown) {
    QStringList out;
    for (const Block& block : parseMarkdown(markdown).blocks)
        out << told(block);
    return out;
}

const Block& onlyCode(const std::vector<Block>& blocks) {
    for (const Block& block : blocks)
        if (block.kind == Kind::Code)
            return block;
    qFatal("no code");
}

} // namespace

class TestMarkdownBlocks final : public QObject {
    Q_OBJECT
private slots:
    void blocks_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QStringList>("expected");
        const auto row = [](const char* name, const char* source, const QStringList& expected) {
            QTest::newRow(name) << QString::fromUtf8(source) << expected;
        };
        row("paragraphs", "One *two* **three** ~~four~~ `five`.\n\nSix",
            {"p:One two three four five. {i two} {b three} {s four} {c five}", "p:Six"});
        row("both at once", "***a*** **b `c`**", {"p:a b c {bi a} {b b } {bc c}"});
        row("line ends stay", "a\nb  \nc", {"p:a\nb\nc"});
        row("headings", "# A\n###### B\nC\n---", {"h1:A", "h6:B", "h2:C"});
        row("rule", "a\n\n***\n\nb", {"p:a", "rule:", "p:b"});
        row("list", "- a\n- b\n  - c\n- d", {"p-(•):a", "p-(•):b", "p--(•):c", "p-(•):d"});
        row("loose list is the same", "- a\n\n  more\n\n- b", {"p-(•):a", "p-:more", "p-(•):b"});
        row("numbers", "3. a\n4. b\n   1) c", {"p-(3.):a", "p-(4.):b", "p--(1)):c"});
        row("tasks", "- [ ] a\n- [x] b", {"p-(•)[ ]:a", "p-(•)[x]:b"});
        row("empty items", "- \n- a\n-", {"p-(•):", "p-(•):a", "p-(•):"});
        row("item in an item", "- - a", {"p-(•):", "p--(•):a"});
        row("quote", "> a\n> > b\n\nc", {"p>:a", "p>>:b", "p:c"});
        row("list in a quote", "> - a\n>   b", {"p>-(•):a\nb"});
        row("table", "| a | b |\n|---|--:|\n| *c* | d \\| e |", {"table:a\tb\nc\td | e {i c}"});
        row("code", "```python title\nx = 1\n```\n", {"code python:x = 1"});
        row("code of indentation", "a\n\n    x\n\n      y\n\nb", {"p:a", "code:x\n\n  y", "p:b"});
        row("entities", "a &amp; b &lt; &#65; &#x1F600; &nope;", {QString::fromUtf8("p:a & b < A 😀 &nope;")});
        row("escapes", "\\*a\\* \\# b", {"p:*a* # b"});
        row("HTML is text", "a <b>c</b> <img src=x onerror=y>\n\n<script>alert(1)</script>\n\n<div>\nx",
            {"p:a <b>c</b> <img src=x onerror=y>", "p:<script>alert(1)</script>", "p:<div>\nx"});
        row("links", "[a](https://b.c) <https://d.e> https://f.g/h. [m](mailto:x@y.z)",
            {"p:a https://d.e https://f.g/h. m {l a} {l https://d.e} {l https://f.g/h} {l m}"});
        row("odd links are text",
            "[a](javascript:alert(1)) [b](file:///etc/passwd) [c](data:text/html,x) [d](/e) <ftp://a.b>",
            {"p:[a](javascript:alert(1)) [b](file:///etc/passwd) [c](data:text/html,x) [d](/e) "
             "[ftp://a.b](ftp://a.b)"});
        row("images are text", "x ![alt](https://a.b/c.png) y", {"p:x ![alt](https://a.b/c.png) y"});
        row("a link around an image", "[![a](https://i.j/k.png)](https://l.m)",
            {"p:![a](https://i.j/k.png) {l ![a](https://i.j/k.png)}"});
        row("a fence in a list", "1. a\n   ```sh\n   ls\n     x\n   ```\n2. b",
            {"p-(1.):a", "code- sh:ls\n  x", "p-(2.):b"});
        row("nothing", "", {});
        row("only blanks", " \n\n ", {});
    }
    void blocks() {
        QFETCH(QString, source);
        QFETCH(QStringList, expected);
        QCOMPARE(told(source), expected);
    }

    /// What Copy gives: the bytes between the fences, whatever they are.
    void codeIsTheSource_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("code");
        QTest::addColumn<bool>("closed");
        const auto row = [](const char* name, const QString& source, const char* code, bool closed = true) {
            QTest::newRow(name) << source << QString::fromUtf8(code) << closed;
        };
        const char* const python = "def f():\n\treturn 1  \n\n\n\tx = \"\t\"\n   \n\t";
        row("tabs, blank lines, blanks at the end", QStringLiteral("```python\n%1\n```\nb").arg(python), python);
        row("no language", "a\n\n```\nx\n```", "x");
        row("tildes", "~~~~ c\na\n~~~\nb\n~~~~\n", "a\n~~~\nb");
        row("fence in a fence", "````md\n```c\nx\n```\n````", "```c\nx\n```");
        row("a fence with a language does not close", "```\na\n```c\nb\n```", "a\n```c\nb");
        row("in a list", "- a\n\n  ```c\n  \tx\n  \n    y\n  ```", "\tx\n\n  y");
        row("in a quote", "> ```\n> a\n>\n> \tb\n> ```", "a\n\n\tb");
        row("indented fence", "  ```\n  a\n    b\n c\n  ```", "a\n  b\nc");
        row("unfinished", "```c\nint x;\n\tint y;", "int x;\n\tint y;", false);
        row("unfinished, at a line end", "```c\nint x;\n", "int x;", false);
        row("just begun", "```c", "", false);
        row("empty", "a\n```\n```\nb", "");
        row("blank", "```\n\n\n```", "\n");
        row("leading blank lines", "```\n\n\nx\n```", "\n\nx");
        row("a blank line at the end", "```\nx\n\n```", "x\n");
        row("carriage returns", "```\r\na\r\nb\r\n```\r\n", "a\r\nb");
        row("no ASCII", QString::fromUtf8("é😀\n```\nπ = \"😀\"\n```"), "π = \"😀\"");
        row("by indentation", "a\n\n    x\n    \ty\n", "x\n\ty");
        row("by indentation with tabs", "\tx\n\t\ty\n", "x\n\ty");
        row("HTML in it", "```\n<b>&amp;</b>\n```", "<b>&amp;</b>");
    }
    void codeIsTheSource() {
        QFETCH(QString, source);
        QFETCH(QString, code);
        QFETCH(bool, closed);
        const std::vector<Block> blocks = parseMarkdown(source).blocks;
        QCOMPARE(onlyCode(blocks).code, code);
        QCOMPARE(onlyCode(blocks).closed, closed);
    }

    void everyShownCharacterKnowsItsPlace() {
        const QString source = QString::fromUtf8("# Tïtle *x*\n\na **b** `c` &amp; [d](https://e.f) 😀 g\\*\nh\n\n- [x] "
                                                 "i\n  > j\n\n| k | 😀 |\n|---|---|\n| m | n |\n\n"
                                                 "```py\n\to\np\n```\n\n1. q\n   ```\n   r\n   ```");
        const std::vector<Block> blocks = parseMarkdown(source, 0).blocks;
        for (const Block& block : blocks) {
            int last = -1;
            for (const Run& run : block.runs) {
                QVERIFY(run.source >= last && run.source >= block.source.from);
                last = run.source + run.sourceLength;
                QVERIFY2(last <= block.source.to, qPrintable(block.text));
                if (run.length == run.sourceLength) {
                    QCOMPARE(source.mid(run.source, run.length), block.text.mid(run.shown, run.length));
                }
                for (int i = 0; i < (run.length == run.sourceLength ? run.length : 1); ++i)
                    QCOMPARE(block.shownAt(block.sourceAt(run.shown + i)), run.shown + i);
            }
        }
        // The same with everything 1,000 further on.
        const std::vector<Block> shifted = parseMarkdown(source, 1000).blocks;
        QCOMPARE(shifted.size(), blocks.size());
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            QCOMPARE(shifted[i].source.from, blocks[i].source.from + 1000);
            QCOMPARE(shifted[i].source.to, blocks[i].source.to + 1000);
        }
    }

    void shownTextIsWhatIsSeen() {
        const QString source =
            QStringLiteral("# A\n\nb **c** d\n\n- e\n- f\n  1. g\n\n```py\n\th\n\ni\n```\n\n|j|k|\n|---|---|\n|l|m|");
        const std::vector<Block> blocks = parseMarkdown(source).blocks;
        QCOMPARE(shownText(blocks, {0, int(source.size())}),
                 QStringLiteral("A\n\nb c d\n• e\n• f\n  1. g\n\n\th\n\ni\n\nj\tk\nl\tm").replace("d\n•", "d\n\n•"));
        const int c = int(source.indexOf("c**"));
        QCOMPARE(shownText(blocks, {c, c + 1}), QStringLiteral("c"));
        const int h = int(source.indexOf("\th")), i = int(source.indexOf("i\n```"));
        QCOMPARE(shownText(blocks, {h + 1, i + 1}), QStringLiteral("h\n\ni"));
    }

    /// Text that arrives piece by piece, of which only the end is parsed again, gives the same blocks.
    void parsingTheEndAgainIsEnough() {
        const QString whole = QString::fromUtf8("Intro *one*\ntwo\n\nSetext\n===\n\n- a\n\n- b\n  - c\n\n    d\n\n1. "
                                                "x\n2. y\n\n> q\n> > r\nlazy\n\n```py\n\tx\n\n```\n"
                                                "text ```not code``` 😀\n***\n| a | b |\n|---|---|\n| c | d |\n\n    "
                                                "code\n\n      more\nend **bold\nand** on\n"
                                                "# H\n~~~\nopen\n\n- no list");
        Parsed kept = parseMarkdown(QString());
        for (int n = 1; n <= whole.size(); ++n) {
            const Parsed tail = parseMarkdown(QStringView(whole).left(n).mid(kept.restart), kept.restart);
            kept.blocks.resize(std::size_t(kept.restartBlock));
            const int before = kept.restartBlock;
            kept.blocks.insert(kept.blocks.end(), tail.blocks.begin(), tail.blocks.end());
            kept.restart = tail.restart;
            kept.restartBlock = before + tail.restartBlock;
            QStringList streamed;
            for (const Block& block : kept.blocks)
                streamed << told(block);
            QCOMPARE(streamed, told(whole.left(n)));
        }
        QVERIFY(kept.restart > whole.size() / 2);
    }

    void typedTextStaysAsItIs() {
        const QString source = QStringLiteral("# no heading\n\n  *a*\n```c\n\tint x;\n```\n<b>\n");
        const Parsed parsed = parsePlain(source);
        QCOMPARE(parsed.blocks.size(), std::size_t(3));
        QCOMPARE(parsed.blocks[0].text, QStringLiteral("# no heading\n\n  *a*"));
        QCOMPARE(parsed.blocks[1].code, QStringLiteral("\tint x;"));
        QCOMPARE(parsed.blocks[2].text, QStringLiteral("<b>\n"));
        const QString giant = QStringLiteral("word ").repeated(50'000) + QStringLiteral("\nline").repeated(50'000) +
                              QString::fromUtf8("😀").repeated(20'000);
        QString joined;
        for (const Block& block : parsePlain(giant).blocks) {
            QVERIFY(block.text.size() <= 4000);
            joined += giant.mid(block.source.from, block.source.to - block.source.from);
            QVERIFY(block.text.isEmpty() ||
                    (!block.text.front().isLowSurrogate() && !block.text.back().isHighSurrogate()));
        }
        QCOMPARE(joined, giant);
    }

    void onlyOrdinaryAddressesOpen() {
        for (const char* good : {"http://a", "https://a.b/c?d#e", "HTTPS://a.b", "mailto:a@b.c"})
            QVERIFY2(mayOpen(QString::fromUtf8(good)), good);
        for (const char* bad :
             {"javascript:alert(1)", "file:///a", "data:text/html,x", "ftp://a", "/a", "a", "", "https:", "https://",
              "mailto:", "http://a b", "https://a\n.b", "smb://a", "vbscript:x", "//a.b"})
            QVERIFY2(!mayOpen(QString::fromUtf8(bad)), bad);
    }

    /// Nests and entities without end cost time that grows with their number, and not with its square.
    void nestsAndEntitiesWithoutEnd() {
        const int deep = 60'000;
        const std::vector<Block> nested = parseMarkdown(QStringLiteral("+ ").repeated(deep) + u'a').blocks;
        QVERIFY(nested.size() >= std::size_t(deep));
        for (const Block& block : nested)
            QVERIFY(block.containers.size() <= std::size_t(Block::kDeepest));
        QCOMPARE(nested.back().text, QStringLiteral("a"));
        const int many = 200'000;
        const std::vector<Block> entities = parseMarkdown(QStringLiteral("&amp;&zzz;").repeated(many)).blocks;
        QCOMPARE(entities.size(), std::size_t(1));
        QCOMPARE(entities[0].text, QStringLiteral("&&zzz;").repeated(many));
    }

    /// Whatever a model writes: positions stay within the text and ascend.
    void hostileTextKeepsItsPlaces() {
        QRandomGenerator random(7);
        const QStringList pieces = {"*",
                                    "**",
                                    "_",
                                    "`",
                                    "```",
                                    "~~~",
                                    "\n",
                                    "\n\n",
                                    "> ",
                                    "- ",
                                    "1. ",
                                    "    ",
                                    "\t",
                                    "|",
                                    "|-|-|\n",
                                    "[",
                                    "](",
                                    ")",
                                    "![",
                                    "<b>",
                                    "&amp;",
                                    "&#0;",
                                    "\\",
                                    "#",
                                    "= ",
                                    "a",
                                    "b c",
                                    QString::fromUtf8("😀"),
                                    QString(QChar(0)),
                                    QString(QChar(0xd800)),
                                    "\r\n",
                                    "https://a.b ",
                                    "---\n",
                                    "[ ] "};
        for (int round = 0; round < 3000; ++round) {
            QString source;
            for (int n = int(random.bounded(40)); n > 0; --n)
                source += pieces[random.bounded(int(pieces.size()))];
            int last = 0;
            for (const Block& block : parseMarkdown(source).blocks) {
                QVERIFY2(block.source.from >= 0 && block.source.to <= source.size(), qPrintable(source));
                int shown = 0;
                for (const Run& run : block.runs) {
                    QVERIFY2(run.source >= last && run.shown >= shown, qPrintable(source));
                    last = run.source + run.sourceLength;
                    shown = run.shown + run.length;
                    QVERIFY2(last <= source.size() && shown <= block.text.size(), qPrintable(source));
                }
                for (const Span& span : block.spans)
                    QVERIFY(span.from >= 0 && span.to <= block.text.size());
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestMarkdownBlocks)
#include "test_markdown_blocks.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The less common parts of the template language. What they must print was written out by the original (jinja2 3.1,
// the sandbox of chat programs).
#include <QElapsedTimer>
#include <QTest>

#include "engine/model/chat_template.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

Result<Rendering> rendered(const std::string& source) {
    const auto chatTemplate = ChatTemplate::compile(source);
    if (!chatTemplate)
        return tl::unexpected(chatTemplate.error());
    TemplateInput input;
    input.messages = jinja::Value::list({});
    input.variables = {{"m", jinja::Value::string(jinja::Text::fromOutside("User Text here", 7))},
                       {"json", jinja::Value::string(jinja::Text::fromOutside("{\"a\": [1, \"b\"]}", 7))}};
    return (*chatTemplate)->render(input);
}

} // namespace

class TestTemplateRare : public QObject {
    Q_OBJECT
private slots:
    void itPrintsWhatTheOriginalPrints_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("text");
        const auto row = [](const char* source, const char* text) { QTest::newRow(source) << source << text; };
        row("{{ [1,2,3,4,5] | batch(2) | list }}|{{ 'abcde' | batch(3, '-') | list }}",
            "[[1, 2], [3, 4], [5]]|[['a', 'b', 'c'], ['d', 'e', '-']]");
        row("{{ [1,2,3,4,5,6,7] | slice(3) | list }}|{{ [1,2,3,4] | slice(3, 'x') | list }}|{{ [] | slice(2) | list }}",
            "[[1, 2, 3], [4, 5], [6, 7]]|[[1, 2], [3, 'x'], [4, 'x']]|[[], []]");
        row("{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar baz qux' | truncate(9, true) }}|{{ 'foo bar baz qux' | "
            "truncate(11) }}|{{ 'foo bar baz qux' | truncate(9, false, '..', 0) }}|{{ 'é' * 20 | int }}",
            "foo...|foo ba...|foo bar baz qux|foo..|éééééééééééééééééééé");
        row("{{ 'ééééé ééééé ééééé' | truncate(8, end='…', leeway=0) }}", "ééééé…");
        row("[{{ 'ab' | center(5) }}][{{ 'ab' | center(6) }}][{{ 'abc' | center(6) }}][{{ 'é'.center(4, '*') }}][{{ "
            "'long' | center(2) }}]",
            "[  ab ][  ab  ][ abc  ][*é**][long]");
        row("{{ 'the quick brown fox jumps over the lazy dog' | wordwrap(10) }}",
            "the quick\nbrown fox\njumps over\nthe lazy\ndog");
        row("{{ 'a verylongwordindeed b' | wordwrap(6) }}#{{ 'a verylongwordindeed b' | wordwrap(6, false) }}",
            "a very\nlongwo\nrdinde\ned b#a\nverylongwordindeed\nb");
        row("{{ 'one two\\n\\nthree four five' | wordwrap(9, wrapstring='<br>') }}",
            "one two<br><br>three<br>four five");
        row("{{ 'a long-term well-known idea' | wordwrap(8) }}#{{ 'a long-term idea' | wordwrap(8, "
            "break_on_hyphens=false) }}",
            "a long-\nterm\nwell-\nknown\nidea#a long-t\nerm idea");
        row("{{ '  indented text here' | wordwrap(12) }}", "  indented\ntext here");
        row("{{ 'Hello, wörld_1 — x-y 23' | wordcount }}{{ '' | wordcount }}", "50");
        row("{{ 'aBc ÄöÜ ß 1' .swapcase() }}", "AbC äÖü SS 1");
        row("{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}|{{ '-7'.zfill(4) }}|{{ 'abc'.zfill(2) }}|{{ '7'.zfill(3) }}",
            "ab  |..ab|-007|abc|007");
        row("{{ 'abc1'.isalnum() }}{{ 'a c'.isalnum() }}{{ 'abc'.islower() }}{{ 'Abc'.islower() }}{{ 'ABC 1'.isupper() "
            "}}{{ '1'.isupper() }}",
            "TrueFalseTrueFalseTrueFalse");
        row("{{ {'a': 1} | attr('a') is defined }}{{ 'x' | attr('upper') is defined }}{{ ('x' | attr('upper'))() }}",
            "FalseTrueX");
        row("{% set c = cycler('odd', 'even') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() "
            "or '' }}{{ c.current }}{{ c.next() }}",
            "oddevenoddevenoddodd");
        row("{% set j = joiner(' | ') %}{% for i in range(3) %}{{ j() }}{{ i }}{% endfor %}{% set k = joiner() %}{{ "
            "k() }}a{{ k() }}b",
            "0 | 1 | 2a, b");
        row("{% for n in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3}]}, {'v': 4}]}, {'v': 5}] recursive %}{{ n.v }}{{ "
            "loop.depth }}{{ loop.depth0 }}{% if n.c %}({{ loop(n.c) }}){% endif %}{{ ',' if not loop.last }}{% else "
            "%}none{% endfor %}",
            "110(221(332),421),510");
        row("{% for a in [1, 2] %}{% for b in [3] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{{ loop.depth }}{% "
            "endfor %}",
            "101101");
        row("{% for n in [[1, [2, []]], []] recursive %}[{{ n if n is number else loop(n) }}]{% else %}-{% endfor %}",
            "[[1][[2][-]]][-]");
        row("{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 0xff + 1_000 }}", "31 5 15 1255");
        row("{{ '<a href=\"x\">\\'&' | e }}{{ 'ü/ x?&=~' | urlencode }}",
            "&lt;a href=&#34;x&#34;&gt;&#39;&amp;%C3%BC/%20x%3F%26%3D~");
        row("{% set d = {'a': [1]}.copy() %}{{ d }}{{ [1, 2].copy() }}", "{'a': [1]}[1, 2]");
        row("{{ 'a-b_c'.split('-') | map('upper') | join }}{{ [3, 1, 2] | sort | batch(2) | map('sum') | list }}",
            "AB_C[3, 3]");
    }
    void itPrintsWhatTheOriginalPrints() {
        QFETCH(QString, source);
        QFETCH(QString, text);
        const auto rendering = rendered(source.toStdString());
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        QCOMPARE(QString::fromStdString(rendering->text.bytes()), text);
    }

    void textFromOutsideStaysMarked_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("shown"); // marked bytes between [ ]
        const auto row = [](const char* source, const char* shown) { QTest::newRow(source) << source << shown; };
        row("{{ m | center(18) }}", "  [User Text here]  ");
        row("{{ m | truncate(10, leeway=0) }}", "[User]...");
        row("{{ m | wordwrap(9) }}", "[User Text]\n[here]");
        row("<{{ m.swapcase() | e }}>", "<[uSER tEXT HERE]>");
        row("{{ m | urlencode }}{{ m.ljust(15, '.') }}", "[User%20Text%20hereUser Text here].");
        row("{{ m.split() | batch(2) | first | join('-') }}", "[User]-[Text]");
        row("{% for w in [m] recursive %}{{ loop([w + '!']) if loop.depth < 2 else w }}{% endfor %}",
            "[User Text here]!");
        row("{% set c = cycler(m, 'x') %}{{ c.next() }}{{ c.next() }}", "[User Text here]x");
        row("{{ (json | from_json).a }}", "[1, '[b]']");
    }
    void textFromOutsideStaysMarked() {
        QFETCH(QString, source);
        QFETCH(QString, shown);
        const auto rendering = rendered(source.toStdString());
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        const std::string& bytes = rendering->text.bytes();
        std::string text;
        std::size_t done = 0;
        for (const jinja::Mark& mark : rendering->text.marks()) {
            text += bytes.substr(done, mark.begin - done) + "[" + bytes.substr(mark.begin, mark.end - mark.begin) + "]";
            done = mark.end;
        }
        QCOMPARE(QString::fromStdString(text + bytes.substr(done)), shown);
    }

    void nothingRunsAway_data() {
        QTest::addColumn<QString>("source");
        for (const char* source :
             {"{{ [1] | batch(1000000000000, 'x') | length }}", "{{ [1] | slice(1000000000000, 'x') | length }}",
              "{{ 'a' | center(1000000000000) }}", "{{ 'a'.rjust(9000000000000000000) }}", "{{ 'a'.zfill(99999999) }}",
              "{% for n in [1] recursive %}{{ loop([1]) }}{% endfor %}",
              "{% for n in [1, 2] recursive %}{{ loop([1, 2]) if loop.depth < 200 }}{% endfor %}",
              "{% set c = cycler([1], 2) %}{% set c.x = c %}{% for i in range(90000) %}{% set c.y = [c.y, c.next] %}"
              "{% endfor %}",
              "{% for i in range(99999) %}{{ ('x' * 9999) | wordwrap(1) | length }}{% endfor %}",
              "{% for i in range(99999) %}{{ ('<' * 9999) | e | length }}{% endfor %}"})
            QTest::newRow(source) << source;
    }
    void nothingRunsAway() {
        QFETCH(QString, source);
        QElapsedTimer timer;
        timer.start();
        const auto rendering = rendered(source.toStdString());
        QVERIFY(!rendering.has_value());
        QCOMPARE(rendering.error().code, ErrorCode::Template);
        QVERIFY2(timer.elapsed() < 30000, qPrintable(QString::number(timer.elapsed()))); // sanitizers are slow
    }

    /// Small templates that once took minutes, gigabytes, or the program.
    void whatAReviewFoundStaysFound_data() {
        QTest::addColumn<QString>("source");
        const auto row = [](const char* name, const std::string& source) {
            QTest::newRow(name) << QString::fromStdString(source);
        };
        const std::string big = "{% set a = 'a' * 8000000 %}";
        const auto repeated = [](const std::string& text, int times) {
            std::string out;
            for (int i = 0; i < times; ++i)
                out += text;
            return out;
        };
        row("long texts side by side", big + "{{ a" + repeated(" ~ a", 10000) + " }}");
        row("one long text in a list", big + "{{ '-'.join([a] * 100000) }}");
        row("a long text between all characters", big + "{{ ('b' * 1000000).replace('', a) }}");
        row("an indent of exabytes", "{{ [[1]] | tojson(indent=4000000000000000000) }}");
        row("an indent of gigabytes", "{{ [[1]] | tojson(indent=1000000000) }}");
        row("a text longer than any", "{{ ('a' * 200000000) | length }}");
        row("a missing key of megabytes", big + "{% set m = {}[a] %}{{ ([m] * 1000000) | length }}{{ nothing() }}");
        row("many variables", [] {
            std::string source;
            for (int i = 0; i < 30000; ++i)
                source += "{% set v" + std::to_string(i) + "=1 %}";
            return source + "{% for i in range(99999) %}{% if nothing %}{% endif %}{% endfor %}";
        }());
        row("many named arguments", [] {
            std::string source = "{{ dict(";
            for (int i = 0; i < 60000; ++i)
                source += "v" + std::to_string(i) + "=1,";
            return source + ") | length }}";
        }());
        row("more template than any", "{# " + std::string(std::size_t(1) << 20, 'x') + " #}");
    }
    void whatAReviewFoundStaysFound() { nothingRunsAway(); }

    void searchingIsLinear() {
        QElapsedTimer timer;
        timer.start();
        const auto rendering = rendered("{% set a = 'a' * 4000000 %}{% set b = 'a' * 2000000 ~ 'b' %}{{ b in a }}"
                                        "{{ a.find(b) }}{{ a.rfind('b' ~ a[:1000000]) }}{{ a.split(b) | length }}"
                                        "{{ a.rsplit(b) | length }}{{ a.count(b) }}{{ a.replace(b, '') | length }}");
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        QCOMPARE(rendering->text.bytes(), std::string("False-1-11104000000"));
        QVERIFY2(timer.elapsed() < 30000, qPrintable(QString::number(timer.elapsed())));
    }

    void whatFailedIsSaidInASentence() {
        const auto rendering = rendered("{{ " + std::string(500000, 'n') + "() }}");
        QVERIFY(!rendering.has_value() && rendering.error().message.size() < 500);
        const auto unknown = rendered("{{ 1 | " + std::string(500000, 'n') + " }}");
        QVERIFY(!unknown.has_value() && unknown.error().message.size() < 500);
    }

    void loopsThatHoldThemselvesAreTakenApart() { // memory: the leak check of the sanitizers
        const auto rendering = rendered("{% set h = namespace() %}{% for i in [1] recursive %}{% set h.l = loop %}"
                                        "{{ loop.changed(loop) }}{% set x = loop %}{% endfor %}{{ h.l is defined }}");
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        QCOMPARE(rendering->text.bytes(), std::string("TrueTrue"));
    }

    void wrongUseIsSaid_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* source, const char* named) { QTest::newRow(source) << source << named; };
        row("{{ cycler() }}", "at least one item");
        row("{{ [1] | batch(0) }}", "at least 1");
        row("{% for i in [1] %}{{ loop([1]) }}{% endfor %}", "not callable");
        row("{% for i in [1] recursive %}{{ loop() }}{% endfor %}", "items of the next level");
        row("{{ 'a'.center(5, 'xy') }}", "one character");
        row("{{ 'abc' | truncate(2) }}", "length");
        row("{{ '{' | from_json }}", "not valid JSON");
        row("{{ 0x }}", "digits");
        row("{{ 0b12 }}", "digits");
    }
    void wrongUseIsSaid() {
        QFETCH(QString, source);
        QFETCH(QString, named);
        const auto rendering = rendered(source.toStdString());
        QVERIFY(!rendering.has_value());
        QVERIFY2(QString::fromStdString(rendering.error().message).contains(named), rendering.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestTemplateRare)
#include "test_template_rare.moc"
